//! What the agent and whoever supervises it tell each other.

use std::io;
use std::time::Duration;

use sd_notify::NotifyState;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Who restarts this process: `systemd`, or nobody (`detached`).
#[must_use]
pub fn supervisor() -> &'static str {
    if std::env::var_os("NOTIFY_SOCKET").is_some() { "systemd" } else { "detached" }
}

fn notify(state: NotifyState<'_>) {
    if let Err(error) = sd_notify::notify(&[state]) {
        tracing::warn!(%error, "the supervisor could not be told");
    }
}

/// The agent is up.
pub(super) fn ready() {
    tracing::info!("ready");
    notify(NotifyState::Ready);
}

/// The agent ends.
pub(super) fn stopping() {
    tracing::info!("stopping at the next safe point");
    notify(NotifyState::Stopping);
}

/// Tells the watchdog that the process still schedules its tasks, twice in each of its periods.
pub(super) async fn keep_alive(stop: CancellationToken) {
    let Some(period) = sd_notify::watchdog_enabled() else { return };
    let mut ticks = tokio::time::interval((period / 2).max(Duration::from_millis(100)));
    loop {
        tokio::select! {
            _ = ticks.tick() => notify(NotifyState::Watchdog),
            () = stop.cancelled() => return,
        }
    }
}

/// Cancels `stop` at the first `SIGTERM` or `SIGINT`.
pub(super) fn stop_on_signals(stop: CancellationToken) -> io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        stop.cancel();
    });
    Ok(())
}
