//! A host that is this machine: up, converged, and down again.

use std::path::PathBuf;

use async_nats::Client;
use replicator_protocol::ids::{FleetName, HostId, HostUid, Position, ResourceId};
use replicator_protocol::wire::event::ApplyReported;

use super::agent::{Agent, Lives};
use super::issue::{Issuer, Request};
use super::supervisor::{self, Started};
use super::{Abilities, BootstrapError, enrol};
use crate::home::{FleetFolder, Home};
use crate::keys::admission;
use crate::planner::Counts;
use crate::publisher::Publisher;
use crate::publisher::accounts::{self, AccountsError};
use crate::state::event::Supervisor;
use crate::state::{self, Event, History, Log, Status};
use crate::words;

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
    /// Where each step that the host has finished is told; its report tells all of them again.
    pub step: &'a (dyn Fn(String) + Sync),
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
#[derive(Debug)]
pub enum Down {
    /// It was not up.
    WasNotUp,
    /// Something of it could not be removed; it stays up, so that it can be tried again.
    Stays(Applied),
    /// It is gone.
    Gone {
        /// The last report, where it ever had a declaration.
        applied: Option<Applied>,
        /// Why its agent is not known to have removed everything, where it was let go with that.
        untold: Option<Box<BootstrapError>>,
        /// Why the broker holds its account still, where it was let go with that. It is withdrawn: nobody pushes it
        /// again, and whoever reaches the broker next has it removed.
        held: Option<Box<AccountsError>>,
        /// Where what the agent kept was put aside.
        aside: Option<PathBuf>,
        /// What it was given and, as far as is known, has still.
        left: Vec<ResourceId>,
    },
}

/// A host that was retired.
struct Retired {
    /// Its log, with that.
    history: History,
    /// Where what its agent kept was put aside.
    aside: Option<PathBuf>,
    /// Why the broker holds its account still.
    held: Option<Box<AccountsError>>,
    /// What it has still.
    left: Vec<ResourceId>,
}

/// The broker of a host that is retired, as who may remove its account; without one for a host that has none.
type ItsBroker = Result<Option<Client>, AccountsError>;

impl Local<'_> {
    /// Defines, enrols and starts the host where that was not done, then declares what it should be. `history` is its
    /// log.
    ///
    /// # Errors
    ///
    /// [`BootstrapError`]; run it again, it goes on from there.
    pub async fn up(
        &self,
        agent: &Agent,
        mut history: History,
        request: &Request,
        again: bool,
    ) -> Result<Applied, BootstrapError> {
        demand_root()?;
        self.demand_same_root(agent, &history)?;
        let live = history.state.identity.as_ref().filter(|_| history.state.status != Status::Retired);
        let uid = live.map(|(_, uid)| uid);
        agent.demand_room((self.fleet, self.host), uid, again)?;
        let publisher = Publisher::connect(self.folder).await?;
        if history.state.status == Status::Retiring {
            (self.say)(format!("`{}` was going down when that was cut off; it goes down first", self.host));
            let left;
            let broker = self.reached(&history).await.map_err(|why| self.not_retired(why))?;
            Retired { history, left, .. } = self.retire(agent, history, Ok(broker), false).await?;
            if !left.is_empty() {
                (self.say)(format!("`{}` could not be told to remove {}", self.host, words::listed(&left)));
            }
        }
        let (mut history, uid) = self.defined(history).await?;
        let supervisor = supervisor::of_this_machine();
        if history.state.agent != Some((supervisor, agent.root.clone())) {
            // Before anything is on the machine: cut off, it is found again.
            let event = Event::AgentSetUp { supervisor, root: agent.root.clone() };
            history = self.log.append(history, event, state::now()).await?;
        }
        let (history, abilities) = Box::pin(self.enrolled(agent, history, &uid, (supervisor, again))).await?;
        match supervisor::start(agent, self.host, supervisor).await? {
            Started::Now => (self.say)(format!("Started the agent ({supervisor})")),
            Started::Already => {}
        }
        if let Some(abilities) = abilities {
            abilities.demand(self.host, &request.compiled.resources)?;
        }
        self.issue(&publisher, history, request).await
    }

    /// An agent elsewhere would be a second one for the same host.
    fn demand_same_root(&self, agent: &Agent, history: &History) -> Result<(), BootstrapError> {
        match &history.state.agent {
            Some((_, have)) if history.state.status == Status::Admitted && !agent.is_under(have) => {
                let (host, got, have) = (self.host.clone(), agent.root.clone(), have.clone());
                Err(BootstrapError::OtherRoot { host, got, have })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Declares what the host should be.
    ///
    /// # Errors
    ///
    /// [`BootstrapError`]; run it again.
    pub async fn converge(&self, request: &Request) -> Result<Applied, BootstrapError> {
        let publisher = Publisher::connect(self.folder).await?;
        self.issue(&publisher, self.log.read().await?, request).await
    }

    /// Declares nothing, and with all of it removed ends the agent and retires the host. With `abandon` it is retired
    /// in any case, with whatever its agent did not remove and what the broker was not told. Another host's agent that
    /// lives in the place of its own is not touched. `history` is its log.
    ///
    /// # Errors
    ///
    /// [`BootstrapError::NotTold`] where the agent cannot be told, and [`BootstrapError::NotRetired`] where the broker
    /// cannot, and [`BootstrapError::Occupied`]: nothing was recorded or removed. Any other [`BootstrapError`]: run it again, it goes on from there.
    pub async fn down(
        &self,
        agent: &Agent,
        mut history: History,
        nothing: &Request,
        abandon: bool,
    ) -> Result<Down, BootstrapError> {
        let uid = match (history.state.status, &history.state.identity) {
            (Status::Defined | Status::Admitted | Status::Retiring, Some((_, uid))) => uid.clone(),
            (Status::Unknown | Status::Retired, _) | (Status::Defined | Status::Admitted | Status::Retiring, None) => {
                return Ok(Down::WasNotUp);
            }
        };
        demand_root()?;
        if history.state.status == Status::Admitted && !abandon {
            placed(agent, &history).0.demand_room((self.fleet, self.host), Some(&uid), false)?;
        }
        // Before anything is begun: what is begun without it is neither up nor down until it is back.
        let broker = match self.reached(&history).await {
            Err(why) if !abandon => return Err(self.not_retired(why)),
            broker => broker,
        };
        let (mut applied, mut untold) = (None, None);
        if history.state.status == Status::Admitted && !history.state.issued.is_empty() {
            match self.emptied(agent, history, &uid, nothing).await {
                Ok(Some(last)) if !abandon && !Counts::of(&last.report).is_well() => return Ok(Down::Stays(last)),
                Ok(last) => applied = last,
                Err(error) if abandon => untold = Some(Box::new(error)),
                Err(error) => return Err(error),
            }
            // Somebody else may have written to it while the host applied.
            history = self.log.read().await?;
        }
        let Retired { aside, held, left, .. } = self.retire(agent, history, broker, abandon).await?;
        Ok(Down::Gone { applied, untold, held, aside, left })
    }

    /// The broker, where it has an account of the host's.
    async fn reached(&self, history: &History) -> ItsBroker {
        let Some((_, uid)) = &history.state.identity else { return Ok(None) };
        if !crate::keys::accounts::is_known(self.folder, uid)? {
            return Ok(None);
        }
        accounts::connect(self.folder).await.map(Some)
    }

    fn not_retired(&self, why: AccountsError) -> BootstrapError {
        BootstrapError::NotRetired { host: self.host.clone(), why: Box::new(why) }
    }

    /// Has the agent remove everything. `None` where it did already, and can be told nothing more.
    async fn emptied(
        &self,
        agent: &Agent,
        history: History,
        uid: &HostUid,
        nothing: &Request,
    ) -> Result<Option<Applied>, BootstrapError> {
        let not_told = |why| BootstrapError::NotTold { host: self.host.clone(), why: Box::new(why) };
        if !crate::keys::accounts::is_kept(self.folder, uid)? {
            // An earlier version removed the account of a host that had nothing before it recorded anything.
            let emptied = history.state.has_nothing();
            return if emptied { Ok(None) } else { Err(not_told(BootstrapError::NoAccount)) };
        }
        let (agent, supervisor) = placed(agent, &history);
        agent.demand_room((self.fleet, self.host), Some(uid), false)?;
        let publisher = Publisher::connect(self.folder).await?;
        supervisor::start(&agent, self.host, supervisor).await.map_err(not_told)?;
        self.issue(&publisher, history, nothing).await.map(Some)
    }

    /// Ends the agent and the account of a host that has nothing any more, and records it: first that it begins, so
    /// that one that was cut off is finished, whoever comes next. With `abandon` the broker need not be told.
    async fn retire(
        &self,
        agent: &Agent,
        mut history: History,
        broker: ItsBroker,
        abandon: bool,
    ) -> Result<Retired, BootstrapError> {
        let Some((_, uid)) = history.state.identity.clone() else {
            return Ok(Retired { history, aside: None, held: None, left: Vec::new() });
        };
        let left: Vec<_> = history.state.known.keys().cloned().collect();
        let (agent, supervisor) = placed(agent, &history);
        let was_admitted = history.state.certificate.is_some();
        if history.state.status != Status::Retiring {
            let begun = Event::RetirementBegun { uid: uid.clone() };
            history = self.log.append(history, begun, state::now()).await?;
        }
        let is_own = is_own(&agent, &uid, was_admitted);
        if is_own {
            supervisor::stop(&agent, self.host, supervisor).await?;
            (self.say)("Stopped the agent".into());
        } else {
            let root = agent.root.display();
            (self.say)(format!("The agent under `{root}` is not known as that of `{}` and stays as it is", self.host));
        }
        // Its certificate stays: the collector may have batches of it to verify yet. First: from here on nobody pushes
        // the account again, and whoever is about to sees it gone afterwards.
        accounts::withdraw(self.folder, &uid)?;
        let removed = match broker {
            Ok(Some(broker)) => accounts::remove_host(self.folder, &broker, &uid).await,
            Ok(None) => Ok(()),
            Err(error) => Err(error),
        };
        let held = match removed {
            Err(error) if abandon => Some(Box::new(error)),
            removed => removed.map(|()| None).map_err(|why| self.not_retired(why))?,
        };
        // What it wrote down of things that stay is kept for whoever removes them.
        let aside = if is_own { agent.forget(&uid, !left.is_empty())? } else { None };
        let history = self.log.append(history, Event::HostRetired { uid }, state::now()).await?;
        Ok(Retired { history, aside, held, left })
    }

    async fn issue(
        &self,
        publisher: &Publisher,
        history: History,
        request: &Request,
    ) -> Result<Applied, BootstrapError> {
        let issuer = Issuer {
            folder: self.folder,
            fleet: self.fleet,
            host: self.host,
            log: &self.log,
            publisher,
            collected: self.home.collected_events(),
            say: self.say,
            step: self.step,
        };
        let (position, report) = issuer.issue(history, request).await?;
        Ok(Applied { position, report })
    }

    async fn defined(&self, history: History) -> Result<(History, HostUid), BootstrapError> {
        match (history.state.status, history.state.identity.clone()) {
            (Status::Defined | Status::Admitted, Some((fleet, uid))) if fleet == *self.fleet => Ok((history, uid)),
            (Status::Defined | Status::Admitted, Some((have, _))) => {
                let (host, got) = (self.host.clone(), self.fleet.clone());
                Err(BootstrapError::OtherFleet { host, got, have })
            }
            (Status::Unknown | Status::Retiring | Status::Retired, _) | (Status::Defined | Status::Admitted, None) => {
                let uid = admission::new_uid()?;
                let event = Event::HostDefined { fleet: self.fleet.clone(), uid: uid.clone() };
                let history = self.log.append(history, event, state::now()).await?;
                (self.say)(format!("Defined `{}` as {uid}", self.host));
                Ok((history, uid))
            }
        }
    }

    /// Enrols the agent, unless it holds the certificate that the log has, and has its account; `again` always does.
    /// Returns what it says then that it can apply.
    async fn enrolled(
        &self,
        agent: &Agent,
        history: History,
        uid: &HostUid,
        (supervisor, again): (Supervisor, bool),
    ) -> Result<(History, Option<Abilities>), BootstrapError> {
        enrol::others_ended(agent).await?;
        let held = agent.certificate();
        let is_member = history.state.status == Status::Admitted && held.is_some() && held == history.state.certificate;
        if !again && is_member && crate::keys::accounts::is_kept(self.folder, uid)? {
            return Ok((history, None));
        }
        // Whoever enrolled meanwhile has it.
        agent.demand_room((self.fleet, self.host), Some(uid), again)?;
        let former = supervisor::set_up(&agent.root, self.host, supervisor);
        let ran = supervisor::runs(agent, self.host, supervisor).await;
        supervisor::stop(agent, self.host, supervisor).await?;
        let (to, log) = ((self.host, uid), (&self.log, history));
        let enrolled = match enrol::enrol(agent, self.folder, to, log, again).await {
            Err(error) if ran => {
                self.runs_again(&former, supervisor).await;
                return Err(error);
            }
            enrolled => enrolled?,
        };
        (self.say)(format!("Enrolled the agent as `{}` of the fleet `{}`", self.host, self.fleet));
        Ok(enrolled)
    }

    /// Starts an agent that was ended to be enrolled, and was not.
    async fn runs_again(&self, former: &Agent, supervisor: Supervisor) {
        (self.say)(match supervisor::start(former, self.host, supervisor).await {
            Ok(_) => "The agent that ran before runs again".into(),
            Err(error) => format!("The agent that ran before does not run: {}", words::chain_of(&error)),
        });
    }
}

/// Whether the agent may be ended and forgotten for the host `uid`: it is its own, or was never enrolled. One that does
/// not say whose it is can only be that of a host that `was_admitted`.
fn is_own(agent: &Agent, uid: &HostUid, was_admitted: bool) -> bool {
    match agent.lives() {
        Lives::Nobody => true,
        Lives::Member(member) => member.uid == *uid,
        Lives::Unknown => was_admitted,
    }
}

/// The agent where the log says it was set up, and what keeps it running there.
fn placed(agent: &Agent, history: &History) -> (Agent, Supervisor) {
    let placed = history.state.agent.clone();
    let (supervisor, root) = placed.unwrap_or_else(|| (supervisor::of_this_machine(), agent.root.clone()));
    (Agent { root, ..agent.clone() }, supervisor)
}

/// Demands to be the superuser: agents of this machine are.
///
/// # Errors
///
/// [`BootstrapError::NotRoot`].
pub fn demand_root() -> Result<(), BootstrapError> {
    if rustix::process::geteuid().is_root() { Ok(()) } else { Err(BootstrapError::NotRoot) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::App;

    fn uid(letter: &str) -> HostUid {
        HostUid::parse(&letter.repeat(32)).unwrap()
    }

    /// An agent under `root` with a ledger, of the host `first`, which is `uid`.
    fn agent_of(root: &std::path::Path, uid: &HostUid) -> Agent {
        let agent = Agent { binary: "/no/agent".into(), root: root.to_owned() };
        std::fs::create_dir_all(agent.state().join("trust")).unwrap();
        std::fs::create_dir_all(agent.state().join("ledger")).unwrap();
        let json = format!(r#"{{"fleet": "acme", "host": "first", "uid": "{uid}", "root": "00"}}"#);
        std::fs::write(agent.state().join("trust/membership.json"), json).unwrap();
        agent
    }

    #[tokio::test]
    async fn host_that_was_only_defined_is_retired_without_touching_the_agent_of_another() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path().join("home")).unwrap();
        let (fleet, host) = (FleetName::parse("acme").unwrap(), HostId::parse("second").unwrap());
        let fleet_folder = home.fleet(&fleet);
        for (owner, stays) in [("a", true), ("b", false)] {
            let agent = agent_of(&folder.path().join("root"), &uid(owner));
            let log = Log::local(&home, &App::parse(&format!("app-{owner}")).unwrap(), &host).unwrap();
            let history = log.read().await.unwrap();
            let defined = Event::HostDefined { fleet: fleet.clone(), uid: uid("b") };
            let history = log.append(history, defined, state::now()).await.unwrap();
            let set_up = Event::AgentSetUp { supervisor: Supervisor::Detached, root: agent.root.clone() };
            let history = log.append(history, set_up, state::now()).await.unwrap();
            let said = std::sync::Mutex::new(Vec::new());
            let say = |line: String| said.lock().unwrap().push(line);
            let local =
                Local { fleet: &fleet, folder: &fleet_folder, home: &home, host: &host, log, say: &say, step: &|_| {} };
            let retired = local.retire(&agent, history, Ok(None), false).await.unwrap();
            assert_eq!(retired.history.state.status, Status::Retired);
            assert_eq!(agent.state().join("ledger").exists(), stays, "{owner}");
            assert_eq!(agent.lives() != Lives::Nobody, stays, "{owner}");
            let stopped = said.lock().unwrap().iter().any(|line| line.contains("Stopped"));
            assert_eq!(stopped, !stays, "{owner}");
        }
    }
}
