//! The whole product on this machine: a broker, `serve`, and one host that is this machine, all by their own
//! command lines, in a namespace with a container runtime of its own: fleets do not meet. Everything it made is gone
//! when it is dropped.

mod planning;
mod power;
mod runtime;

use std::fs::File;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::dockerd::Dockerd;
use crate::nats::Broker;
use crate::wait;

/// Where the proxy of a host without ingress listens.
pub const PROXY: &str = "127.0.0.1:8480";
/// Longest that one command may take: far above what any here needs.
const COMMAND_WITHIN: Duration = Duration::from_secs(180);
/// Longest that a service may take until it answers.
const STARTS_WITHIN: Duration = Duration::from_secs(10);

/// What a command said and how it ended.
#[derive(Debug, Clone)]
pub struct Said {
    /// Its exit code; -1 where a signal ended it.
    pub code: i32,
    /// Data.
    pub stdout: String,
    /// Talk.
    pub stderr: String,
}

impl Said {
    /// Its data, read as JSON.
    ///
    /// # Errors
    ///
    /// It failed, or said something else.
    pub fn json(&self) -> Result<Value> {
        serde_json::from_str(&self.done()?.stdout).with_context(|| self.stdout.clone())
    }

    /// Itself, where it ended well.
    ///
    /// # Errors
    ///
    /// What it said, where it did not.
    pub fn done(&self) -> Result<&Self> {
        if self.code != 0 {
            bail!("exit code {}\n{}{}", self.code, self.stdout, self.stderr);
        }
        Ok(self)
    }
}

/// A fleet of one host, which is this machine.
pub struct Fleet {
    /// The broker, with the controller's home.
    pub broker: Broker,
    /// The host's name; also the prefix of everything it makes in the runtime.
    pub host: String,
    serve: Option<Child>,
    folder: tempfile::TempDir,
    /// None where a test has it. Last: what runs in its namespace ends before it.
    _dockerd: Option<Dockerd>,
}

impl Fleet {
    /// Raises broker and `serve`, and lays a host spec and a fleet file with one repository, `acme/web`, whose
    /// secret `webToken` is set. Nothing is on the host yet.
    ///
    /// # Errors
    ///
    /// Something did not come up.
    pub async fn start() -> Result<Self> {
        let dockerd = Dockerd::start().await?;
        Self::start_on(Some(dockerd)).await
    }

    /// The same, on the container runtime that the test started before and stops itself.
    ///
    /// # Errors
    ///
    /// Something did not come up.
    pub async fn start_here() -> Result<Self> {
        Self::start_on(None).await
    }

    async fn start_on(dockerd: Option<Dockerd>) -> Result<Self> {
        let mut number = [0; 3];
        getrandom::fill(&mut number)?;
        let mut fleet = Self {
            broker: Broker::start().await?,
            host: format!("lab{}", hex::encode(number)),
            serve: None,
            folder: tempfile::tempdir()?,
            _dockerd: dockerd,
        };
        std::fs::create_dir(fleet.file("hosts"))?;
        std::fs::write(fleet.file(&format!("hosts/{}.yml", fleet.host)), fleet.spec())?;
        std::fs::write(fleet.file("clanker.yml"), fleet.fleet_file(""))?;
        fleet.serve().await?;
        fleet.set_secret("webToken", "first-value").await?;
        Ok(fleet)
    }

    /// A file in the operator's folder.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Where all of the agent's own files lie.
    #[must_use]
    pub fn agent_root(&self) -> PathBuf {
        self.file("agent")
    }

    /// The host spec: this machine, no gateway.
    #[must_use]
    pub fn spec(&self) -> String {
        let host = &self.host;
        format!(
            "id: {host}\nnamePrefix: {host}\ncompute:\n  provider: existing-host\n  existingHost:\n    address: local\n\
             ingress:\n  provider: none\ndns:\n  provider: manual\n  zones: [ lab.localhost ]\n\
             secrets:\n  provider: replicator\nstate:\n  provider: replicator\n  replicator:\n    app: {host}\n    \
             backend: local\nimage:\n  netImage: local:replicator-demo/net:1\n"
        )
    }

    /// The fleet file: `acme/web` with the secret `webToken`, then `more` under `repos`.
    #[must_use]
    pub fn fleet_file(&self, more: &str) -> String {
        format!(
            "host: ./hosts/{}.yml\npod:\n  default: acme/web\ndevelopers:\n  - slug: ada\nrepos:\n  - repo: acme/web\n    \
             image: local:replicator-demo/web:1\n    ports:\n      - port: 3000\n        public: true\n        \
             auth: none\n    env:\n      plain:\n        GREETING: hello\n      secrets: [ webToken ]\n{more}",
            self.host
        )
    }

    /// Rewrites the fleet file, one text for another.
    ///
    /// # Errors
    ///
    /// The text does not stand in it.
    pub fn edit(&self, from: &str, to: &str) -> Result<()> {
        let path = self.file("clanker.yml");
        let before = std::fs::read_to_string(&path)?;
        if !before.contains(from) {
            bail!("`{from}` does not stand in the fleet file:\n{before}");
        }
        Ok(std::fs::write(path, before.replacen(from, to, 1))?)
    }

    /// Runs the controller in the operator's folder.
    ///
    /// # Errors
    ///
    /// It did not end in time.
    pub async fn replicator(&self, arguments: &[&str]) -> Result<Said> {
        self.run("replicator", arguments, "").await
    }

    /// Runs the agent's command line on this host.
    ///
    /// # Errors
    ///
    /// It did not end in time.
    pub async fn agent(&self, arguments: &[&str]) -> Result<Said> {
        let root = self.agent_root();
        let mut all = vec!["--root", root.to_str().context("the folder is no text")?];
        all.extend(arguments);
        self.run("replicator-host-agent", &all, "").await
    }

    /// Sets a secret.
    ///
    /// # Errors
    ///
    /// It was refused.
    pub async fn set_secret(&self, name: &str, value: &str) -> Result<()> {
        self.run("replicator", &["secrets", "set", name], value).await?.done().map(drop)
    }

    /// `host up`, `converge` or `down`, with JSON as its data.
    ///
    /// # Errors
    ///
    /// It did not end in time.
    pub async fn host(&self, verb: &str) -> Result<Said> {
        self.host_within(verb, COMMAND_WITHIN.as_secs()).await
    }

    /// The same, with the report waited for as many seconds at most.
    ///
    /// # Errors
    ///
    /// It did not end in time.
    pub async fn host_within(&self, verb: &str, seconds: u64) -> Result<Said> {
        let root = self.agent_root();
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let mut arguments = vec!["host".into(), verb.into(), self.host.clone(), "-o".into(), "json".into()];
        arguments.extend(["--timeout".into(), seconds.to_string()]);
        if verb != "down" {
            arguments.extend(["--distribution".into(), self.distribution()]);
        }
        if verb == "up" {
            arguments.extend([
                "--agent-root".into(),
                text(&root),
                "--agent".into(),
                text(&binary("replicator-host-agent")?),
            ]);
        }
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        self.replicator(&arguments).await
    }

    async fn run(&self, program: &str, arguments: &[&str], stdin: &str) -> Result<Said> {
        let mut command = tokio::process::Command::new(binary(program)?);
        command.args(arguments).current_dir(self.folder.path());
        command.env("REPLICATOR_HOME", self.broker.home.root()).env("NO_COLOR", "1").kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().with_context(|| format!("start {program}"))?;
        let mut input = child.stdin.take().context("no stdin")?;
        let value = stdin.to_owned();
        tokio::spawn(async move {
            use tokio::io::AsyncWriteExt as _;
            // A command that reads nothing may close it.
            let _unread = input.write_all(value.as_bytes()).await;
        });
        let output = tokio::time::timeout(COMMAND_WITHIN, child.wait_with_output()).await;
        let output = output.with_context(|| format!("{program} {arguments:?} did not end"))??;
        Ok(Said {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    }

    /// Starts `serve` and waits until it is well.
    ///
    /// # Errors
    ///
    /// It did not come up; with what it said.
    pub async fn serve(&mut self) -> Result<()> {
        let listen = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?;
        let said = self.file("serve.log");
        let log = File::options().create(true).append(true).open(&said)?;
        let mut command = Command::new(binary("replicator")?);
        command.args(["serve", "--listen", &listen.to_string()]).env("REPLICATOR_HOME", self.broker.home.root());
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        self.serve = Some(command.spawn().context("start serve")?);
        let up = wait::until("serve is well", STARTS_WITHIN, async || {
            let answer = get(listen, "", "/healthz").await;
            Ok(answer.ok().filter(|answer| answer.status == 200))
        });
        up.await.map(drop).with_context(|| std::fs::read_to_string(&said).unwrap_or_default())
    }

    /// Asks the proxy for `path` by a public name.
    ///
    /// # Errors
    ///
    /// Nothing answered.
    pub async fn fetch(&self, name: &str, path: &str) -> Result<Answer> {
        get(PROXY.parse()?, name, path).await
    }

    /// The public name of port 3000 of `acme/web`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        "web-3000--ada.lab.localhost"
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        self.kill_serve();
        let mut down = Command::new("sh");
        down.args(["-c", CLEAN, "clean", &self.host]).arg(self.agent_root());
        if std::thread::panicking() {
            // A failed test is looked into by what was said last.
            let _unheard = std::io::Write::write_all(&mut std::io::stderr(), agent_log(&self.agent_root()).as_bytes());
        }
        let _cleaned = down.stdout(Stdio::null()).stderr(Stdio::null()).status();
    }
}

/// Ends the agent whose arguments name this root, then removes what it made outside the namespace: also where a test
/// broke off.
const CLEAN: &str = r#"
for cmdline in /proc/[0-9]*/cmdline; do
  pid=${cmdline#/proc/}; pid=${pid%/cmdline}
  if tr '\0' ' ' <"$cmdline" | grep -qF -- "replicator-host-agent --root $2 run"; then kill -9 "$pid"; fi
done
rm -rf "/var/lib/replicator.$1"
"#;

fn agent_log(root: &Path) -> String {
    let logs = walk(root).into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "log"));
    logs.filter_map(|path| std::fs::read_to_string(path).ok()).collect()
}

fn walk(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.flatten().map(|entry| entry.path());
    paths.flat_map(|path| if path.is_dir() && !path.is_symlink() { walk(&path) } else { vec![path] }).collect()
}

/// What a server answered.
#[derive(Debug, Clone)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// The body.
    pub body: String,
}

/// One request over plain HTTP.
///
/// # Errors
///
/// Nothing answered within 30 seconds.
pub async fn get(address: SocketAddr, host: &str, path: &str) -> Result<Answer> {
    let asked = replicator_host_agent::host::http::get(address, host, path);
    let answer = tokio::time::timeout(Duration::from_secs(30), asked).await??;
    Ok(Answer { status: answer.status, body: String::from_utf8_lossy(&answer.body).into_owned() })
}

/// One of the product's programs, built beside this test.
///
/// # Errors
///
/// It was not built.
pub fn binary(name: &str) -> Result<PathBuf> {
    let here = std::env::current_exe()?;
    let folder = here.parent().and_then(Path::parent).context("the test lies nowhere")?;
    let path = folder.join(name);
    if !path.is_file() {
        bail!("there is no `{}`; run `cargo build --workspace` first", path.display());
    }
    Ok(path)
}

fn lab(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}
