//! `fleet.toml`: where the fleet's broker is, and the digest of its root document.

use std::path::PathBuf;

use replicator_protocol::enrolment::Broker;
use replicator_protocol::ids::FleetName;
use serde::{Deserialize, Serialize};

use super::KeysError;
use super::files;
use crate::home::FleetFolder;

/// What `fleet.toml` says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The fleet.
    pub fleet: FleetName,
    /// SHA-256 of the root document, hex.
    pub root: String,
    /// The broker, as hosts are told too.
    pub broker: Broker,
}

impl Settings {
    /// Reads `fleet.toml`.
    ///
    /// # Errors
    ///
    /// [`KeysError::Absent`], [`KeysError::File`] or [`KeysError::Settings`].
    pub fn load(fleet: &FleetFolder) -> Result<Self, KeysError> {
        let path = fleet.settings();
        let bytes = files::read(&path)?.ok_or_else(|| KeysError::Absent { path: path.clone() })?;
        let unreadable = |source| KeysError::Settings { path: path.clone(), source: Box::new(source) };
        toml::from_str(&String::from_utf8_lossy(&bytes)).map_err(unreadable)
    }

    pub(super) fn text(&self, path: PathBuf) -> Result<String, KeysError> {
        toml::to_string(self).map_err(|source| KeysError::Unwritable { path, source: Box::new(source) })
    }

    /// The `[broker]` table of a host's `agent.toml`.
    ///
    /// # Errors
    ///
    /// [`KeysError::Unwritable`].
    pub fn agent_broker(&self) -> Result<String, KeysError> {
        #[derive(Serialize)]
        struct Agent<'s> {
            broker: &'s Broker,
        }
        let path = PathBuf::from("agent.toml");
        toml::to_string(&Agent { broker: &self.broker })
            .map_err(|source| KeysError::Unwritable { path, source: Box::new(source) })
    }
}
