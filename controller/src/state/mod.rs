//! The provisioning log: what the controller did for each host, one encrypted object per event.
//!
//! Comes in: events, appended only if nobody else appended first. Goes out: entries and the state folded from
//! them. There is no other copy of the state, no lock, and nothing here is ever written twice.

pub mod event;
pub mod fleet;
pub mod fold;
pub mod known;
pub mod log;
pub mod objects;
pub mod seal;
pub mod status;

use std::fmt;

use replicator_protocol::ids::{HostId, InvalidId};
use serde::{Deserialize, Serialize};

pub use event::{Entry, Event};
pub use fleet::{FleetEvent, FleetState};
pub use fold::Illegal;
pub use log::{History, Log, LogError, Reached};
pub use objects::{Objects, ObjectsError};
pub use seal::{DataKey, DataKeyError};
pub use status::{HostState, Status};

/// The name state and secrets are kept under: `state.replicator.app` of a host spec.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct App(HostId);

impl App {
    /// The name used where a spec gives none.
    pub const DEFAULT: &'static str = "replicator-host";

    /// Parses a slug.
    ///
    /// # Errors
    ///
    /// [`InvalidId`] where the text is none.
    pub fn parse(text: &str) -> Result<Self, InvalidId> {
        let named = |error: InvalidId| InvalidId { what: "name of a state (`state.replicator.app`)", ..error };
        HostId::parse(text).map(Self).map_err(named)
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl fmt::Display for App {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

impl TryFrom<String> for App {
    type Error = InvalidId;
    fn try_from(text: String) -> Result<Self, InvalidId> {
        Self::parse(&text)
    }
}

impl From<App> for String {
    fn from(app: App) -> String {
        app.to_string()
    }
}

/// Who appends, as another controller is told: `user@machine`.
pub fn writer() -> String {
    let user = ["USER", "LOGNAME"].into_iter().find_map(|name| std::env::var(name).ok());
    let user = user.unwrap_or_else(|| rustix::process::getuid().as_raw().to_string());
    format!("{user}@{}", rustix::system::uname().nodename().to_string_lossy())
}

/// Milliseconds since the Unix epoch, for people; never decides order.
pub fn now() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
