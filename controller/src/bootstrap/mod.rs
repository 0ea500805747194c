//! From a spec to a host that is enrolled, running and told what to be: this machine, without SSH.
//!
//! Comes in: what was compiled. Goes out: a declaration issued, published and reported on. Every step can be
//! run again, and goes on from where the last run stopped: what was done is in the provisioning log first.

pub mod abilities;
pub mod agent;
mod detached;
mod enrol;
pub mod images;
mod issue;
pub mod local;
mod process;
pub mod since;
pub mod supervisor;
mod systemd;

use std::path::PathBuf;

use replicator_protocol::ids::{FleetName, HostId, InvalidId, Position, ResourceId};
use replicator_protocol::refusal::Refusal;

pub use abilities::Abilities;
pub use agent::Agent;
pub use images::ImagesError;
pub use issue::Request;
pub use local::{Applied, Down, Local, demand_root};
pub use since::Since;

use crate::keys::KeysError;
use crate::keys::admission::AdmissionError;
use crate::publisher::accounts::AccountsError;
use crate::publisher::{OTHER_LOG, PublishError};
use crate::state::LogError;
use crate::words;

/// Why a host is not up; what was recorded stays, and the next run goes on from there.
#[derive(Debug, thiserror::Error)]
pub enum BootstrapError {
    /// The log refused.
    #[error(transparent)]
    Log(#[from] LogError),
    /// A key cannot be had.
    #[error(transparent)]
    Keys(#[from] KeysError),
    /// The host is not admitted.
    #[error(transparent)]
    Admission(#[from] AdmissionError),
    /// Its account could not be pushed or removed.
    #[error(transparent)]
    Accounts(#[from] AccountsError),
    /// The declaration was not published, or no report came.
    #[error(transparent)]
    Publish(#[from] PublishError),
    /// Something signed or sealed is refused.
    #[error(transparent)]
    Refusal(#[from] Refusal),
    /// Not the superuser.
    #[error("cannot set up an agent without being root")]
    NotRoot,
    /// There is no agent to start.
    #[error("there is no agent at `{}`", path.display())]
    NoAgent {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// The agent could not be run.
    #[error("cannot run `{}`", path.display())]
    Start {
        /// The agent.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The agent cannot be told to remove anything. Nothing was recorded, declared or removed; what starts it may have
    /// been set up, and it may have been started.
    #[error("the agent of `{host}` cannot be told to remove anything")]
    NotTold {
        /// The host.
        host: HostId,
        /// Why.
        #[source]
        why: Box<BootstrapError>,
    },
    /// The broker cannot be told that the host is gone. Nothing was begun, or what was begun before is as it was.
    #[error("`{host}` cannot be retired without its broker")]
    NotRetired {
        /// The host.
        host: HostId,
        /// Why.
        #[source]
        why: Box<AccountsError>,
    },
    /// The host cannot reach the broker.
    #[error("the host has no account at the broker any more")]
    NoAccount,
    /// The agent ended at once.
    #[error("the agent ended at once ({status}): `{last}`")]
    Ended {
        /// How.
        status: String,
        /// Its log.
        log: PathBuf,
        /// The end of that.
        last: String,
    },
    /// The agent does not end.
    #[error("the agent (process {pid}) does not end")]
    StillRuns {
        /// Its process.
        pid: i32,
    },
    /// systemd refused.
    #[error("`systemctl {command}` failed: `{said}`")]
    Systemd {
        /// What was asked of it.
        command: String,
        /// What it said.
        said: String,
    },
    /// The agent broke the exchange off.
    #[error("the agent did not enrol: `{said}`")]
    Cut {
        /// What it said.
        said: String,
    },
    /// The bundle could not be written down.
    #[error("cannot write the bundle")]
    Bundle(#[source] serde_json::Error),
    /// Something took too long.
    #[error("{what} took longer than {seconds} s")]
    Late {
        /// What.
        what: &'static str,
        /// The bound.
        seconds: u64,
    },
    /// A file could not be written or removed.
    #[error("cannot {act} `{}`", path.display())]
    File {
        /// `write`, `remove`.
        act: &'static str,
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A folder could not be made.
    #[error(transparent)]
    Home(#[from] crate::home::HomeError),
    /// The host is another fleet's.
    #[error("`{host}` is a host of the fleet `{have}` (got `{got}`)")]
    OtherFleet {
        /// The host.
        host: HostId,
        /// The fleet asked for.
        got: FleetName,
        /// Its own.
        have: FleetName,
    },
    /// The host's agent lives elsewhere on this machine.
    #[error("the agent of `{host}` is set up under `{}` (got `{}`)", have.display(), got.display())]
    OtherRoot {
        /// The host.
        host: HostId,
        /// The folder asked for.
        got: PathBuf,
        /// Its own.
        have: PathBuf,
    },
    /// The agent of another host lives there. Nothing was touched.
    #[error("under `{}` lives the agent of `{}` of the fleet `{}` (got `{}` of `{}`)",
        root.display(), have.host, have.fleet, got.1, got.0)]
    Occupied {
        /// The folder.
        root: PathBuf,
        /// The host asked for, and its fleet.
        got: (FleetName, HostId),
        /// Whose agent it is.
        have: Box<agent::Member>,
    },
    /// There is nothing to converge.
    #[error("`{host}` is not up: it is {status}")]
    NotUp {
        /// The host.
        host: HostId,
        /// How far it has come.
        status: crate::state::Status,
    },
    /// The host said that it cannot apply some of what is to be declared; nothing was issued.
    #[error("`{host}` cannot apply the kinds {}, such as `{first}`", words::listed(kinds))]
    CannotApply {
        /// The host.
        host: HostId,
        /// All kinds that it cannot, sorted.
        kinds: Vec<&'static str>,
        /// The first resource of such a kind.
        first: ResourceId,
    },
    /// Others issue at the same time.
    #[error("others issue declarations for `{host}` at the same time")]
    Busy {
        /// The host.
        host: HostId,
    },
    /// Somebody issued a later declaration, or another of the same number, and published it first.
    #[error("declaration {got} of `{host}` was not published: declaration {have} lies at the broker{}", issued(by.as_ref()))]
    Overtaken {
        /// The host.
        host: HostId,
        /// What was to be published.
        got: u64,
        /// What lies there.
        have: u64,
        /// Who issued that, and when, in milliseconds since the Unix epoch; unknown to a log it was not issued by.
        by: Option<(String, u64)>,
    },
    /// The host refused the declaration whole.
    #[error("`{host}` refuses declaration {sequence} ({code}){}", listed(fields))]
    Refused {
        /// The host.
        host: HostId,
        /// The declaration.
        sequence: u64,
        /// The code it gave.
        code: String,
        /// What it added.
        fields: std::collections::BTreeMap<String, String>,
    },
    /// The host holds another declaration under the same number.
    #[error("`{host}` holds another declaration {}, and applied neither", position.sequence)]
    Equivocation {
        /// The host.
        host: HostId,
        /// The number.
        position: Position,
    },
    /// A later one took its place.
    #[error("declaration {} of `{host}` was superseded before it was applied", position.sequence)]
    Superseded {
        /// The host.
        host: HostId,
        /// The number.
        position: Position,
    },
    /// A name that is none.
    #[error(transparent)]
    Name(#[from] InvalidId),
}

fn issued(by: Option<&(String, u64)>) -> String {
    let Some((by, at)) = by else { return ", issued by a controller with another log".into() };
    let time = words::moment(*at).unwrap_or_else(|| "at an unknown time".into());
    format!(", issued by {by}, {time}")
}

fn listed(fields: &std::collections::BTreeMap<String, String>) -> String {
    let fields: Vec<_> = fields.iter().map(|(name, value)| format!("{name} `{value}`")).collect();
    if fields.is_empty() { String::new() } else { format!(": {}", fields.join(", ")) }
}

impl BootstrapError {
    /// One line that names the next action.
    pub fn hint(&self) -> String {
        match self {
            Self::Log(error) => error.hint(),
            Self::Keys(error) => error.hint(),
            Self::Admission(error) => error.hint(),
            Self::Accounts(error) => error.hint(),
            Self::Publish(error) => error.hint(),
            Self::Refusal(refusal) => refusal.code.hint().into(),
            Self::Home(error) => error.hint(),
            Self::NotRoot => "run it with `sudo`: the agent writes files and speaks with the container runtime".into(),
            Self::NoAgent { .. } => "name it with `--agent PATH`".into(),
            Self::Start { path, .. } => format!("see that `{}` is a program for this machine", path.display()),
            Self::NotTold { host, why } => {
                let is_unchanged = matches!(**why, Self::NoAgent { .. } | Self::NoAccount);
                let so_far = if is_unchanged {
                    "nothing was changed"
                } else {
                    "nothing was declared or removed, though the agent may have been set up to start, or started"
                };
                let mend = if matches!(**why, Self::NoAgent { .. }) {
                    "name it with `--agent PATH`".into()
                } else {
                    format!("mend that, or set the agent up anew with `replicator host up {host} --again`")
                };
                format!(
                    "{so_far}; {mend}, then run it again; where that cannot be, `--abandon` retires the host and leaves \
                     on the machine what it has"
                )
            }
            Self::NotRetired { why, .. } => format!(
                "{}; then run the command again; where that cannot be, `host down --abandon` retires the host with what \
                 it has, and the broker is told later",
                why.hint()
            ),
            Self::NoAccount => "give it one with `replicator host up`".into(),
            Self::Ended { log, .. } => format!(
                "see to that, or have the agent set up anew with `replicator host up --again`; more in `{}`",
                log.display()
            ),
            Self::StillRuns { pid } => format!("see what it waits for: `cat /proc/{pid}/stack`"),
            Self::Systemd { .. } => "see `systemctl status` and `journalctl -u` of the agent's unit".into(),
            Self::Cut { .. } => {
                "if this machine belongs to another controller, leave it; if not, run `replicator host up` with `--again`"
                    .into()
            }
            Self::Bundle(_)
            | Self::Late { .. }
            | Self::Busy { .. }
            | Self::Overtaken { by: Some(_), .. }
            | Self::Superseded { .. } => {
                "run the command again: it goes on from there".into()
            }
            // It counts on from its own log, and never reaches what the other counts on from.
            Self::Overtaken { by: None, .. } => OTHER_LOG.into(),
            Self::File { path, .. } => format!("check who owns `{}` and whether the disk is full", path.display()),
            Self::OtherFleet { have, .. } => format!("use `--context {have}`"),
            Self::OtherRoot { have, .. } => format!(
                "leave `--agent-root` away, or write `--agent-root {}`; to move the agent, take the host down first",
                have.display()
            ),
            Self::Occupied { got, have, .. } if (&got.0, &got.1) == (&have.fleet, &have.host) => format!(
                "its number there, {}, is not in this log: use the home and the `state.app` it was enrolled with; where \
                 that log is lost, `replicator host up {} --again` enrols it anew; for another agent beside it write \
                 `--agent-root DIR`",
                have.uid, have.host
            ),
            Self::Occupied { got, have, .. } => format!(
                "for another agent beside it write `--agent-root DIR`; for `{}` in its place take that host down first: \
                 `replicator --context {} host down {}`; where its own agent is gone for good, `replicator host down {} \
                 --abandon` retires it",
                got.1, have.fleet, have.host, got.1
            ),
            Self::CannotApply { .. } => {
                "install on that host what they need, a container runtime, and wait for its next heartbeat; or leave them \
                 out"
                    .into()
            }
            Self::NotUp { host, .. } => format!("run `replicator host up {host}`"),
            Self::Refused { code, .. } => {
                let known = replicator_protocol::refusal::Code::ALL.iter().find(|known| known.as_str() == code.as_str());
                known.map_or_else(|| "see `replicator events`".into(), |known| known.hint().into())
            }
            Self::Equivocation { .. } => {
                "another controller signs with the same key, or the log was restored from a backup: find out which".into()
            }
            Self::Name(_) => "correct the name".into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agent_that_cannot_be_told_is_said_to_be_unchanged_only_where_it_is() {
        let hint = |why| {
            let host = HostId::parse("acme").unwrap();
            BootstrapError::NotTold { host, why: Box::new(why) }.hint()
        };
        for before_anything in [BootstrapError::NoAgent { path: "/agent".into() }, BootstrapError::NoAccount] {
            assert!(hint(before_anything).contains("nothing was changed"));
        }
        // Its unit is written and enabled by then.
        let restart = BootstrapError::Systemd { command: "restart a.service".into(), said: "no".into() };
        let ended = BootstrapError::Ended { status: "3".into(), log: "/log".into(), last: "no".into() };
        for begun in [restart, ended] {
            let hint = hint(begun);
            assert!(!hint.contains("nothing was changed") && hint.contains("may have been set up"), "{hint}");
        }
    }
}
