//! The container runtime of a fleet's host: the machine's own, or one of a test's.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, bail};

use super::{Fleet, binary};

/// Tells the agent of its runtime, and to look often, when it is first started.
const SET_UP: &str = r#"#!/bin/sh
settings=$2/etc/replicator-host-agent/agent.toml
if [ "$3" = run ] && ! grep -q '^docker = ' "$settings"; then
  { echo "docker = 'SOCKET'"; cat "$settings"; echo '[intervals]'; printf '%s\n' 'cheap = 5' 'heartbeat = 1'; } >"$settings.new" \
    && mv "$settings.new" "$settings"
fi
exec AGENT "$@"
"#;

impl Fleet {
    /// The agent's program; where the runtime is not the machine's own, behind one that sets what an operator would
    /// have set before the first start.
    pub(super) fn agent_program(&self) -> Result<PathBuf> {
        let agent = binary("replicator-host-agent")?;
        let Some(runtime) = &self.runtime else { return Ok(agent) };
        let path = self.file("set-up-agent");
        let script = SET_UP.replace("SOCKET", runtime).replace("AGENT", &agent.to_string_lossy());
        std::fs::write(&path, script)?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))?;
        Ok(path)
    }

    /// What the command line of the host's container runtime says.
    ///
    /// # Errors
    ///
    /// It failed.
    pub fn docker(&self, arguments: &[&str]) -> Result<String> {
        docker_at(self.runtime.as_deref(), arguments)
    }

    /// Ids of the containers of this fleet, by name.
    ///
    /// # Errors
    ///
    /// The runtime could not say.
    pub fn containers(&self) -> Result<BTreeMap<String, String>> {
        let filter = format!("name=^/{}_", self.host);
        let listed = self.docker(&["ps", "-a", "--no-trunc", "--filter", &filter, "--format", "{{.Names}} {{.ID}}"])?;
        let pairs = listed.lines().filter_map(|line| line.split_once(' '));
        Ok(pairs
            .map(|(name, id)| (name.trim_start_matches(&format!("{}_", self.host)).to_owned(), id.to_owned()))
            .collect())
    }
}

/// What the runtime's own command line says.
///
/// # Errors
///
/// It failed.
pub fn docker(arguments: &[&str]) -> Result<String> {
    docker_at(None, arguments)
}

/// The same of the runtime that listens on this socket.
pub(crate) fn docker_at(socket: Option<&str>, arguments: &[&str]) -> Result<String> {
    let mut command = Command::new("docker");
    if let Some(socket) = socket {
        command.args(["--host", &format!("unix://{socket}")]);
    }
    let output = command.args(arguments).output()?;
    if !output.status.success() {
        bail!("docker {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8(output.stdout)?)
}
