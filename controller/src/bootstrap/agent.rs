//! The agent on this machine: where it lies, and how what it kept is removed.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use replicator_protocol::ids::{FleetName, HostId, HostUid};
use serde::Deserialize;
use tokio::process::Command;

use super::BootstrapError;
use crate::point::{self, Effect};

/// The agent's program, and the name of its folders.
const NAME: &str = "replicator-host-agent";
/// How long an agent may take to end before it is killed: it comes to a safe point, then sends what it appended last,
/// within 120 s by itself (`host-agent/src/daemon.rs`).
pub const ENDS_WITHIN: Duration = Duration::from_secs(150);

/// One agent: its program and the folder all of its paths lie under.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    /// The program.
    pub binary: PathBuf,
    /// `/`, or the folder several agents on one machine are told apart by.
    pub root: PathBuf,
}

/// Whose agent lives somewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lives {
    /// There is none, or it was never enrolled.
    Nobody,
    /// A host's.
    Member(Member),
    /// What it keeps does not say.
    Unknown,
}

/// The host an agent was enrolled as; what else its file holds is the agent's.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Member {
    /// Its fleet.
    pub fleet: FleetName,
    /// Its name.
    pub host: HostId,
    /// Its number.
    pub uid: HostUid,
}

/// Whether starting did anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Started {
    /// It runs now.
    Now,
    /// It ran already.
    Already,
}

impl Agent {
    /// The agent under `root`: the program given, else the one beside this program.
    ///
    /// # Errors
    ///
    /// [`BootstrapError::NoAgent`].
    pub fn find(binary: Option<&Path>, root: &Path) -> Result<Self, BootstrapError> {
        let binary = binary.map_or_else(beside, Path::to_owned);
        let absolute = std::fs::canonicalize(&binary);
        match absolute {
            Ok(binary) if binary.is_file() => Ok(Self { binary, root: root.to_owned() }),
            Ok(_) | Err(_) => Err(BootstrapError::NoAgent { path: binary }),
        }
    }

    /// The agent under `root`, with the program beside this one, which need not exist.
    pub(super) fn beside(root: &Path) -> Self {
        Self { binary: beside(), root: root.to_owned() }
    }

    /// Demands that its program is there, to be started.
    ///
    /// # Errors
    ///
    /// [`BootstrapError::NoAgent`].
    pub(super) fn demand_program(&self) -> Result<(), BootstrapError> {
        if self.binary.is_file() { Ok(()) } else { Err(BootstrapError::NoAgent { path: self.binary.clone() }) }
    }

    /// Whether all of its paths lie under `root`, however that one is spelled.
    pub(super) fn is_under(&self, root: &Path) -> bool {
        let real = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        real(&self.root) == real(root)
    }

    /// What its program is called, in whatever folder it lies.
    pub(super) fn program(&self) -> &OsStr {
        self.binary.file_name().unwrap_or(OsStr::new(NAME))
    }

    /// The folder of what it keeps.
    pub(super) fn state(&self) -> PathBuf {
        self.root.join("var/lib").join(NAME)
    }

    /// The folder of what it keeps until the next boot.
    pub(super) fn run(&self) -> PathBuf {
        self.root.join("run").join(NAME)
    }

    /// Where a detached agent's number is kept.
    pub(super) fn pid_file(&self) -> PathBuf {
        self.run().join("pid")
    }

    /// Where a detached agent writes its log.
    pub fn log(&self) -> PathBuf {
        self.state().join("agent.log")
    }

    /// The certificate it holds, where it is enrolled.
    pub fn certificate(&self) -> Option<Bytes> {
        let member = self.membership().exists();
        member.then(|| std::fs::read(self.state().join("keys/certificate")).ok()).flatten().map(Bytes::from)
    }

    /// Whose agent lives here.
    pub fn lives(&self) -> Lives {
        match std::fs::read(self.membership()) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_or(Lives::Unknown, Lives::Member),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Lives::Nobody,
            Err(_) => Lives::Unknown,
        }
    }

    /// Demands that no other host's agent lives here than that of `member`, which has no `uid` before it is defined.
    /// With `again` one that was enrolled by the same name is taken over: its log may be lost.
    ///
    /// # Errors
    ///
    /// [`BootstrapError::Occupied`].
    pub(super) fn demand_room(
        &self,
        (fleet, host): (&FleetName, &HostId),
        uid: Option<&HostUid>,
        again: bool,
    ) -> Result<(), BootstrapError> {
        match self.lives() {
            Lives::Member(have) if Some(&have.uid) != uid && !(again && (&have.fleet, &have.host) == (fleet, host)) => {
                let got = (fleet.clone(), host.clone());
                Err(BootstrapError::Occupied { root: self.root.clone(), got, have: Box::new(have) })
            }
            // One that cannot say is taken over only where the operator says so: it refuses by itself.
            Lives::Member(_) | Lives::Nobody | Lives::Unknown => Ok(()),
        }
    }

    /// Written last: a grant half kept is no membership.
    fn membership(&self) -> PathBuf {
        self.state().join("trust/membership.json")
    }

    /// A command of the agent's.
    pub(super) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command.arg("--root").arg(&self.root).args(arguments).kill_on_drop(true);
        command
    }

    /// Removes what the agent kept on this machine. Originals of what it replaced are data: with any left, or where
    /// `keep` says so, its folder is put aside instead, and its new name returned.
    ///
    /// # Errors
    ///
    /// [`BootstrapError::File`].
    pub fn forget(&self, uid: &HostUid, keep: bool) -> Result<Option<PathBuf>, BootstrapError> {
        let gone = |path: &Path, result: std::io::Result<()>| match result {
            Ok(()) => {
                point::behind(Effect::AgentForget);
                Ok(())
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            Err(source) => Err(BootstrapError::File { act: "remove", path: path.to_owned(), source }),
        };
        let (state, run, etc) = (self.state(), self.run(), self.root.join("etc").join(NAME));
        let originals = std::fs::read_dir(state.join("originals")).is_ok_and(|mut entries| entries.next().is_some());
        let aside = state.with_file_name(format!("{NAME}.retired-{uid}"));
        if state.exists() && (originals || keep) {
            put_aside(&state, &aside)?;
        }
        gone(&state, std::fs::remove_dir_all(&state))?;
        // It may be there from a run that was cut off.
        gone(&aside, std::fs::remove_dir_all(aside.join("keys")))?;
        gone(&run, std::fs::remove_dir_all(&run))?;
        gone(&etc, std::fs::remove_file(etc.join("agent.toml")))?;
        // What else lies there is the operator's: a folder that is not empty stays.
        if std::fs::remove_dir(&etc).is_ok() {
            point::behind(Effect::AgentForget);
        }
        Ok(aside.exists().then_some(aside))
    }
}

/// Where the program lies unless anybody says otherwise: beside this one.
fn beside() -> PathBuf {
    let own = std::env::current_exe().ok();
    own.and_then(|path| Some(path.parent()?.join(NAME))).unwrap_or_else(|| PathBuf::from(NAME))
}

fn put_aside(state: &Path, aside: &Path) -> Result<(), BootstrapError> {
    let put = std::fs::rename(state, aside);
    put.map_err(|source| BootstrapError::File { act: "put aside", path: state.to_owned(), source })?;
    point::behind(Effect::AgentAside);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn place_of_another_hosts_agent_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let agent = Agent { binary: NAME.into(), root: folder.path().into() };
        let (acme, other) = (FleetName::parse("acme").unwrap(), FleetName::parse("other").unwrap());
        let (first, second) = (HostId::parse("first").unwrap(), HostId::parse("second").unwrap());
        let [one, two] = ["a", "b"].map(|letter| HostUid::parse(&letter.repeat(32)).unwrap());
        assert_eq!(agent.lives(), Lives::Nobody);
        agent.demand_room((&acme, &second), None, false).unwrap();
        std::fs::create_dir_all(agent.membership().parent().unwrap()).unwrap();
        let json = format!(r#"{{"fleet": "acme", "host": "first", "uid": "{one}", "root": "00"}}"#);
        std::fs::write(agent.membership(), json).unwrap();
        agent.demand_room((&acme, &first), Some(&one), false).unwrap();
        agent.demand_room((&acme, &first), Some(&two), true).unwrap();
        for (by, uid, again) in [
            ((&acme, &first), Some(&two), false),
            ((&acme, &first), None, false),
            ((&acme, &second), Some(&two), true),
            ((&other, &first), None, true),
        ] {
            let refused = agent.demand_room(by, uid, again).unwrap_err();
            assert!(matches!(&refused, BootstrapError::Occupied { have, .. } if have.uid == one), "{refused}");
            assert!(refused.hint().contains("--agent-root"));
        }
        std::fs::write(agent.membership(), "no membership").unwrap();
        assert_eq!(agent.lives(), Lives::Unknown);
    }

    #[test]
    fn originals_and_the_operators_files_are_not_removed() {
        let folder = tempfile::tempdir().unwrap();
        let agent = Agent { binary: NAME.into(), root: folder.path().join("root") };
        let uid = HostUid::parse(&"a".repeat(32)).unwrap();
        let etc = agent.root.join("etc").join(NAME);
        for file in [agent.state().join("originals/x"), etc.join("policy.toml"), etc.join("agent.toml")] {
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, "").unwrap();
        }
        let aside = agent.forget(&uid, false).unwrap().unwrap();
        assert!(aside.join("originals/x").exists());
        assert!(etc.join("policy.toml").exists() && !etc.join("agent.toml").exists());
        std::fs::remove_dir_all(aside).unwrap();
        std::fs::remove_file(etc.join("policy.toml")).unwrap();
        assert_eq!(agent.forget(&uid, false).unwrap(), None);
        assert!(!etc.exists());
    }
}
