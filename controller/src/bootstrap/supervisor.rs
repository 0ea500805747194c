//! What keeps the agent running on this machine: systemd, or nothing but itself.

use std::path::Path;

use replicator_protocol::ids::HostId;

use super::agent::Agent;
pub use super::agent::{ENDS_WITHIN, Started};
use super::{BootstrapError, detached, systemd};
use crate::state::event::Supervisor;

/// What keeps agents running on this machine.
pub fn of_this_machine() -> Supervisor {
    if Path::new("/run/systemd/system").is_dir() { Supervisor::Systemd } else { Supervisor::Detached }
}

/// The agent as it was set up under `root`: with the program of its unit, or the one that runs, else the one beside
/// this program. That one need not exist: an agent that runs needs it no more.
pub fn set_up(root: &Path, host: &HostId, under: Supervisor) -> Agent {
    let agent = Agent::beside(root);
    let known = match under {
        Supervisor::Systemd => systemd::program(&agent, host),
        Supervisor::Detached => detached::program(&agent),
    };
    Agent { binary: known.unwrap_or(agent.binary), root: agent.root }
}

/// Whether `agent` runs, or is to be started whenever it does not.
pub async fn runs(agent: &Agent, host: &HostId, under: Supervisor) -> bool {
    match under {
        Supervisor::Systemd => systemd::runs(agent, host).await,
        Supervisor::Detached => detached::runs(agent),
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
