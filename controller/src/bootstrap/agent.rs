//! The agent on this machine: where it lies, how it is started, and how it is ended for good.

use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use bytes::Bytes;
use replicator_protocol::ids::{HostId, HostUid};
use tokio::process::Command;

use super::process::Process;
use super::{BootstrapError, systemd};
use crate::home::private_folder;
use crate::state::event::Supervisor;

/// The agent's program, and the name of its folders.
const NAME: &str = "replicator-host-agent";
/// How long a started agent is watched for an early end.
const SETTLE: Duration = Duration::from_millis(1500);
/// How often.
const LOOK: Duration = Duration::from_millis(100);

/// One agent: its program and the folder all of its paths lie under.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    /// The program.
    pub binary: PathBuf,
    /// `/`, or the folder several agents on one machine are told apart by.
    pub root: PathBuf,
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
        let own = std::env::current_exe().ok().and_then(|path| Some(path.parent()?.join(NAME)));
        let binary = binary.map(Path::to_owned).or(own).unwrap_or_else(|| PathBuf::from(NAME));
        let absolute = std::fs::canonicalize(&binary);
        match absolute {
            Ok(binary) if binary.is_file() => Ok(Self { binary, root: root.to_owned() }),
            Ok(_) | Err(_) => Err(BootstrapError::NoAgent { path: binary }),
        }
    }

    fn state(&self) -> PathBuf {
        self.root.join("var/lib").join(NAME)
    }

    fn run(&self) -> PathBuf {
        self.root.join("run").join(NAME)
    }

    fn pid_file(&self) -> PathBuf {
        self.run().join("pid")
    }

    /// Where a detached agent writes its log.
    pub fn log(&self) -> PathBuf {
        self.state().join("agent.log")
    }

    /// The certificate it holds, where it is enrolled.
    pub fn certificate(&self) -> Option<Bytes> {
        // Written last: a grant half kept is no membership.
        let member = self.state().join("trust/membership.json").exists();
        member.then(|| std::fs::read(self.state().join("keys/certificate")).ok()).flatten().map(Bytes::from)
    }

    /// A command of the agent's.
    pub(super) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command.arg("--root").arg(&self.root).args(arguments).kill_on_drop(true);
        command
    }

    /// What keeps agents running on this machine.
    pub fn supervisor() -> Supervisor {
        if Path::new("/run/systemd/system").is_dir() { Supervisor::Systemd } else { Supervisor::Detached }
    }

    /// Starts it, unless it runs.
    ///
    /// # Errors
    ///
    /// [`BootstrapError`]; start it again.
    pub async fn start(&self, host: &HostId, supervisor: Supervisor) -> Result<Started, BootstrapError> {
        match supervisor {
            Supervisor::Systemd => systemd::start(self, host).await,
            Supervisor::Detached => self.start_detached().await,
        }
    }

    /// Ends it, and whatever would start it again.
    ///
    /// # Errors
    ///
    /// [`BootstrapError`].
    pub async fn stop(&self, host: &HostId, supervisor: Supervisor) -> Result<(), BootstrapError> {
        match supervisor {
            Supervisor::Systemd => systemd::stop(self, host).await,
            Supervisor::Detached => {
                let Some(process) = Process::read(&self.pid_file()) else { return Ok(()) };
                if process.end().await { Ok(()) } else { Err(BootstrapError::StillRuns { pid: process.pid() }) }
            }
        }
    }

    async fn start_detached(&self) -> Result<Started, BootstrapError> {
        if Process::read(&self.pid_file()).is_some() {
            return Ok(Started::Already);
        }
        let file = |path: &Path| {
            let path = path.to_owned();
            move |source| BootstrapError::File { act: "write", path, source }
        };
        private_folder(&self.run())?;
        private_folder(&self.state())?;
        let path = self.log();
        let log = std::fs::OpenOptions::new().create(true).append(true).mode(0o600).open(&path);
        let log = log.map_err(file(&path))?;
        let errors = log.try_clone().map_err(file(&path))?;
        // `setsid` becomes the agent: same number, a session of its own, nothing of this terminal.
        let mut command = std::process::Command::new("setsid");
        command.arg(&self.binary).arg("--root").arg(&self.root).arg("run");
        command.stdin(Stdio::null()).stdout(log).stderr(errors).current_dir("/");
        let child = command.spawn().map_err(|source| BootstrapError::Start { path: self.binary.clone(), source })?;
        // Kept before it is waited for: an agent that nobody can find is one that nobody can end.
        let path = self.pid_file();
        if let Some(process) = i32::try_from(child.id()).ok().and_then(Process::of) {
            process.keep(&path).map_err(|source| BootstrapError::File { act: "write", path, source })?;
        }
        self.settle(child).await
    }

    /// An agent that cannot run says so at once: the end of its log is the reason.
    async fn settle(&self, mut child: std::process::Child) -> Result<Started, BootstrapError> {
        for _ in 0..(SETTLE.as_millis() / LOOK.as_millis()) {
            tokio::time::sleep(LOOK).await;
            if let Ok(Some(status)) = child.try_wait() {
                return Err(BootstrapError::Ended { status: status.to_string(), log: self.log(), last: self.last() });
            }
        }
        Ok(Started::Now)
    }

    fn last(&self) -> String {
        let log = std::fs::read(self.log()).unwrap_or_default();
        let text = String::from_utf8_lossy(&log);
        let lines: Vec<_> = text.lines().rev().take(3).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join("; ")
    }

    /// Removes what the agent kept on this machine. Originals of what it replaced are data: with any left, its
    /// folder is put aside instead, and its new name returned.
    ///
    /// # Errors
    ///
    /// [`BootstrapError::File`].
    pub fn forget(&self, uid: &HostUid) -> Result<Option<PathBuf>, BootstrapError> {
        let gone = |path: &Path, result: std::io::Result<()>| match result {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            Err(source) => Err(BootstrapError::File { act: "remove", path: path.to_owned(), source }),
        };
        let (state, run, etc) = (self.state(), self.run(), self.root.join("etc").join(NAME));
        let originals = std::fs::read_dir(state.join("originals")).is_ok_and(|mut entries| entries.next().is_some());
        let aside = state.with_file_name(format!("{NAME}.retired-{uid}"));
        if originals {
            gone(&state, std::fs::rename(&state, &aside))?;
            gone(&aside, std::fs::remove_dir_all(aside.join("keys")))?;
        } else {
            gone(&state, std::fs::remove_dir_all(&state))?;
        }
        gone(&run, std::fs::remove_dir_all(&run))?;
        gone(&etc, std::fs::remove_file(etc.join("agent.toml")))?;
        // What else lies there is the operator's: a folder that is not empty stays.
        let _ = std::fs::remove_dir(&etc);
        Ok(originals.then_some(aside))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn agent(folder: &Path, script: &str) -> Agent {
        let binary = folder.join("agent");
        std::fs::write(&binary, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&binary, std::fs::Permissions::from_mode(0o755)).unwrap();
        Agent::find(Some(&binary), &folder.join("root")).unwrap()
    }

    fn host() -> HostId {
        HostId::parse("acme").unwrap()
    }

    #[tokio::test]
    async fn detached_agent_is_started_once_and_ended() {
        let folder = tempfile::tempdir().unwrap();
        let agent = agent(folder.path(), "exec sleep 60");
        assert_eq!(agent.start(&host(), Supervisor::Detached).await.unwrap(), Started::Now);
        let process = Process::read(&agent.pid_file()).unwrap();
        assert_eq!(agent.start(&host(), Supervisor::Detached).await.unwrap(), Started::Already);
        assert_eq!(Process::read(&agent.pid_file()), Some(process));
        agent.stop(&host(), Supervisor::Detached).await.unwrap();
        assert_eq!(Process::of(process.pid()), None);
        agent.stop(&host(), Supervisor::Detached).await.unwrap();
    }

    #[tokio::test]
    async fn agent_that_ends_at_once_is_told_with_its_last_words() {
        let folder = tempfile::tempdir().unwrap();
        let agent = agent(folder.path(), "echo no disk >&2; exit 3");
        let Err(BootstrapError::Ended { last, .. }) = agent.start(&host(), Supervisor::Detached).await else {
            panic!("it runs");
        };
        assert_eq!(last, "no disk");
    }

    #[test]
    fn originals_and_the_operators_files_are_not_removed() {
        let folder = tempfile::tempdir().unwrap();
        let agent = agent(folder.path(), "");
        let uid = HostUid::parse(&"a".repeat(32)).unwrap();
        let etc = agent.root.join("etc").join(NAME);
        for file in [agent.state().join("originals/x"), etc.join("policy.toml"), etc.join("agent.toml")] {
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, "").unwrap();
        }
        let aside = agent.forget(&uid).unwrap().unwrap();
        assert!(aside.join("originals/x").exists());
        assert!(etc.join("policy.toml").exists() && !etc.join("agent.toml").exists());
        std::fs::remove_dir_all(aside).unwrap();
        std::fs::remove_file(etc.join("policy.toml")).unwrap();
        assert_eq!(agent.forget(&uid).unwrap(), None);
        assert!(!etc.exists());
    }
}
