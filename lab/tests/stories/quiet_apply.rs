//! What is as declared is looked at and not touched: no call that changes anything, no file written.

use std::path::{Path, PathBuf};
use std::time::Duration;

use replicator_host_agent::daemon::Depth;
use replicator_host_agent::host::docker::SOCKET;
use replicator_lab::bench::{Bench, outcomes};
use replicator_lab::fleet::Fleet;
use replicator_lab::images;
use replicator_lab::recorder::{Call, Recorder};
use replicator_lab::wait;
use replicator_lab::watch::Watch;
use replicator_protocol::wire::declaration::{
    Directory, Mount, Network, NetworkAttachment, mount::Source, resource::Kind,
};
use replicator_protocol::wire::event::Outcome;

/// Longest until an agent that starts has looked at everything.
const SOON: Duration = Duration::from_secs(30);

fn changing(calls: &[Call]) -> Vec<&Call> {
    calls.iter().filter(|call| call.changes()).collect()
}

/// Written paths that are none of the ledger's: those are the record, and the record is kept.
fn besides_the_ledger(written: Vec<PathBuf>, ledger: &Path) -> Vec<PathBuf> {
    let is_ledger = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        path.parent() == Some(ledger) && name.starts_with("ledger.db")
    };
    written.into_iter().filter(|path| !is_ledger(path)).collect()
}

async fn last_entry(fleet: &Fleet) -> u64 {
    let status = fleet.agent(&["status", "-o", "json"]).await.unwrap().json().unwrap();
    status["ledger"]["last"].as_u64().unwrap()
}

/// A resource of each kind, each naming the one before.
fn everything(bench: &Bench, image: &str, content: &str) -> Vec<(&'static str, Kind)> {
    let text = |path: PathBuf| path.to_string_lossy().into_owned();
    let bind = |path: PathBuf, target: &str| Mount {
        source: Some(Source::Bind(text(path))),
        target: target.into(),
        read_only: true,
    };
    let app = bench.container("app", image, |c| {
        c.networks = vec![NetworkAttachment { name: bench.name("lan"), ..NetworkAttachment::default() }];
        c.mounts = vec![
            bind(bench.path("conf"), "/conf"),
            bind(bench.path("token"), "/run/secrets/token"),
            bind(bench.path("data"), "/data"),
        ];
    });
    vec![
        ("m.data", Kind::Directory(Directory { path: text(bench.path("data")), ..Directory::default() })),
        ("m.lan", Kind::Network(Network { name: bench.name("lan") })),
        ("m.conf", bench.file("conf", content)),
        ("m.token", bench.secret("m.token", "hunter22", 1).unwrap()),
        ("m.app", app),
    ]
}

#[tokio::test]
async fn equal_content_under_a_new_number_touches_nothing() {
    let image = images::id(images::WORKLOAD).unwrap();
    let recorder = Recorder::before(SOCKET).unwrap();
    let mut bench = Bench::before(&recorder.socket()).unwrap();
    let resources = everything(&bench, &image, "one");
    let report = bench.apply(&resources).await.unwrap();
    assert_eq!(outcomes(&report), [Outcome::Changed; 5], "{report:?}");
    assert!(!changing(&recorder.take()).is_empty(), "the control: making is counted");

    let ledger = bench.folder().join("ledger");
    let watch = Watch::below(bench.folder()).unwrap();
    let report = bench.apply(&resources).await.unwrap();
    assert_eq!(outcomes(&report), [Outcome::Unchanged; 5], "{report:?}");
    let (calls, written) = (recorder.take(), watch.take().unwrap());
    assert!(calls.iter().any(|call| call.path.contains("/containers/")), "it did look: {calls:?}");
    assert_eq!(changing(&calls), Vec::<&Call>::new());
    assert!(!written.is_empty(), "the control: the report was written");
    assert_eq!(besides_the_ledger(written, &ledger), Vec::<PathBuf>::new());

    // A full look of its own writes no report either; a cheap one asks less.
    for depth in [Depth::Full, Depth::Cheap] {
        assert_eq!(bench.look(depth).await.unwrap(), None);
        let calls = recorder.take();
        assert!(!calls.is_empty() && changing(&calls).is_empty(), "{depth:?}: {calls:?}");
        assert_eq!(watch.take().unwrap(), Vec::<PathBuf>::new(), "{depth:?}");
    }

    // The control: a real change is seen by both.
    let resources = everything(&bench, &image, "two");
    bench.apply(&resources).await.unwrap();
    assert!(!changing(&recorder.take()).is_empty());
    let written = besides_the_ledger(watch.take().unwrap(), &ledger);
    assert!(written.contains(&bench.path("conf")), "{written:?}");
}

/// The same through the whole product: `host converge`, whose every call and write this counts.
#[tokio::test]
async fn converging_what_is_converged_touches_nothing() {
    let fleet = Fleet::start().await.unwrap();
    fleet.host("up").await.unwrap().json().unwrap();
    // From here on the agent reaches the runtime through the door.
    let recorder = Recorder::before(SOCKET).unwrap();
    fleet.stop_agent().await.unwrap();
    let settings = fleet.agent_root().join("etc/replicator-host-agent/agent.toml");
    let text = std::fs::read_to_string(&settings).unwrap();
    std::fs::write(&settings, format!("docker = {:?}\n{text}", recorder.socket())).unwrap();
    let before = fleet.containers().unwrap();
    let last = last_entry(&fleet).await;
    for restart in 1..=2 {
        fleet.start_agent().await.unwrap();
        let mut asked = Vec::new();
        let looked = async || {
            asked.extend(recorder.take());
            Ok(before.values().all(|id| asked.iter().any(|call| call.path.contains(id))).then_some(()))
        };
        wait::until("it has looked at what it was told before", SOON, looked).await.unwrap();
        assert_eq!(changing(&asked), Vec::<&Call>::new(), "nor does start {restart} touch what is as declared");
        fleet.stop_agent().await.unwrap();
        assert_eq!(last_entry(&fleet).await, last, "start {restart} found nothing, and so it says nothing");
    }
    fleet.start_agent().await.unwrap();

    let state = fleet.agent_root().join("var/lib/replicator-host-agent");
    let data = PathBuf::from(format!("/var/lib/replicator.{}", fleet.host));
    let watches = [Watch::below(&data).unwrap(), Watch::below(&fleet.agent_root()).unwrap()];
    let report = fleet.host("converge").await.unwrap().json().unwrap();
    let results = report["results"].as_array().unwrap();
    assert!(results.len() > 5 && results.iter().all(|one| one["outcome"] == "unchanged"), "{report:#}");
    let (calls, [on_machine, own]) = (recorder.take(), watches.map(|watch| watch.take().unwrap()));
    assert_eq!(changing(&calls), Vec::<&Call>::new());
    assert_eq!(last_entry(&fleet).await, last + 2, "accepted, and the report; and a third start said nothing");
    for id in before.values() {
        assert!(calls.iter().any(|call| call.path.contains(id)), "it did look at {id}: {calls:?}");
    }
    assert_eq!(on_machine, Vec::<PathBuf>::new());
    // Its own record: the ledger, the declaration as it came, the two anchors (each first beside its place), its log.
    let record = ["ledger", "declarations", "anchor", ".new-", "agent.log"];
    let other = own.into_iter().filter(|path| {
        let name = path.strip_prefix(&state).map(|path| path.to_string_lossy().into_owned()).unwrap_or_default();
        !record.iter().any(|ours| name.starts_with(ours))
    });
    assert_eq!(other.collect::<Vec<_>>(), Vec::<PathBuf>::new());

    // The control.
    let watch = Watch::below(&data).unwrap();
    fleet.set_secret("webToken", "second-value").await.unwrap();
    fleet.host("converge").await.unwrap().json().unwrap();
    assert!(!changing(&recorder.take()).is_empty());
    let written = watch.take().unwrap();
    assert!(written.iter().any(|path| path.to_string_lossy().contains("/secrets/")), "{written:?}");
}
