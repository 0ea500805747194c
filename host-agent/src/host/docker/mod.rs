//! The container runtime: every call bounded, every answer either an answer or "could not say".

mod containers;
mod hanging;
mod images;
mod networks;

use std::future::Future;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bollard::errors::Error as ClientError;
use replicator_protocol::resources::container::BOUND_MAX;

use self::hanging::{Hangs, PATIENCE, Patience};
use super::point::{Effect, Side, reach};

pub use containers::{Condition, Listed, Seen};
pub use images::{Credential, HeldImage};
pub use networks::SeenNetwork;

/// Where the runtime listens unless told otherwise.
pub const SOCKET: &str = "/var/run/docker.sock";
/// The oldest interface spoken, and the one asked for: every supported runtime has it or translates.
const API: &bollard::ClientVersion = &bollard::ClientVersion { major_version: 1, minor_version: 41 };
/// A call that only reads.
const LOOK: Duration = Duration::from_secs(30);
/// Making, renaming or removing something.
const CHANGE: Duration = Duration::from_secs(30);
/// Fetching an image.
const PULL: Duration = Duration::from_secs(600);
/// Where the client itself gives up: after any bound a call is given. The longest is a stop, of which a declaration may
/// ask an hour.
const CLIENT: Duration = Duration::from_secs(BOUND_MAX + 2 * CHANGE.as_secs());

/// A call to the runtime that brought no answer, or no.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    /// It is down, hung or restarting. Says nothing about what is there.
    #[error("the container runtime could not say (`{call}`)")]
    Unreachable {
        /// Which call.
        call: &'static str,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A bound passed.
    #[error("the container runtime did not answer `{call}` within {} s", bound.as_secs())]
    TimedOut {
        /// Which call.
        call: &'static str,
        /// How long was waited.
        bound: Duration,
    },
    /// It answered no.
    #[error("the container runtime refused `{call}` with status {status}: {message}")]
    Refused {
        /// Which call.
        call: &'static str,
        /// HTTP status.
        status: u16,
        /// The runtime's own words.
        message: String,
    },
}

impl RuntimeError {
    #[allow(clippy::wildcard_enum_match_arm, reason = "whatever is no answer says nothing about what is there")]
    fn of(call: &'static str, error: ClientError) -> Self {
        match error {
            ClientError::DockerResponseServerError { status_code, message } => {
                Self::Refused { call, status: status_code, message }
            }
            ClientError::RequestTimeoutError => Self::TimedOut { call, bound: CLIENT },
            ClientError::DockerStreamError { error } => Self::Refused { call, status: 500, message: error },
            other => Self::unreachable(call, other),
        }
    }

    fn unreachable(call: &'static str, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::Unreachable { call, source: Box::new(source) }
    }

    /// Whether nothing of that name is there.
    #[must_use]
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Refused { status: 404, .. })
    }

    /// Whether something else is in the way: the name is taken, or another request is at it.
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Refused { status: 409, .. })
    }
}

/// A handle to the runtime, which may be down; cheap to clone.
#[derive(Clone)]
pub struct Docker {
    socket: String,
    client: Arc<OnceLock<bollard::Docker>>,
    hangs: Arc<Hangs>,
    patience: Patience,
}

impl Docker {
    /// A handle to the runtime that listens on `socket`. Nothing is sent yet.
    #[must_use]
    pub fn new(socket: &str) -> Self {
        Self {
            socket: socket.to_owned(),
            client: Arc::default(),
            hangs: Arc::new(Hangs::new(None)),
            patience: PATIENCE,
        }
    }

    /// Where the runtime listens.
    #[must_use]
    pub fn socket(&self) -> &str {
        &self.socket
    }

    fn client(&self) -> Result<&bollard::Docker, RuntimeError> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        // Fails where there is no socket: the runtime is not up yet.
        let client = bollard::Docker::connect_with_unix(&self.socket, CLIENT.as_secs(), API)
            .map_err(|error| RuntimeError::of("connect", error))?;
        Ok(self.client.get_or_init(|| client))
    }

    /// Whether it answers at all.
    ///
    /// # Errors
    ///
    /// [`RuntimeError`].
    pub async fn ping(&self) -> Result<(), RuntimeError> {
        self.bounded("ping", LOOK, self.client()?.ping()).await.map(drop)
    }

    /// Calls `heard` for whatever happens to a container of `host`, from `since` (milliseconds since the Unix epoch)
    /// on. Ends where that returns false, or the runtime goes away.
    pub async fn each_event(&self, host: &str, since: u64, heard: impl Fn() -> bool) {
        use futures_util::StreamExt as _;
        let filters = std::collections::HashMap::from([
            ("type", vec!["container".to_owned()]),
            ("event", ["die", "stop", "destroy", "rename", "pause", "oom", "start"].map(str::to_owned).to_vec()),
            ("label", vec![format!("replicator.host={host}")]),
        ]);
        let since = format!("{}.{:03}", since / 1000, since % 1000);
        let options =
            bollard::query_parameters::EventsOptionsBuilder::default().filters(&filters).since(&since).build();
        let Ok(client) = self.client() else { return };
        let mut events = Box::pin(client.events(Some(options)));
        while let Some(Ok(_)) = events.next().await {
            if !heard() {
                return;
            }
        }
    }

    /// A call that changes something, between its two points.
    async fn effect<T>(
        &self,
        effect: Effect,
        bound: Duration,
        answer: impl Future<Output = Result<T, ClientError>>,
    ) -> Result<T, RuntimeError> {
        let call = effect.as_str();
        reach(effect, Side::Before).map_err(|error| RuntimeError::unreachable(call, error))?;
        let done = self.bounded(call, bound, answer).await?;
        reach(effect, Side::After).map_err(|error| RuntimeError::unreachable(call, error))?;
        Ok(done)
    }
}

/// What is there, or that nothing is; anything else stays an error.
fn found<T>(answer: Result<T, RuntimeError>) -> Result<Option<T>, RuntimeError> {
    match answer {
        Ok(seen) => Ok(Some(seen)),
        Err(error) if error.is_absent() => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn client_waits_longer_than_any_call_is_given() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("docker.sock");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        let docker = Docker::new(&socket.to_string_lossy());
        let longest_stop = Duration::from_secs(BOUND_MAX) + CHANGE;
        assert!(docker.client().unwrap().timeout() > longest_stop.max(PULL).max(LOOK));
    }
}
