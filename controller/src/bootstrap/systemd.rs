//! The agent as a unit of systemd.

use std::path::{Path, PathBuf};
use std::time::Duration;

use replicator_protocol::ids::HostId;
use tokio::process::Command;

use super::BootstrapError;
use super::agent::{Agent, ENDS_WITHIN, Started};
use super::detached::last_lines;
use crate::point::{self, Effect};

/// Where units of the administrator's lie.
const UNITS: &str = "/etc/systemd/system";
/// How long the agent may take until it says that it is ready: before that it verifies its whole ledger, which may hold
/// a gigabyte.
const STARTS_WITHIN: Duration = Duration::from_secs(300);
/// How long systemd may take for one command: a restart ends the agent, then waits until it is ready.
const ANSWER: Duration = ENDS_WITHIN.saturating_add(STARTS_WITHIN).saturating_add(Duration::from_secs(30));

fn name(agent: &Agent, host: &HostId) -> String {
    if agent.root.as_os_str() == "/" {
        "replicator-host-agent.service".into()
    } else {
        format!("replicator-host-agent-{host}.service")
    }
}

fn path(agent: &Agent, host: &HostId) -> PathBuf {
    PathBuf::from(UNITS).join(name(agent, host))
}

fn quoted(path: &Path) -> String {
    let path = path.display().to_string();
    format!("\"{}\"", path.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%"))
}

/// What stands between the quotes of the first word of `ExecStart=`.
fn program_of(unit: &str) -> Option<PathBuf> {
    let mut rest = unit.lines().find_map(|line| line.strip_prefix("ExecStart=\""))?.chars();
    let mut path = String::new();
    loop {
        match rest.next()? {
            '"' => return Some(path.into()),
            '\\' | '%' => path.push(rest.next()?),
            other => path.push(other),
        }
    }
}

fn text(agent: &Agent, host: &HostId) -> String {
    format!(
        "[Unit]\n\
         Description=Replicator host agent ({host})\n\
         After=network.target docker.service\n\
         StartLimitIntervalSec=0\n\
         \n\
         [Service]\n\
         Type=notify\n\
         ExecStart={} --root {} run\n\
         Restart=always\n\
         RestartSec=2\n\
         TimeoutStartSec={}\n\
         TimeoutStopSec={}\n\
         WatchdogSec=60\n\
         UMask=0077\n\
         NoNewPrivileges=yes\n\
         ProtectClock=yes\n\
         ProtectKernelModules=yes\n\
         RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6\n\
         MemoryDenyWriteExecute=yes\n\
         \n\
         [Install]\n\
         WantedBy=multi-user.target\n",
        quoted(&agent.binary),
        quoted(&agent.root),
        STARTS_WITHIN.as_secs(),
        ENDS_WITHIN.as_secs(),
    )
}

/// The program its unit names.
pub(super) fn program(agent: &Agent, host: &HostId) -> Option<PathBuf> {
    program_of(&std::fs::read_to_string(path(agent, host)).ok()?)
}

/// Whether its unit is started with the machine.
pub(super) async fn runs(agent: &Agent, host: &HostId) -> bool {
    path(agent, host).exists() && systemctl(&["is-enabled", "--quiet", &name(agent, host)]).await.is_ok()
}

pub(super) async fn start(agent: &Agent, host: &HostId) -> Result<Started, BootstrapError> {
    let (name, path, text) = (name(agent, host), path(agent, host), text(agent, host));
    let written = std::fs::read_to_string(&path).is_ok_and(|there| there == text);
    if written && systemctl(&["is-active", "--quiet", &name]).await.is_ok() {
        return Ok(Started::Already);
    }
    agent.demand_program()?;
    std::fs::write(&path, text).map_err(|source| BootstrapError::File { act: "write", path, source })?;
    point::behind(Effect::UnitWrite);
    systemctl(&["daemon-reload"]).await?;
    systemctl(&["enable", &name]).await?;
    match systemctl(&["restart", &name]).await {
        Ok(()) => Ok(Started::Now),
        Err(BootstrapError::Systemd { command, said }) => {
            let said = format!("{said}; the agent: {}", own_words(&name).await);
            Err(BootstrapError::Systemd { command, said })
        }
        Err(error) => Err(error),
    }
}

pub(super) async fn stop(agent: &Agent, host: &HostId) -> Result<(), BootstrapError> {
    let (name, path) = (name(agent, host), path(agent, host));
    if !path.exists() {
        return Ok(());
    }
    systemctl(&["disable", "--now", &name]).await?;
    std::fs::remove_file(&path).map_err(|source| BootstrapError::File { act: "remove", path, source })?;
    point::behind(Effect::UnitRemove);
    systemctl(&["daemon-reload"]).await
}

/// What the unit said last, which systemd's own answer does not tell.
async fn own_words(name: &str) -> String {
    let mut command = Command::new("journalctl");
    command.args(["--unit", name, "--lines", "8", "--output", "cat", "--no-pager"]).kill_on_drop(true);
    match tokio::time::timeout(ANSWER, command.output()).await {
        Ok(Ok(output)) => last_lines(&String::from_utf8_lossy(&output.stdout)),
        Ok(Err(_)) | Err(_) => "its journal cannot be read".into(),
    }
}

async fn systemctl(arguments: &[&str]) -> Result<(), BootstrapError> {
    let failed = |said: String| BootstrapError::Systemd { command: arguments.join(" "), said };
    let output = Command::new("systemctl").args(arguments).kill_on_drop(true).output();
    let output = tokio::time::timeout(ANSWER, output).await;
    let output = output.map_err(|_| failed(format!("no answer within {} s", ANSWER.as_secs())))?;
    let output = output.map_err(|error| failed(error.to_string()))?;
    point::behind(Effect::Systemctl);
    if output.status.success() {
        Ok(())
    } else {
        Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unit_names_the_agent_and_several_fit_on_one_machine() {
        let host = HostId::parse("acme").unwrap();
        let at = |root: &str| Agent { binary: "/opt/a b/agent".into(), root: root.into() };
        assert_eq!(name(&at("/"), &host), "replicator-host-agent.service");
        assert_eq!(name(&at("/srv/a"), &host), "replicator-host-agent-acme.service");
        assert!(text(&at("/srv/a"), &host).contains("ExecStart=\"/opt/a b/agent\" --root \"/srv/a\" run\n"));
    }

    #[test]
    fn unit_is_given_the_time_that_the_agent_takes_and_is_waited_for() {
        let agent = Agent { binary: "/a".into(), root: "/".into() };
        let text = text(&agent, &HostId::parse("acme").unwrap());
        let seconds = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)?.parse().ok()).unwrap();
        let (start, stop) = (seconds("TimeoutStartSec="), seconds("TimeoutStopSec="));
        assert_eq!(Duration::from_secs(stop), ENDS_WITHIN);
        assert!(ANSWER > Duration::from_secs(start + stop));
    }

    #[test]
    fn unit_tells_which_program_it_was_written_for() {
        let host = HostId::parse("acme").unwrap();
        for binary in ["/opt/a b/agent", "/opt/100%/\"new\"/back\\slash", "/opt/ä"] {
            let agent = Agent { binary: binary.into(), root: "/".into() };
            assert_eq!(program_of(&text(&agent, &host)), Some(agent.binary));
        }
        assert_eq!(program_of("[Service]\nExecStart=/bin/sleep 1\n"), None);
    }
}
