//! Killed at every named point of an apply with creates, changes and removals, the agent goes on where it was.
//!
//! Each life of the agent is a process of its own: this binary again, told by [`LIFE`] what to apply and by
//! `REPLICATOR_FAULT_POINT` where to die. Two declarations take turns, so that each apply creates, changes and
//! removes something of every kind, and none has to be set up.

use std::collections::{BTreeMap, VecDeque};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use replicator_host_agent::config::Layout;
use replicator_host_agent::daemon::Depth;
use replicator_host_agent::host::point::Effect;
use replicator_host_agent::ledger::Reader;
use replicator_lab::bench::{Bench, Shared};
use replicator_lab::fleet::docker;
use replicator_lab::images;
use replicator_protocol::wire::declaration::{
    Directory, Health, HealthCommand, Mount, Network, NetworkAttachment, health::Test, mount::Source, resource::Kind,
};
use replicator_protocol::wire::event::ResourceResult;
use serde::{Deserialize, Serialize};

/// Says what one life of the agent is to apply.
const LIFE: &str = "REPLICATOR_LAB_LIFE";
/// Longest that one life may take.
const LIFE_WITHIN: Duration = Duration::from_secs(90);
/// Struck at most so many times at one point: the first time, and once with the same thing done before.
const OFTEN: usize = 2;
/// Hosts at once: most of the time is waiting for containers.
const HOSTS: usize = 4;

/// One apply by an agent that may die of it.
#[derive(Serialize, Deserialize)]
struct Life {
    host: Shared,
    image: String,
    turn: String,
}

type Declared = Vec<(String, Kind)>;

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
        c.health = Some(Health {
            test: Some(Test::Command(HealthCommand { arguments: vec!["/lab-workload".into(), "health".into()] })),
            interval: 200,
            timeout: 2000,
            retries: 5,
            start_period: 0,
        });
        // The lab's program has no grace to use.
        c.stop_signal = "SIGKILL".into();
    })
}

/// What is declared in `turn`: one container swapped for its file, one that reads its routes again, one file
/// whose mode alone changes; and a folder, a file, a network and a container that the other turn has not.
fn declared(bench: &Bench, image: &str, turn: &str) -> Declared {
    let folder = |name: &str| {
        let path = bench.path(name).to_string_lossy().into_owned();
        Kind::Directory(Directory { path, ..Directory::default() })
    };
    let mut mode = bench.file("mode", "same");
    if let Kind::File(file) = &mut mode {
        file.mode = Some(if turn == "a" { 0o600 } else { 0o640 });
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
        ("swap.app".into(), container(bench, "app", image, &[("conf", "/conf")], None)),
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
async fn apply(bench: &mut Bench, declared: &Declared) -> Vec<ResourceResult> {
    let resources: Vec<_> = declared.iter().map(|(id, kind)| (id.as_str(), kind.clone())).collect();
    let report = bench.apply(&resources).await.unwrap();
    report.results.into_iter().filter(|result| result.failure.is_some()).collect()
}

/// One life of the agent, where another test asked for it.
#[tokio::test]
#[ignore = "started by the tests of this file, in a process of its own"]
async fn life() {
    let Ok(life) = std::env::var(LIFE) else { return };
    let life: Life = serde_json::from_str(&life).unwrap();
    let mut bench = Bench::join(&life.host).unwrap();
    let declared = declared(&bench, &life.image, &life.turn);
    if apply(&mut bench, &declared).await.is_empty() {
        assert_eq!(bench.look(Depth::Full).await.unwrap(), None, "what is not reported has not failed");
    }
}

/// Lives that life with this fault, and says whether it was killed.
async fn live(life: &Life, fault: &str) -> bool {
    let mut command = tokio::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "faults::killed_agent::life", "--ignored", "--nocapture"]);
    command.env(LIFE, serde_json::to_string(life).unwrap()).env("REPLICATOR_FAULT_POINT", fault);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let output = tokio::time::timeout(LIFE_WITHIN, command.output()).await.unwrap().unwrap();
    let killed = output.status.signal() == Some(9);
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(killed || output.status.success(), "{fault}: {said}");
    killed
}

/// Everything below `folder`, by path: content and mode of files, nothing of folders.
fn found(folder: &Path) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            all.extend(found(&path).into_iter().map(|(below, what)| (format!("{name}/{below}"), what)));
            all.insert(name, "folder".into());
        } else {
            let mode = std::fs::metadata(&path).unwrap().permissions().mode() & 0o7777;
            all.insert(name, format!("{mode:o} {}", std::fs::read_to_string(&path).unwrap()));
        }
    }
    all
}

fn lines(text: &str) -> Vec<String> {
    let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

/// Containers with their state, then networks, of this host.
fn in_runtime(bench: &Bench) -> (Vec<String>, Vec<String>) {
    let filter = format!("label={}", bench.label());
    let containers = docker(&["ps", "-a", "--filter", &filter, "--format", "{{.Names}} {{.State}}"]).unwrap();
    let networks = docker(&["network", "ls", "--filter", &filter, "--format", "{{.Name}}"]).unwrap();
    (lines(&containers), lines(&networks))
}

fn ledger_verifies(bench: &Bench) {
    let ledger = Reader::open(&bench.folder().join("ledger/ledger.db")).unwrap().unwrap();
    ledger.verify().unwrap();
}

/// Everything is as `turn` declares it, once, and nothing else is there.
async fn is_as_declared(bench: &Bench, turn: &str, after: &str) {
    let (containers, networks) = in_runtime(bench);
    let job = format!("job-{turn}");
    let running = ["app", &job, "reading"].map(|name| format!("{} running", bench.name(name)));
    assert_eq!(containers, running, "{after}");
    assert_eq!(networks, [bench.name(&format!("lan-{turn}"))], "{after}");
    let mode = if turn == "a" { "600 same" } else { "640 same" };
    let expected = [
        ("conf".to_owned(), format!("644 {turn}")),
        ("mode".to_owned(), mode.to_owned()),
        (format!("only-{turn}"), "folder".to_owned()),
        (format!("only-{turn}/file"), format!("644 {turn}")),
        ("routes".to_owned(), "folder".to_owned()),
        ("routes/all".to_owned(), format!("644 {turn}")),
    ];
    assert_eq!(found(&bench.path("")), BTreeMap::from(expected), "{after}");
    let app = bench.seen("app").await.unwrap();
    let inside = std::fs::read_to_string(format!("/proc/{}/root/conf", app.pid)).unwrap();
    assert_eq!(inside, turn, "{after}: the container reads the file as it is now");
    assert_eq!(bench.look(Depth::Full).await.unwrap(), None, "{after}: nothing is left to do");
    nothing_is_kept(bench, after);
}

fn nothing_is_kept(bench: &Bench, after: &str) {
    let layout = Layout::new(bench.folder());
    for folder in [layout.previous(), layout.originals()] {
        assert_eq!(found(&folder), BTreeMap::new(), "{after}: {}", folder.display());
    }
    ledger_verifies(bench);
}

/// Undeclared, nothing of it is left.
async fn is_undone(bench: &mut Bench, after: &str) {
    let failed = apply(bench, &Vec::new()).await;
    assert!(failed.is_empty(), "{after}: {failed:#?}");
    assert_eq!(in_runtime(bench), (Vec::new(), Vec::new()), "{after}");
    assert_eq!(found(&bench.path("")), BTreeMap::new(), "{after}");
    nothing_is_kept(bench, after);
}

/// One host, and whose turn it is.
struct Host {
    bench: Bench,
    image: String,
    turn: &'static str,
}

impl Host {
    async fn new() -> Self {
        let image = images::id(images::WORKLOAD).unwrap();
        let mut host = Self { bench: Bench::new().unwrap(), image, turn: "a" };
        host.converges("the start").await;
        host
    }

    /// The agent, told the same or more, does it all.
    async fn converges(&mut self, after: &str) {
        let declared = declared(&self.bench, &self.image, self.turn);
        let failed = apply(&mut self.bench, &declared).await;
        assert!(failed.is_empty(), "{after}: {failed:#?}");
        is_as_declared(&self.bench, self.turn, after).await;
    }

    /// An agent that goes over to the other turn with this fault; says whether that killed it.
    async fn goes_over(&mut self, fault: &str) -> bool {
        self.turn = if self.turn == "a" { "b" } else { "a" };
        let host = self.bench.share();
        let killed = live(&Life { host, image: self.image.clone(), turn: self.turn.to_owned() }, fault).await;
        self.bench.start().unwrap();
        killed
    }
}

/// The points of a machine. Left out: fetching an image (the lab's are held, and a fetch that was cut off leaves
/// nothing of ours), the agent's own small files and its publishing, which no apply does.
fn points() -> impl Iterator<Item = String> {
    let left_out = [Effect::ImagePull, Effect::OwnWrite, Effect::EventsPublish];
    let effects = Effect::ALL.iter().filter(move |effect| !left_out.contains(effect));
    effects.flat_map(|effect| ["before", "after"].map(|side| format!("{}.{side}", effect.as_str())))
}

/// Shares the points out among hosts of their own, and waits for all.
async fn at_every_point<F>(
    points: impl Iterator<Item = String>,
    visit: impl Fn(Host, Arc<Mutex<VecDeque<String>>>) -> F,
) where
    F: Future<Output = ()> + Send + 'static,
{
    let queue = Arc::new(Mutex::new(points.collect::<VecDeque<_>>()));
    let mut hosts = tokio::task::JoinSet::new();
    for _ in 0..HOSTS {
        hosts.spawn(visit(Host::new().await, Arc::clone(&queue)));
    }
    while let Some(ended) = hosts.join_next().await {
        ended.unwrap();
    }
    assert!(queue.lock().unwrap().is_empty());
}

fn pop(queue: &Mutex<VecDeque<String>>) -> Option<String> {
    queue.lock().unwrap().pop_front()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn agent_killed_at_any_point_converges_and_makes_nothing_twice() {
    at_every_point(points(), |mut host, queue| async move {
        while let Some(point) = pop(&queue) {
            for nth in 1..=OFTEN {
                let fault = format!("{point}#{nth}:kill");
                let killed = host.goes_over(&fault).await;
                assert!(killed || nth > 1, "{fault} struck nothing");
                // Where nothing struck it the second time, it did it all by itself: that is the control.
                host.converges(&fault).await;
                if !killed {
                    break;
                }
            }
        }
        is_undone(&mut host.bench, "the end").await;
    })
    .await;
}

/// Files and folders only before the effect: what was done to them and failed afterwards is not told apart from
/// what was found.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn effect_that_fails_is_reported_or_made_good_and_the_next_apply_converges() {
    let runtime = |point: &String| point.starts_with("container.") || point.starts_with("network.");
    let struck = points().filter(move |point| point.ends_with(".before") || runtime(point));
    at_every_point(struck, |mut host, queue| async move {
        while let Some(point) = pop(&queue) {
            let fault = format!("{point}:error");
            assert!(!host.goes_over(&fault).await, "{fault} killed it");
            host.bench.skip_number();
            host.converges(&fault).await;
        }
        is_undone(&mut host.bench, "the end").await;
    })
    .await;
}
