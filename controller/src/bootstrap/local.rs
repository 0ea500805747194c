//! A host that is this machine: up, converged, and down again.

use std::path::PathBuf;

use replicator_protocol::ids::{FleetName, HostId, HostUid, Position};
use replicator_protocol::wire::event::ApplyReported;

use super::agent::Agent;
use super::issue::{Issuer, Request};
use super::supervisor::{self, Started};
use super::{BootstrapError, enrol};
use crate::home::{FleetFolder, Home};
use crate::keys::admission;
use crate::planner::Counts;
use crate::publisher::{Publisher, accounts};
use crate::state::event::Supervisor;
use crate::state::{self, Event, History, Log, Status};

/// This machine as a host of a fleet.
pub struct Local<'a> {
    /// The fleet.
    pub fleet: &'a FleetName,
    /// Its folder.
    pub folder: &'a FleetFolder,
    /// The controller's folder.
    pub home: &'a Home,
    /// The host.
    pub host: &'a HostId,
    /// Its log.
    pub log: Log,
    /// Where progress is told, one line at a time.
    pub say: &'a (dyn Fn(String) + Sync),
}

/// A declaration, and what the host reported on it.
#[derive(Debug, Clone, PartialEq)]
pub struct Applied {
    /// The declaration.
    pub position: Position,
    /// The report.
    pub report: ApplyReported,
}

/// How a host went down.
#[derive(Debug, Clone, PartialEq)]
pub enum Down {
    /// It was not up.
    WasNotUp,
    /// Something of it could not be removed; it stays up, so that it can be tried again.
    Stays(Applied),
    /// It is gone.
    Gone {
        /// The last report, where it ever had a declaration.
        applied: Option<Applied>,
        /// Where originals of replaced files were put aside.
        aside: Option<PathBuf>,
    },
}

impl Local<'_> {
    /// Defines, enrols and starts the host where that was not done, then declares what it should be.
    ///
    /// # Errors
    ///
    /// [`BootstrapError`]; run it again, it goes on from there.
    pub async fn up(&self, agent: &Agent, request: &Request, again: bool) -> Result<Applied, BootstrapError> {
        demand_root()?;
        let publisher = Publisher::connect(self.folder).await?;
        let (history, uid) = self.defined(self.log.read().await?).await?;
        let supervisor = supervisor::of_this_machine();
        let history = self.enrolled(agent, history, &uid, (supervisor, again)).await?;
        match supervisor::start(agent, self.host, supervisor).await? {
            Started::Now => (self.say)(format!("Started the agent ({supervisor})")),
            Started::Already => {}
        }
        if history.state.agent != Some((supervisor, agent.root.clone())) {
            let event = Event::AgentSetUp { supervisor, root: agent.root.clone() };
            self.log.append(history, event, state::now()).await?;
        }
        self.issue(&publisher, request).await
    }

    /// Declares what the host should be.
    ///
    /// # Errors
    ///
    /// [`BootstrapError`]; run it again.
    pub async fn converge(&self, request: &Request) -> Result<Applied, BootstrapError> {
        let publisher = Publisher::connect(self.folder).await?;
        self.issue(&publisher, request).await
    }

    /// Declares nothing, and with all of it removed ends the agent and retires the host.
    ///
    /// # Errors
    ///
    /// [`BootstrapError`]; run it again, it goes on from there.
    pub async fn down(&self, agent: &Agent, nothing: &Request) -> Result<Down, BootstrapError> {
        let history = self.log.read().await?;
        let uid = match (history.state.status, &history.state.identity) {
            (Status::Defined | Status::Admitted, Some((_, uid))) => uid.clone(),
            (Status::Unknown | Status::Retired, _) | (Status::Defined | Status::Admitted, None) => {
                return Ok(Down::WasNotUp);
            }
        };
        demand_root()?;
        let (supervisor, root) =
            history.state.agent.clone().unwrap_or_else(|| (supervisor::of_this_machine(), agent.root.clone()));
        let agent = Agent { root, ..agent.clone() };
        let mut applied = None;
        // Without its account it was told already to be nothing, and has said that it is.
        let reachable = crate::keys::accounts::id(self.folder, &uid)?.is_some();
        if reachable && history.state.status == Status::Admitted && !history.state.issued.is_empty() {
            let publisher = Publisher::connect(self.folder).await?;
            supervisor::start(&agent, self.host, supervisor).await?;
            let last = self.issue(&publisher, nothing).await?;
            if !Counts::of(&last.report).is_well() {
                return Ok(Down::Stays(last));
            }
            applied = Some(last);
        }
        supervisor::stop(&agent, self.host, supervisor).await?;
        (self.say)("Stopped the agent".into());
        // Its certificate stays: the collector may have batches of it to verify yet.
        accounts::remove_host(self.folder, &uid).await?;
        let aside = agent.forget(&uid)?;
        self.log.append(self.log.read().await?, Event::HostRetired { uid }, state::now()).await?;
        Ok(Down::Gone { applied, aside })
    }

    async fn issue(&self, publisher: &Publisher, request: &Request) -> Result<Applied, BootstrapError> {
        let issuer = Issuer {
            folder: self.folder,
            fleet: self.fleet,
            host: self.host,
            log: &self.log,
            publisher,
            collected: self.home.collected_events(),
            say: self.say,
        };
        let (position, report) = issuer.issue(request).await?;
        Ok(Applied { position, report })
    }

    async fn defined(&self, history: History) -> Result<(History, HostUid), BootstrapError> {
        match (history.state.status, history.state.identity.clone()) {
            (Status::Defined | Status::Admitted, Some((fleet, uid))) if fleet == *self.fleet => Ok((history, uid)),
            (Status::Defined | Status::Admitted, Some((have, _))) => {
                let (host, got) = (self.host.clone(), self.fleet.clone());
                Err(BootstrapError::OtherFleet { host, got, have })
            }
            (Status::Unknown | Status::Retired, _) | (Status::Defined | Status::Admitted, None) => {
                let uid = admission::new_uid()?;
                let event = Event::HostDefined { fleet: self.fleet.clone(), uid: uid.clone() };
                let history = self.log.append(history, event, state::now()).await?;
                (self.say)(format!("Defined `{}` as {uid}", self.host));
                Ok((history, uid))
            }
        }
    }

    /// Enrols the agent, unless it holds the certificate that the log has.
    async fn enrolled(
        &self,
        agent: &Agent,
        history: History,
        uid: &HostUid,
        (supervisor, again): (Supervisor, bool),
    ) -> Result<History, BootstrapError> {
        let held = agent.certificate();
        if history.state.status == Status::Admitted && held.is_some() && held == history.state.certificate {
            return Ok(history);
        }
        supervisor::stop(agent, self.host, supervisor).await?;
        let (to, log) = ((self.host, uid), (&self.log, history));
        let history = enrol::enrol(agent, self.folder, to, log, again).await?;
        (self.say)(format!("Enrolled the agent as `{}` of the fleet `{}`", self.host, self.fleet));
        Ok(history)
    }
}

/// Demands to be the superuser: agents of this machine are.
///
/// # Errors
///
/// [`BootstrapError::NotRoot`].
pub fn demand_root() -> Result<(), BootstrapError> {
    if rustix::process::geteuid().is_root() { Ok(()) } else { Err(BootstrapError::NotRoot) }
}
