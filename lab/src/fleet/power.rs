//! Ending and starting the parts of a fleet, as power cuts, supervisors and operators do.

use std::fs::File;
use std::io::Write as _;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use replicator::bootstrap::Agent;
use replicator::bootstrap::supervisor::{self, Started};
use replicator_protocol::ids::HostId;
use rustix::process::{Pid, Signal, kill_process};

use super::{Fleet, binary};
use crate::wait;

/// Longest that the kernel may take to end a killed process.
const ENDS_WITHIN: Duration = Duration::from_secs(5);

impl Fleet {
    fn supervised(&self) -> Result<(Agent, HostId)> {
        let agent = Agent::find(Some(&binary("replicator-host-agent")?), &self.agent_root())?;
        Ok((agent, HostId::parse(&self.host)?))
    }

    /// Starts the agent as what supervises it does.
    ///
    /// # Errors
    ///
    /// It did not start, or ran already.
    pub async fn start_agent(&self) -> Result<()> {
        let (agent, host) = self.supervised()?;
        match supervisor::start(&agent, &host, supervisor::of_this_machine()).await? {
            Started::Now => Ok(()),
            Started::Already => bail!("the agent runs already"),
        }
    }

    /// Has the agent look every five seconds, and send a heartbeat each second, from its next start, which is now.
    ///
    /// # Errors
    ///
    /// It was not started before, or does not start again.
    pub async fn look_often(&self) -> Result<()> {
        self.stop_agent().await?;
        let settings = self.agent_root().join("etc/replicator-host-agent/agent.toml");
        let mut file = File::options().append(true).open(settings)?;
        write!(file, "\n[intervals]\ncheap = 5\nheartbeat = 1\n")?;
        self.start_agent().await
    }

    /// Ends the agent at its next safe point.
    ///
    /// # Errors
    ///
    /// It still runs.
    pub async fn stop_agent(&self) -> Result<()> {
        let (agent, host) = self.supervised()?;
        Ok(supervisor::stop(&agent, &host, supervisor::of_this_machine()).await?)
    }

    /// Kills the agent, wherever it is.
    ///
    /// # Errors
    ///
    /// It does not run.
    pub async fn kill_agent(&self) -> Result<()> {
        let Some(pid) = self.agent_process()? else { bail!("the agent does not run") };
        kill_process(Pid::from_raw(pid).context("no such number")?, Signal::KILL)?;
        let gone = async || Ok(has_ended(pid).then_some(()));
        wait::until("the agent is gone", ENDS_WITHIN, gone).await
    }

    /// The number of the agent's process; one that ended and was not waited for has no arguments.
    fn agent_process(&self) -> Result<Option<i32>> {
        let arguments = format!("\0--root\0{}\0run\0", self.agent_root().display());
        for entry in std::fs::read_dir("/proc")?.flatten() {
            let Ok(pid) = entry.file_name().to_string_lossy().parse() else { continue };
            let said = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            if String::from_utf8_lossy(&said).ends_with(&arguments) {
                return Ok(Some(pid));
            }
        }
        Ok(None)
    }

    /// Kills the collector.
    pub fn kill_serve(&mut self) {
        if let Some(mut serve) = self.serve.take() {
            // Gone already is as good.
            let _gone = serve.kill();
            let _ended = serve.wait();
        }
    }
}

/// Whether the whole process has ended. Its arguments are gone earlier, while its threads are still on their way
/// out and whoever looks for it still finds it.
fn has_ended(pid: i32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return true };
    // The name may hold anything; the state is the first field behind it.
    let state = stat.rsplit_once(')').and_then(|(_, fields)| fields.split_whitespace().next());
    matches!(state, Some("Z" | "X"))
}
