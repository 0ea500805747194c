//! The container runtime goes away, hangs or is killed: it is never taken for empty, the agent lives and tells, and
//! afterwards everything is as declared, once.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use replicator_lab::bench::{Bench, outcomes};
use replicator_lab::dockerd::{Dockerd, docker};
use replicator_lab::fleet::{Answer, Fleet};
use replicator_lab::{images, wait};
use replicator_protocol::wire::event::Outcome;
use serde_json::Value;

/// What of such a fleet stands in the runtime.
const IN_RUNTIME: [&str; 4] = ["base.network", "pod.ada.net", "pod.ada.web", "proxy.server"];
/// Longest until an agent has seen that the runtime is away: a look, and the bound of one call to one that hangs.
const SEEN_WITHIN: Duration = Duration::from_secs(60);
/// Longest until everything is as declared once the runtime is back: the first pause before a retry is in it.
const BACK_WITHIN: Duration = Duration::from_secs(90);
/// Longest between two heartbeats, one of which is due each second.
const BEATS_WITHIN: Duration = Duration::from_secs(10);

/// A host with everything applied on a runtime that can be broken.
struct Scene {
    // First: what it holds of the runtime is removed before that ends.
    fleet: Fleet,
    dockerd: Dockerd,
    containers: BTreeMap<String, String>,
}

impl Scene {
    async fn new() -> Self {
        let dockerd = Dockerd::start().await.unwrap();
        let fleet = Fleet::start_here().await.unwrap();
        fleet.host("up").await.unwrap().json().unwrap();
        fleet.look_often().await.unwrap();
        let containers = fleet.containers().unwrap();
        assert_eq!(containers.len(), 3);
        Self { fleet, dockerd, containers }
    }

    /// Has the workload declared anew.
    fn greet(&self, before: &str, after: &str) {
        self.fleet.edit(&format!("GREETING: {before}"), &format!("GREETING: {after}")).unwrap();
    }

    async fn status(&self) -> Value {
        self.fleet.agent(&["status", "-o", "json"]).await.unwrap().json().unwrap()
    }

    /// Resources that fail or drifted, with the code or the word.
    async fn ails(&self) -> BTreeMap<String, String> {
        let status = self.status().await;
        let resources = status["resources"].as_object().unwrap();
        let ails = |one: &Value| one["failure"].as_str().or_else(|| one["drift"].as_str()).map(str::to_owned);
        resources.iter().filter_map(|(name, one)| Some((name.clone(), ails(one)?))).collect()
    }

    /// The agent says that it cannot say, of every container; the controller has heard it.
    async fn says_that_the_runtime_is_away(&self, code: &str) {
        let ail = BTreeMap::from_iter(IN_RUNTIME[1..].iter().map(|name| ((*name).to_owned(), code.to_owned())));
        let told = wait::until("the agent says so", SEEN_WITHIN, async || {
            let ails = self.ails().await;
            Ok(ail.iter().all(|(name, code)| ails.get(name) == Some(code)).then_some(()))
        });
        let told = told.await;
        assert!(told.is_ok(), "{:#?}", self.ails().await);
        self.beats().await;
    }

    async fn heard(&self) -> u64 {
        let status = self.fleet.replicator(&["fleet", "status", "-o", "json"]).await.unwrap().json().unwrap();
        status["hosts"][0]["heard"].as_u64().unwrap()
    }

    /// The agent is alive: another heartbeat comes.
    async fn beats(&self) {
        let before = self.heard().await;
        let beat = wait::until("a heartbeat", BEATS_WITHIN, async || Ok((self.heard().await > before).then_some(())));
        beat.await.unwrap();
    }

    /// Everything is as declared, once, and proven so.
    async fn is_as_declared(&self, greeting: &str) {
        let well =
            wait::until("everything is well", BACK_WITHIN, async || Ok(self.ails().await.is_empty().then_some(())));
        let well = well.await;
        assert!(well.is_ok(), "{:#}", self.status().await);
        let fleet = &self.fleet;
        // What is known to be well may be known from before.
        let serves = |page: &Answer| page.status == 200 && page.body.starts_with(greeting);
        let page =
            wait::until("the page", BACK_WITHIN, async || Ok(fleet.fetch(fleet.name(), "/").await.ok().filter(serves)));
        page.await.unwrap();
        let names = |all: &BTreeMap<String, String>| all.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&fleet.containers().unwrap()), names(&self.containers), "each once, and nothing beside it");
        let networks = docker(&["network", "ls", "--filter", "driver=bridge", "--format", "{{.Name}}"]).unwrap();
        assert_eq!(networks.lines().count(), 1, "{networks}");
        fleet.agent(&["ledger", "verify"]).await.unwrap().done().unwrap();
        let report = fleet.host("converge").await.unwrap().json().unwrap();
        let results = report["results"].as_array().unwrap();
        assert!(results.iter().all(|one| one["outcome"] == "unchanged"), "{report:#}");
    }

    /// Once by the runtime, and once by the agent where it came up in the wrong order or is another one.
    fn nothing_was_started_in_a_loop(&self) {
        let starts = self.starts();
        assert!(starts.values().all(|times| *times <= 2), "{starts:?}");
    }

    /// How often each container was started since this daemon began.
    fn starts(&self) -> BTreeMap<String, usize> {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs_f64();
        let until = format!("{now}");
        let filter = ["events", "--since", "0", "--until", &until, "--filter", "event=start"];
        let said = docker(&[&filter[..], &["--format", "{{.Actor.Attributes.name}}"]].concat()).unwrap();
        let mut starts = BTreeMap::new();
        said.lines().for_each(|name| *starts.entry(name.to_owned()).or_default() += 1);
        starts
    }
}

#[tokio::test]
async fn apply_without_a_runtime_is_owed_and_done_when_it_is_back() {
    let mut scene = Scene::new().await;
    // Declared while the agent is down, as the controller asks the runtime for its image.
    scene.fleet.stop_agent().await.unwrap();
    scene.greet("hello", "hullo");
    let said = scene.fleet.host_within("converge", 1).await.unwrap();
    assert!(said.code == 1 && said.stderr.contains("no report on declaration 2"), "{said:?}");
    scene.dockerd.stop().await.unwrap();
    scene.fleet.start_agent().await.unwrap();
    let applied = wait::until("the declaration is applied", SEEN_WITHIN, async || {
        Ok((scene.status().await["last_apply"]["sequence"] == 2).then_some(()))
    });
    assert!(applied.await.is_ok(), "{:#}", scene.status().await);
    let failed: Vec<_> = scene.ails().await.into_keys().collect();
    assert_eq!(failed, IN_RUNTIME, "{:#}", scene.status().await);
    scene.says_that_the_runtime_is_away("runtime-unreachable").await;
    scene.dockerd.resume().await.unwrap();
    scene.is_as_declared("hullo").await;
    scene.nothing_was_started_in_a_loop();
}

#[tokio::test]
async fn runtime_killed_in_an_apply_costs_nothing_but_time() {
    let mut scene = Scene::new().await;
    // Made and not yet in its place; in its place and not yet proven.
    for (at, (before, after)) in [("ada_web.next", ("hello", "hullo")), ("ada_web.prev", ("hullo", "hello"))] {
        scene.greet(before, after);
        let Scene { fleet, dockerd, .. } = &mut scene;
        let called = format!("{}_{at}", fleet.host);
        let killed = async {
            tokio::time::timeout(SEEN_WITHIN, dockerd.tells_of(&called)).await.unwrap().unwrap();
            dockerd.kill().await.unwrap();
        };
        let (said, ()) = tokio::join!(fleet.host("converge"), killed);
        let said = said.unwrap();
        assert_eq!(said.code, 1, "{at}: {said:#?}");
        assert!(scene.ails().await.contains_key("pod.ada.web"), "{at}: {:#}", scene.status().await);
        scene.beats().await;
        scene.dockerd.resume().await.unwrap();
        scene.is_as_declared(after).await;
        scene.nothing_was_started_in_a_loop();
    }
}

#[tokio::test]
async fn runtime_that_hangs_is_waited_for_and_nothing_is_started_again() {
    let scene = Scene::new().await;
    let before = scene.starts();
    scene.dockerd.hang().unwrap();
    scene.beats().await;
    scene.says_that_the_runtime_is_away("runtime-timed-out").await;
    scene.dockerd.go_on().unwrap();
    scene.is_as_declared("hello").await;
    assert_eq!(scene.fleet.containers().unwrap(), scene.containers);
    assert_eq!(scene.starts(), before);
}

#[tokio::test]
async fn runtime_that_hangs_in_an_apply_is_waited_for() {
    let scene = Scene::new().await;
    scene.greet("hello", "hullo");
    let called = format!("{}_ada_web.next", scene.fleet.host);
    let hung = async {
        tokio::time::timeout(SEEN_WITHIN, scene.dockerd.tells_of(&called)).await.unwrap().unwrap();
        scene.dockerd.hang().unwrap();
        scene.beats().await;
    };
    let (said, ()) = tokio::join!(scene.fleet.host("converge"), hung);
    assert_eq!(said.unwrap().code, 1);
    assert!(scene.ails().await.contains_key("pod.ada.web"), "{:#}", scene.status().await);
    scene.dockerd.go_on().unwrap();
    scene.is_as_declared("hullo").await;
}

#[tokio::test]
async fn restarted_runtime_whose_containers_were_stopped_has_them_all_again() {
    let mut scene = Scene::new().await;
    scene.dockerd.stop().await.unwrap();
    scene.dockerd.resume().await.unwrap();
    scene.is_as_declared("hello").await;
    assert_eq!(scene.fleet.containers().unwrap(), scene.containers, "started again, not made again");
    scene.nothing_was_started_in_a_loop();
}

/// Processes on this machine that were told of `folder`.
fn traces(folder: &Path) -> Vec<String> {
    let folder = folder.to_string_lossy();
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let arguments = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let arguments = String::from_utf8_lossy(&arguments).into_owned();
        found.extend(arguments.contains(&*folder).then_some(arguments));
    }
    found
}

/// A test that fails with the runtime killed and a container running.
async fn fails(folder: std::sync::mpsc::Sender<(PathBuf, i64)>) {
    let mut dockerd = Dockerd::start().await.unwrap();
    let mut bench = Bench::new().unwrap();
    let image = images::id(images::WORKLOAD).unwrap();
    let report = bench.apply(&[("m.app", bench.container("app", &image, |_| ()))]).await.unwrap();
    assert_eq!(outcomes(&report), [Outcome::Changed], "{report:?}");
    let pid = bench.seen("app").await.unwrap().pid;
    folder.send((dockerd.folder().to_owned(), pid)).unwrap();
    dockerd.kill().await.unwrap();
    panic!("the test fails here");
}

#[test]
fn runtime_of_a_failed_test_leaves_nothing() {
    let (send, receive) = std::sync::mpsc::channel();
    let test = std::thread::spawn(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(fails(send));
    });
    assert!(test.join().is_err());
    let (folder, pid) = receive.recv().unwrap();
    assert_eq!(traces(&folder), Vec::<String>::new());
    assert!(!folder.exists());
    // One that was killed and not waited for has no program.
    assert!(std::fs::read_link(format!("/proc/{pid}/exe")).is_err(), "the container runs still");
}
