//! What keeps the agent running on this machine: systemd, or nothing but itself.

use std::path::{Path, PathBuf};

use replicator_protocol::ids::HostId;

use super::agent::Agent;
use super::{BootstrapError, detached, systemd};
use crate::state::event::Supervisor;

/// Whether starting did anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Started {
    /// It runs now.
    Now,
    /// It ran already.
    Already,
}

/// What keeps agents running on this machine.
pub fn of_this_machine() -> Supervisor {
    if Path::new("/run/systemd/system").is_dir() { Supervisor::Systemd } else { Supervisor::Detached }
}

/// The program that `agent` was set up with, where that is known: the one of its unit, or the one that runs.
pub(super) fn program(agent: &Agent, host: &HostId, under: Supervisor) -> Option<PathBuf> {
    match under {
        Supervisor::Systemd => systemd::program(agent, host),
        Supervisor::Detached => detached::program(agent),
    }
}

/// Starts `agent`, unless it runs.
///
/// # Errors
///
/// [`BootstrapError`]; start it again.
pub async fn start(agent: &Agent, host: &HostId, under: Supervisor) -> Result<Started, BootstrapError> {
    match under {
        Supervisor::Systemd => systemd::start(agent, host).await,
        Supervisor::Detached => detached::start(agent).await,
    }
}

/// Ends `agent`, and whatever would start it again.
///
/// # Errors
///
/// [`BootstrapError`].
pub async fn stop(agent: &Agent, host: &HostId, under: Supervisor) -> Result<(), BootstrapError> {
    match under {
        Supervisor::Systemd => systemd::stop(agent, host).await,
        Supervisor::Detached => detached::stop(agent).await,
    }
}
