//! The agent as a process of its own, where no systemd keeps it running.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::Duration;

use super::BootstrapError;
use super::agent::{Agent, Started};
use super::process::Process;
use crate::home::private_folder;
use crate::point::{self, Effect};

/// How long a started agent is watched for an early end.
const SETTLE: Duration = Duration::from_millis(1500);
/// Lines of its log that are repeated: an error, the lines of a file it is about, its causes and its hint.
const LINES: usize = 8;
/// Pause between two looks whether it runs.
const LOOK: Duration = Duration::from_millis(100);

/// Starts it, unless it runs.
pub(super) async fn start(agent: &Agent) -> Result<Started, BootstrapError> {
    private_folder(&agent.run())?;
    if let Some(process) = running(agent) {
        keep(agent, process)?;
        return Ok(Started::Already);
    }
    agent.demand_program()?;
    private_folder(&agent.state())?;
    let log = append_to_log(agent)?;
    let errors = log.try_clone();
    let errors = errors.map_err(|source| BootstrapError::File { act: "write", path: agent.log(), source })?;
    // `setsid` becomes the agent: same number, a session of its own, nothing of this terminal.
    let mut command = std::process::Command::new("setsid");
    command.arg(&agent.binary).arg("--root").arg(&agent.root).arg("run");
    command.stdin(Stdio::null()).stdout(log).stderr(errors).current_dir("/");
    let before = std::fs::metadata(agent.log()).map_or(0, |log| log.len());
    let child = command.spawn().map_err(|source| BootstrapError::Start { path: agent.binary.clone(), source })?;
    point::behind(Effect::AgentStart);
    if let Some(process) = i32::try_from(child.id()).ok().and_then(Process::of) {
        keep(agent, process)?;
    }
    settle(agent, child, before).await
}

/// Ends it, where it runs.
pub(super) async fn stop(agent: &Agent) -> Result<(), BootstrapError> {
    let Some(process) = running(agent) else { return Ok(()) };
    if process.end().await { Ok(()) } else { Err(BootstrapError::StillRuns { pid: process.pid() }) }
}

/// Whether it runs.
pub(super) fn runs(agent: &Agent) -> bool {
    running(agent).is_some()
}

/// The program it runs now.
pub(super) fn program(agent: &Agent) -> Option<PathBuf> {
    running(agent)?.program()
}

/// The process it runs as: the one whose number was kept, else one that was started by somebody who was cut off
/// before that.
fn running(agent: &Agent) -> Option<Process> {
    let arguments = [OsStr::new("--root"), agent.root.as_os_str(), OsStr::new("run")];
    Process::read(&agent.pid_file()).or_else(|| Process::running(agent.program(), &arguments))
}

/// Keeps the number of `process`, unless it is kept.
fn keep(agent: &Agent, process: Process) -> Result<(), BootstrapError> {
    let path = agent.pid_file();
    if Process::read(&path) == Some(process) {
        return Ok(());
    }
    process.keep(&path).map_err(|source| BootstrapError::File { act: "write", path, source })
}

fn append_to_log(agent: &Agent) -> Result<File, BootstrapError> {
    let path = agent.log();
    let log = File::options().create(true).append(true).mode(0o600).open(&path);
    let log = log.map_err(|source| BootstrapError::File { act: "write", path, source })?;
    point::behind(Effect::AgentLog);
    Ok(log)
}

/// An agent that cannot run says so at once: the end of its log is the reason.
async fn settle(agent: &Agent, mut child: Child, before: u64) -> Result<Started, BootstrapError> {
    for _ in 0..(SETTLE.as_millis() / LOOK.as_millis()) {
        tokio::time::sleep(LOOK).await;
        if let Ok(Some(status)) = child.try_wait() {
            let last = last(agent, before);
            return Err(BootstrapError::Ended { status: status.to_string(), log: agent.log(), last });
        }
    }
    Ok(Started::Now)
}

/// The end of what it said since its log was `before` bytes long: what an earlier one said is no reason.
fn last(agent: &Agent, before: u64) -> String {
    let log = std::fs::read(agent.log()).unwrap_or_default();
    let new = log.get(usize::try_from(before).unwrap_or(usize::MAX)..).unwrap_or_default();
    last_lines(&String::from_utf8_lossy(new))
}

/// The last lines of `text`, in one.
pub(super) fn last_lines(text: &str) -> String {
    let lines: Vec<_> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    match &lines[lines.len().saturating_sub(LINES)..] {
        [] => "it said nothing".into(),
        last => last.join("; "),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::Path;

    use super::*;

    fn agent(folder: &Path, script: &str) -> Agent {
        let binary = folder.join("agent");
        std::fs::write(&binary, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&binary, std::fs::Permissions::from_mode(0o755)).unwrap();
        Agent { binary, root: folder.join("root") }
    }

    #[tokio::test]
    async fn detached_agent_is_started_once_and_ended() {
        let folder = tempfile::tempdir().unwrap();
        let agent = agent(folder.path(), "exec sleep 60");
        assert_eq!(start(&agent).await.unwrap(), Started::Now);
        let process = Process::read(&agent.pid_file()).unwrap();
        assert_eq!(start(&agent).await.unwrap(), Started::Already);
        assert_eq!(Process::read(&agent.pid_file()), Some(process));
        stop(&agent).await.unwrap();
        assert_eq!(Process::of(process.pid()), None);
        stop(&agent).await.unwrap();
    }

    #[tokio::test]
    async fn agent_that_ends_at_once_is_told_with_its_last_words() {
        let folder = tempfile::tempdir().unwrap();
        for (script, told) in [("echo no disk >&2; exit 3", "no disk"), ("exit 3", "it said nothing")] {
            let agent = agent(folder.path(), script);
            let Err(BootstrapError::Ended { last, .. }) = start(&agent).await else {
                panic!("it runs");
            };
            assert_eq!(last, told);
        }
    }
}
