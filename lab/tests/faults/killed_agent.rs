//! Killed at every named point of an apply with creates, changes and removals, the agent goes on where it was.
//!
//! Each life of the agent is a process of its own, `lab-life`, told what to apply and, by
//! `REPLICATOR_FAULT_POINT`, where to die.

use std::collections::{BTreeMap, VecDeque};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex};

use replicator_host_agent::config::Layout;
use replicator_host_agent::daemon::Depth;
use replicator_host_agent::host::point::Effect;
use replicator_host_agent::ledger::Reader;
use replicator_lab::bench::Bench;
use replicator_lab::dockerd::docker;
use replicator_lab::images;
use replicator_lab::life::{Life, apply, declared};

/// Struck at most so many times at one point: the first time, and once with the same thing done before.
const OFTEN: usize = 2;
/// Hosts at once: most of the time is waiting for containers.
const HOSTS: usize = 4;

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
    let ledger = Reader::open(bench.folder()).unwrap().unwrap();
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
    let failed = apply(bench, &Vec::new()).await.unwrap();
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
        let failed = apply(&mut self.bench, &declared).await.unwrap();
        assert!(failed.is_empty(), "{after}: {failed:#?}");
        is_as_declared(&self.bench, self.turn, after).await;
    }

    /// An agent that goes over to the other turn with this fault; says whether that killed it.
    async fn goes_over(&mut self, fault: &str) -> bool {
        self.turn = if self.turn == "a" { "b" } else { "a" };
        let declared = declared(&self.bench, &self.image, self.turn);
        let killed = Life::new(self.bench.share(), &declared).meet(fault).await.unwrap();
        self.bench.start().unwrap();
        killed
    }
}

/// The points of a machine. Left out: fetching an image (the lab's are held, and a fetch that was cut off leaves
/// nothing of ours), the agent's own small files, its publishing and the files of its ledger, which no apply does.
fn points() -> impl Iterator<Item = String> {
    use Effect::{LedgerDrop, LedgerMake, LedgerPutBack, LedgerRotate, LedgerSetAside};
    let ledger = [LedgerMake, LedgerRotate, LedgerDrop, LedgerSetAside, LedgerPutBack];
    let left_out = [[Effect::ImagePull, Effect::OwnWrite, Effect::EventsPublish].as_slice(), &ledger].concat();
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

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn effect_that_fails_is_reported_or_made_good_and_the_next_apply_converges() {
    at_every_point(points(), |mut host, queue| async move {
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
