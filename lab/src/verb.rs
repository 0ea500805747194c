//! One verb of the controller in a process of its own, which may be cut off behind any of its effects.
//!
//! What is declared is one folder, so that no runtime and no port is needed and many hosts fit beside each other.

use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use replicator::bootstrap::{Agent, Down, Local, Request};
use replicator::compiler::{Compiled, seal};
use replicator::home::Home;
use replicator::state::{App, Log};
use replicator_protocol::ids::{HostId, ResourceId};
use replicator_protocol::resources::Resource;
use replicator_protocol::wire::declaration::{Directory, resource::Kind};
use serde::{Deserialize, Serialize};

use crate::fleet::binary;

/// Longest that one verb may take.
const VERB_WITHIN: Duration = Duration::from_secs(60);
/// How long it waits for the host's report.
const REPORT_WITHIN: Duration = Duration::from_secs(40);

/// A verb about one host.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Verb {
    /// The controller's folder, with one fleet.
    pub home: PathBuf,
    /// The host.
    pub host: String,
    /// Where all of its agent's files lie.
    pub machine: PathBuf,
    /// The agent's program.
    pub agent: PathBuf,
    /// `up`, `up-again`, `converge`, `down` or `down-abandon`.
    pub verb: String,
}

/// How a verb ended in its process.
#[derive(Debug)]
pub struct Ended {
    /// The effect behind which it was cut off, where it was.
    pub cut: Option<String>,
    /// Whether it did what it should.
    pub done: bool,
    /// All it said.
    pub said: String,
}

impl Verb {
    /// The folder that is declared.
    #[must_use]
    pub fn folder(&self) -> PathBuf {
        self.machine.join("declared")
    }

    /// The host's log.
    ///
    /// # Errors
    ///
    /// There is no usable data key.
    pub fn log(&self) -> Result<Log> {
        Ok(Log::local(&Home::at(self.home.clone())?, &App::parse("lab")?, &HostId::parse(&self.host)?)?)
    }

    /// Does it.
    ///
    /// # Errors
    ///
    /// It could not be done, or something of the host is not as declared.
    pub async fn run(&self) -> Result<()> {
        let home = Home::at(self.home.clone())?;
        let (fleet, host) = (home.choose(None)?, HostId::parse(&self.host)?);
        let folder = home.fleet(&fleet);
        let say = |line: String| {
            use std::io::Write as _;
            let _unheard = writeln!(std::io::stdout(), "{line}");
        };
        let log = self.log()?;
        let local = Local { fleet: &fleet, folder: &folder, home: &home, host: &host, log, say: &say, step: &say };
        let agent = Agent::find(Some(&self.agent), &self.machine)?;
        let history = local.log.read().await?;
        let results = match self.verb.as_str() {
            "up" => local.up(&agent, history, &self.request()?, false).await?.report.results,
            "up-again" => local.up(&agent, history, &self.request()?, true).await?.report.results,
            "converge" => local.converge(&self.request()?).await?.report.results,
            down @ ("down" | "down-abandon") => {
                let nothing = Request { compiled: Compiled::nothing(), ..self.request()? };
                match local.down(&agent, history, &nothing, down == "down-abandon").await? {
                    Down::WasNotUp | Down::Gone { .. } => Vec::new(),
                    Down::Stays(applied) => applied.report.results,
                }
            }
            other => bail!("`{other}` is no verb"),
        };
        ensure!(results.iter().all(|result| result.failure.is_none()), "{results:#?}");
        Ok(())
    }

    fn request(&self) -> Result<Request> {
        let directory = Directory { path: self.folder().to_string_lossy().into_owned(), ..Directory::default() };
        let id = ResourceId::parse("m.folder")?;
        let resource = Resource { id, confirms_link: false, body: Kind::Directory(directory) };
        Ok(Request {
            compiled: Compiled { resources: vec![resource], places: Vec::new() },
            values: seal::Values::new(),
            spec_revision: String::new(),
            timeout: REPORT_WITHIN,
        })
    }

    /// Does it in a process of its own, cut off as `cut` says (see `replicator::point`) where it says something.
    ///
    /// # Errors
    ///
    /// It did not end in time.
    pub async fn process(&self, cut: &str) -> Result<Ended> {
        let mut command = tokio::process::Command::new(binary("lab-verb")?);
        command.arg(serde_json::to_string(self)?).env("REPLICATOR_CUT", cut);
        ended(command).await.with_context(|| format!("{} of {} at {cut}", self.verb, self.host))
    }
}

/// Runs `command`, which may be cut off, to its end.
///
/// # Errors
///
/// It did not end in time.
pub async fn ended(mut command: tokio::process::Command) -> Result<Ended> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let output = tokio::time::timeout(VERB_WITHIN, command.output()).await??;
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    let cut = said.lines().find_map(|line| line.strip_prefix("cut off behind `")?.strip_suffix('`'));
    let cut = cut.filter(|_| output.status.signal() == Some(9)).map(str::to_owned);
    Ok(Ended { cut, done: output.status.success(), said: said.into_owned() })
}
