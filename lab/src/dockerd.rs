//! A container runtime of a test's own, to be stopped, hung, killed and started again: the machine's never notices.
//!
//! It has its own containerd, folders, control groups and namespaces, so that nothing of it can meet anything else, and
//! all of it goes when it is dropped: by process id, also where it was killed before.

mod remains;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, bail};
use replicator_host_agent::host::docker::{Docker, SOCKET};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt as _, BufReader};

use crate::namespace::Namespace;
use crate::{images, wait};

/// Longest until a daemon answers: it takes a quarter of a second where nothing is to be restored.
const STARTS_WITHIN: Duration = Duration::from_secs(20);
/// Longest until a daemon has stopped: its containers get ten seconds each, side by side, and it fifteen in all.
const STOPS_WITHIN: Duration = Duration::from_secs(30);
/// Longest that the kernel may take to end a killed process.
const ENDS_WITHIN: Duration = Duration::from_secs(5);

/// The runtime. It dies with the value.
pub struct Dockerd {
    daemon: Option<Child>,
    containerd: Child,
    group: String,
    folder: tempfile::TempDir,
    // Last: what ran in it has ended before the thread leaves it.
    _namespace: Namespace,
}

impl Dockerd {
    /// Starts one that holds the lab's images, and moves the calling thread into its namespace: to all that is started
    /// afterwards on this thread it is the machine's own.
    ///
    /// # Errors
    ///
    /// It does not come up; with the end of what it said.
    pub async fn start() -> Result<Self> {
        let images = images::saved()?;
        let namespace = Namespace::enter()?;
        let folder = tempfile::tempdir()?;
        let mut number = [0; 4];
        getrandom::fill(&mut number)?;
        let group = format!("/replicator-lab-{}", hex::encode(number));
        std::fs::write(folder.path().join("daemon.json"), "{}")?;
        let containerd = start_containerd(folder.path())?;
        let mut dockerd = Self { daemon: None, containerd, group, folder, _namespace: namespace };
        dockerd.resume().await?;
        docker(&["load", "--quiet", "--input", &images.to_string_lossy()])?;
        Ok(dockerd)
    }

    /// Where everything of it lies.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Starts the daemon again, as it lies; containers that are to run whenever it does are started by it.
    ///
    /// # Errors
    ///
    /// It does not come up; with the end of what it said.
    pub async fn resume(&mut self) -> Result<()> {
        let log = File::options().create(true).append(true).open(self.file("dockerd.log"))?;
        let mut command = Command::new("dockerd");
        for (option, name) in [
            ("--config-file", "daemon.json"),
            ("--data-root", "data"),
            ("--exec-root", "exec"),
            ("--pidfile", "dockerd.pid"),
            ("--containerd", "containerd.sock"),
        ] {
            command.arg(option).arg(self.file(name));
        }
        command.args(["--host", &format!("unix://{SOCKET}"), "--cgroup-parent", &self.group]);
        // No bridge but those it is asked for, and no rules: the network is its own, and nothing has to be kept out.
        command.args(["--bridge=none", "--iptables=false", "--ip6tables=false"]);
        // Also where systemd runs: what is left of it is found by its group.
        command.args(["--exec-opt", "native.cgroupdriver=cgroupfs"]);
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let child = self.daemon.insert(command.spawn().context("start dockerd")?);
        let docker = Docker::new(SOCKET);
        let up = wait::until("dockerd answers", STARTS_WITHIN, async || {
            if let Some(status) = child.try_wait()? {
                bail!("dockerd ended at once: {status}");
            }
            Ok(docker.ping().await.ok())
        });
        let up = up.await;
        up.with_context(|| std::fs::read_to_string(self.file("dockerd.log")).unwrap_or_default())
    }

    /// Stops the daemon and, as it does by default, every container with it.
    ///
    /// # Errors
    ///
    /// It does not run, or does not end.
    pub async fn stop(&mut self) -> Result<()> {
        self.end(Signal::TERM, STOPS_WITHIN).await
    }

    /// Kills the daemon, wherever it is; containers run on, and are ended when it starts again.
    ///
    /// # Errors
    ///
    /// It does not run, or does not end.
    pub async fn kill(&mut self) -> Result<()> {
        self.end(Signal::KILL, ENDS_WITHIN).await
    }

    /// Lets the daemon answer nothing any more; its socket is there still.
    ///
    /// # Errors
    ///
    /// It does not run.
    pub fn hang(&self) -> Result<()> {
        self.signal(Signal::STOP)
    }

    /// Lets a daemon that hangs go on.
    ///
    /// # Errors
    ///
    /// It does not run.
    pub fn go_on(&self) -> Result<()> {
        self.signal(Signal::CONT)
    }

    /// Waits until the daemon tells that something happened from now on to a container called `name`: sooner than who
    /// asks again and again could know.
    ///
    /// # Errors
    ///
    /// It tells nothing more.
    pub async fn tells_of(&self, name: &str) -> Result<()> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
        let since = format!("{}.{:09}", now.as_secs(), now.subsec_nanos());
        let mut command = tokio::process::Command::new("docker");
        command.args(["events", "--since", &since, "--filter", "type=container", "--format"]);
        command.arg("{{.Actor.Attributes.name}}").stdout(Stdio::piped()).kill_on_drop(true);
        let mut told = command.spawn()?;
        let mut lines = BufReader::new(told.stdout.take().context("no stdout")?).lines();
        while let Some(line) = lines.next_line().await? {
            if line == name {
                return Ok(());
            }
        }
        bail!("the runtime tells nothing more, and nothing of `{name}`")
    }

    async fn end(&mut self, signal: Signal, within: Duration) -> Result<()> {
        self.signal(signal)?;
        let mut child = self.daemon.take().context("dockerd does not run")?;
        wait::until("dockerd is gone", within, async || Ok(child.try_wait()?)).await.map(drop)
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        let child = self.daemon.as_ref().context("dockerd does not run")?;
        Ok(kill_process(Pid::from_child(child), signal)?)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

impl Drop for Dockerd {
    fn drop(&mut self) {
        for child in self.daemon.iter_mut().chain([&mut self.containerd]) {
            // Gone already is as good.
            let _gone = child.kill();
            let _ended = child.wait();
        }
        remains::remove(self.folder.path(), &self.group);
    }
}

fn start_containerd(folder: &Path) -> Result<Child> {
    let at = |name: &str| folder.join(name).to_string_lossy().into_owned();
    let settings = format!(
        "version = 2\nroot = '{}'\nstate = '{}'\ndisabled_plugins = ['io.containerd.grpc.v1.cri']\n[grpc]\n\
         address = '{}'\n",
        at("containerd/root"),
        at("containerd/state"),
        at("containerd.sock")
    );
    let path = folder.join("containerd.toml");
    std::fs::write(&path, settings)?;
    let log = File::create(folder.join("containerd.log"))?;
    let mut command = Command::new("containerd");
    command.arg("--config").arg(path).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
    command.spawn().context("start containerd")
}

/// What the container runtime's own command line says, of the runtime of this thread's namespace.
///
/// # Errors
///
/// It failed.
pub fn docker(arguments: &[&str]) -> Result<String> {
    let output = Command::new("docker").args(arguments).output()?;
    if !output.status.success() {
        bail!("docker {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8(output.stdout)?)
}
