//! One life of an agent that may die of what it applies: what it is told, and what it then does.
//!
//! The program `lab-life` lives one, in a process of its own. Two declarations of every kind can take turns, so that
//! each apply creates, changes and removes something, and none has to be set up.

use std::os::unix::process::ExitStatusExt as _;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use prost::Message as _;
use replicator_host_agent::daemon::Depth;
use replicator_protocol::wire::declaration::{
    Declaration, Directory, Health, HealthCommand, Mount, Network, NetworkAttachment, Resource, health::Test,
    mount::Source, resource::Kind,
};
use replicator_protocol::wire::event::ResourceResult;
use serde::{Deserialize, Serialize};

use crate::bench::{Bench, Shared};
use crate::fleet::binary;

/// Longest that one life may take.
const LIFE_WITHIN: Duration = Duration::from_secs(90);

/// One apply by an agent that may die of it.
#[derive(Serialize, Deserialize)]
pub struct Life {
    /// The host it lives on.
    host: Shared,
    /// What is declared: the bytes of a declaration with these resources, in hex.
    declared: String,
}

/// Resources by `module.name`.
pub type Declared = Vec<(String, Kind)>;

impl Life {
    /// A life on this host, which no other process has open meanwhile.
    #[must_use]
    pub fn new(host: Shared, declared: &Declared) -> Self {
        let resources = declared.iter().map(|(id, kind)| {
            let (module, name) = id.rsplit_once('.').unwrap_or(("m", id));
            Resource { module: module.into(), name: name.into(), confirms_link: false, kind: Some(kind.clone()) }
        });
        let message = Declaration { resources: resources.collect(), ..Declaration::default() };
        Self { host, declared: hex::encode(message.encode_to_vec()) }
    }

    /// Lives it in a process of its own that meets this fault (see `host::point`), and says whether it was killed.
    ///
    /// # Errors
    ///
    /// It ended otherwise than well or killed, or not in time.
    pub async fn meet(&self, fault: &str) -> Result<bool> {
        let mut command = tokio::process::Command::new(binary("lab-life")?);
        command.arg(serde_json::to_string(self)?).env("REPLICATOR_FAULT_POINT", fault);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let output = tokio::time::timeout(LIFE_WITHIN, command.output()).await??;
        let killed = output.status.signal() == Some(9);
        let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        ensure!(killed || output.status.success(), "{fault}: {said}");
        Ok(killed)
    }

    /// Applies what is declared and, where nothing of that failed, finds nothing left to do.
    ///
    /// # Errors
    ///
    /// It could not be applied, or something failed that was not reported.
    pub async fn live(&self) -> Result<()> {
        let mut bench = Bench::join(&self.host)?;
        let declared = self.declared()?;
        if apply(&mut bench, &declared).await?.is_empty() {
            let left = bench.look(Depth::Full).await?;
            ensure!(left.is_none(), "what is not reported has not failed: {left:#?}");
        }
        Ok(())
    }

    fn declared(&self) -> Result<Declared> {
        let message = Declaration::decode(&hex::decode(&self.declared)?[..])?;
        let named = |resource: Resource| {
            let kind = resource.kind.context("a resource of no kind")?;
            Ok((format!("{}.{}", resource.module, resource.name), kind))
        };
        message.resources.into_iter().map(named).collect()
    }
}

/// What is declared in `turn`: one container swapped for its file, one that reads its routes again, one file
/// whose mode alone changes; and a folder, a file, a network and a container that the other turn has not.
#[must_use]
pub fn declared(bench: &Bench, image: &str, turn: &str) -> Declared {
    let folder = |name: &str| {
        let path = bench.path(name).to_string_lossy().into_owned();
        Kind::Directory(Directory { path, ..Directory::default() })
    };
    let mut mode = bench.file("mode", "same");
    if let Kind::File(file) = &mut mode {
        file.mode = Some(if turn == "a" { 0o600 } else { 0o640 });
    }
    let mut app = container(bench, "app", image, &[("conf", "/conf")], None);
    if let Kind::Container(container) = &mut app {
        container.health = Some(health());
    }
    let mut reading = container(bench, "reading", image, &[("routes", "/routes")], None);
    if let Kind::Container(container) = &mut reading {
        container.reload_on = vec!["reload.routes".into()];
        container.reload_signal = "SIGHUP".into();
    }
    let name = |name: &str| format!("turn.{name}-{turn}");
    let (only, lan, job) = (format!("only-{turn}"), format!("lan-{turn}"), format!("job-{turn}"));
    vec![
        ("swap.conf".into(), bench.file("conf", turn)),
        ("swap.app".into(), app),
        ("reload.folder".into(), folder("routes")),
        ("reload.routes".into(), bench.file("routes/all", turn)),
        ("reload.reading".into(), reading),
        ("mode.file".into(), mode),
        (name("folder"), folder(&only)),
        (name("file"), bench.file(&format!("{only}/file"), turn)),
        (name("lan"), Kind::Network(Network { name: bench.name(&lan) })),
        (name("job"), container(bench, &job, image, &[], Some(&lan))),
    ]
}

/// Applies it, and tells what failed.
///
/// # Errors
///
/// It could not be applied.
pub async fn apply(bench: &mut Bench, declared: &Declared) -> Result<Vec<ResourceResult>> {
    let resources: Vec<_> = declared.iter().map(|(id, kind)| (id.as_str(), kind.clone())).collect();
    let report = bench.apply(&resources).await?;
    Ok(report.results.into_iter().filter(|result| result.failure.is_some()).collect())
}

/// Of one container only: each look is a process that the runtime starts, and many hosts live at once.
fn health() -> Health {
    let arguments = vec!["/lab-workload".into(), "health".into()];
    Health {
        test: Some(Test::Command(HealthCommand { arguments })),
        interval: 500,
        timeout: 10_000,
        retries: 5,
        start_period: 0,
    }
}

fn container(bench: &Bench, name: &str, image: &str, mounts: &[(&str, &str)], network: Option<&str>) -> Kind {
    bench.container(name, image, |c| {
        let bound = |(source, target): &(&str, &str)| Mount {
            source: Some(Source::Bind(bench.path(source).to_string_lossy().into_owned())),
            target: (*target).to_owned(),
            read_only: true,
        };
        c.mounts = mounts.iter().map(bound).collect();
        c.networks = network
            .map(|network| NetworkAttachment { name: bench.name(network), ..Default::default() })
            .into_iter()
            .collect();
        // The lab's program has no grace to use.
        c.stop_signal = "SIGKILL".into();
    })
}
