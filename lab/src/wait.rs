//! Waiting for a state, never for a while.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

/// Pause between two looks: short against what is waited for, long against what a look costs.
const PAUSE: Duration = Duration::from_millis(20);

/// Looks until `look` finds what it is for, for up to `within`; `what` is for the message.
///
/// # Errors
///
/// What `look` says, or that it did not come about in time.
pub async fn until<T>(what: &str, within: Duration, mut look: impl AsyncFnMut() -> Result<Option<T>>) -> Result<T> {
    let started = Instant::now();
    loop {
        if let Some(found) = look().await? {
            return Ok(found);
        }
        if started.elapsed() > within {
            bail!("{what}: not within {} s", within.as_secs_f32());
        }
        tokio::time::sleep(PAUSE).await;
    }
}
