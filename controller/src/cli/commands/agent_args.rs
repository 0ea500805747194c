//! Flags that name the agent on this machine.

use std::path::{Path, PathBuf};

use replicator_protocol::ids::HostId;

use crate::bootstrap::{Agent, supervisor};
use crate::cli::Failure;
use crate::state::HostState;

/// The agent on this machine.
#[derive(Debug, Clone, clap::Args)]
pub struct AgentArgs {
    /// The agent's program [default: `replicator-host-agent` beside this one; to end one, the one it was set up with].
    #[arg(long, value_name = "PATH")]
    agent: Option<PathBuf>,
    /// Move all of the agent's files under DIR: several agents fit on one machine [default: where the host's agent is
    /// set up, else `/`].
    #[arg(long, value_name = "DIR")]
    agent_root: Option<PathBuf>,
}

impl AgentArgs {
    /// Finds it, to be set up for a host of which `state` is known.
    ///
    /// # Errors
    ///
    /// The [`Failure`] to show where it is not there.
    pub fn find(&self, state: &HostState) -> Result<Agent, Failure> {
        Ok(Agent::find(self.agent.as_deref(), &self.root(state)?)?)
    }

    /// The agent of `host` as it was set up, to be ended; a program that is not named need not be there.
    ///
    /// # Errors
    ///
    /// The [`Failure`] to show where the one that is named is not there.
    pub fn set_up(&self, host: &HostId, state: &HostState) -> Result<Agent, Failure> {
        match &state.agent {
            Some((supervisor, root)) if self.agent.is_none() => Ok(supervisor::set_up(root, host, *supervisor)),
            Some(_) => self.find(state),
            None => Ok(supervisor::set_up(&self.root(state)?, host, supervisor::of_this_machine())),
        }
    }

    fn root(&self, state: &HostState) -> Result<PathBuf, Failure> {
        let used = state.agent.as_ref().map(|(_, root)| root.as_path());
        let root = self.agent_root.as_deref().or(used).unwrap_or(Path::new("/"));
        std::path::absolute(root).map_err(|source| Failure::usage("cannot use `--agent-root`").caused_by(source))
    }
}
