//! What stands already and is as declared is taken over as it stands: nothing is restarted for being ours now.

use replicator_host_agent::daemon::Depth;
use replicator_host_agent::host::docker::Condition;
use replicator_lab::bench::{Bench, code, outcomes};
use replicator_lab::dockerd::docker;
use replicator_lab::images;
use replicator_protocol::change::reason;
use replicator_protocol::wire::declaration::{Mount, Network, NetworkAttachment, mount::Source, resource::Kind};
use replicator_protocol::wire::event::{Outcome, ReasonCode, Trigger};

/// Longest that the runtime gives a container to end.
const GRACE: std::time::Duration = std::time::Duration::from_secs(5);

/// A container that the runtime's own command line made; gone when it is dropped.
struct Stranger(String);

impl Stranger {
    /// One that `app` of [`everything`] declares, in that command line's words; `more` comes last and wins.
    fn run(bench: &Bench, image: &str, more: &[&str]) -> Self {
        let (name, network, volume) = (bench.name("app"), bench.name("lan"), bench.name("data"));
        let conf = format!("{}:/conf:ro", bench.path("conf").display());
        let data = format!("{volume}:/data");
        let mut arguments = vec!["run", "-d", "--name", &name, "--network", &network, "--network-alias", "web"];
        arguments.extend(["-v", &conf, "-v", &data, "-e", "GREETING=one", "--restart", "unless-stopped"]);
        arguments.extend(["--log-opt", "max-size=10m", "--log-opt", "max-file=3", "--label", "of=somebody"]);
        arguments.extend(["--cap-drop", "NET_RAW", "--memory", "67108864"]);
        arguments.extend(more);
        arguments.push(image);
        docker(&arguments).unwrap();
        Self(name)
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        // Gone already is as good.
        let _gone = docker(&["rm", "-fv", &self.0]);
    }
}

/// A network, a file, and a container that has to do with both.
fn everything(bench: &Bench, image: &str, content: &str) -> Vec<(&'static str, Kind)> {
    let mount = |source, target: &str, read_only| Mount { source: Some(source), target: target.into(), read_only };
    let conf = bench.path("conf").to_string_lossy().into_owned();
    let app = bench.container("app", image, |c| {
        c.networks =
            vec![NetworkAttachment { name: bench.name("lan"), aliases: vec!["web".into()], ..Default::default() }];
        c.mounts =
            vec![mount(Source::Bind(conf), "/conf", true), mount(Source::Volume(bench.name("data")), "/data", false)];
        c.environment.insert("GREETING".into(), "one".into());
        c.capabilities.get_or_insert_default().drop.push("NET_RAW".into());
        c.memory = Some(64 << 20);
    });
    let lan = Kind::Network(Network { name: bench.name("lan") });
    vec![("m.lan", lan), ("m.conf", bench.file("conf", content)), ("m.app", app)]
}

/// A host whose network and file are applied.
async fn host() -> (Bench, String) {
    let (mut bench, image) = (Bench::new().unwrap(), images::id(images::WORKLOAD).unwrap());
    let resources = everything(&bench, &image, "one");
    bench.apply(&resources[..2]).await.unwrap();
    (bench, image)
}

#[tokio::test]
async fn adopting_an_equal_container_does_not_restart_it_and_a_change_makes_it_ours() {
    let (mut bench, image) = host().await;
    let _stranger = Stranger::run(&bench, &image, &[]);
    let before = bench.seen("app").await.unwrap();
    let resources = everything(&bench, &image, "one");
    let report = bench.apply(&resources).await.unwrap();
    assert_eq!(outcomes(&report), [Outcome::Unchanged, Outcome::Unchanged, Outcome::Changed], "{report:?}");
    let why = [ReasonCode::New, ReasonCode::Adopted].map(|code| reason(code, ""));
    assert_eq!(report.results[2].reasons, why);
    let after = bench.seen("app").await.unwrap();
    assert_eq!((&after.id, &after.started_at), (&before.id, &before.started_at));
    assert!(bench.seen("app.next").await.is_err(), "what it was compared with is gone");
    assert_eq!(outcomes(&bench.apply(&resources).await.unwrap()), [Outcome::Unchanged; 3]);
    assert_eq!(bench.look(Depth::Cheap).await.unwrap(), None);
    // It is looked after like any other.
    bench.docker.stop(&before.id, GRACE).await.unwrap();
    let look = bench.look(Depth::Cheap).await.unwrap().unwrap();
    assert_eq!(look.results[2].reasons, [reason(ReasonCode::Drift, "stopped")]);
    assert_eq!(bench.seen("app").await.unwrap().condition, Condition::Running);

    let changed = everything(&bench, &image, "two");
    assert_eq!(outcomes(&bench.apply(&changed).await.unwrap())[2], Outcome::Changed);
    let ours = bench.seen("app").await.unwrap();
    assert!(ours.id != before.id && ours.labels["replicator.host"] == bench.uid().as_str());
    let gone = bench.apply(&[]).await.unwrap();
    assert_eq!(gone.results[0].outcome(), Outcome::Removed, "{gone:?}");
}

#[tokio::test]
async fn adopted_container_that_is_no_longer_declared_is_left_as_it_is() {
    let (mut bench, image) = host().await;
    let _stranger = Stranger::run(&bench, &image, &[]);
    let resources = everything(&bench, &image, "one");
    bench.apply(&resources).await.unwrap();
    let before = bench.seen("app").await.unwrap();
    let report = bench.apply(&resources[..2]).await.unwrap();
    assert_eq!(outcomes(&report)[2], Outcome::Kept, "{report:?}");
    assert_eq!(report.results[2].note, "it was here first");
    assert_eq!(bench.seen("app").await.unwrap(), before);
}

#[tokio::test]
async fn container_of_somebody_else_that_differs_keeps_its_name_and_the_report_says_in_what() {
    let (mut bench, image) = host().await;
    let resources = everything(&bench, &image, "one");
    let other = format!("{}:/more", bench.name("other"));
    let label = format!("replicator.host={}", "0".repeat(32));
    let cases: [(&[&str], &str, &str); 4] = [
        (&["-e", "GREETING=two"], "differs", "environment"),
        (&["--restart", "no"], "differs", "RestartPolicy"),
        (&["-v", &other], "differs", "mounts"),
        (&["--label", &label], "problem", "it is of the agent of another host"),
    ];
    for (more, field, said) in cases {
        let stranger = Stranger::run(&bench, &image, more);
        let before = bench.seen("app").await.unwrap();
        let report = bench.apply(&resources).await.unwrap();
        assert_eq!(code(&report, 2), "name-taken", "{more:?}: {report:?}");
        assert_eq!(report.results[2].failure.as_ref().unwrap().fields[field], said, "{more:?}");
        let after = bench.seen("app").await.unwrap();
        assert_eq!((after.id, after.started_at), (before.id, before.started_at), "{more:?}");
        assert!(bench.seen("app.next").await.is_err(), "{more:?}");
        drop(stranger);
    }
    docker(&["volume", "rm", &bench.name("other")]).unwrap();
}

#[tokio::test]
async fn container_of_an_agent_that_computed_its_label_otherwise_is_not_made_again() {
    let (mut bench, image) = host().await;
    let label = bench.label();
    let ours = ["--label", &label, "--label", "replicator.fleet=lab", "--label", "replicator.identity=v0:00"];
    let _stranger = Stranger::run(&bench, &image, &ours);
    let before = bench.seen("app").await.unwrap();
    let resources = everything(&bench, &image, "one");
    let report = bench.apply(&resources).await.unwrap();
    assert_eq!(report.results[2].reasons.last(), Some(&reason(ReasonCode::Adopted, "")), "{report:?}");
    let after = bench.seen("app").await.unwrap();
    assert_eq!((after.id, after.started_at), (before.id, before.started_at));
    assert_eq!(bench.look(Depth::Full).await.unwrap(), None);
    let report = bench.apply(&resources[..2]).await.unwrap();
    assert_eq!(outcomes(&report)[2], Outcome::Removed, "it is the agent's own: {report:?}");
}

#[tokio::test]
async fn adoption_or_first_change_that_was_cut_off_is_gone_on_with() {
    let (mut bench, image) = host().await;
    let _stranger = Stranger::run(&bench, &image, &[]);
    // As a kill after the comparison was made leaves it.
    let label = bench.label();
    docker(&["create", "--name", &format!("{}.next", bench.name("app")), "--label", &label, &image]).unwrap();
    let resources = everything(&bench, &image, "one");
    let before = bench.seen("app").await.unwrap();
    assert_eq!(outcomes(&bench.apply(&resources).await.unwrap())[2], Outcome::Changed);
    assert_eq!(bench.seen("app").await.unwrap().started_at, before.started_at);
    assert!(bench.seen("app.next").await.is_err());
    // As a kill between the two renames of its first replacement leaves it.
    bench.docker.stop(&before.id, GRACE).await.unwrap();
    bench.docker.rename(&before.id, &format!("{}.prev", bench.name("app"))).await.unwrap();
    bench.start().unwrap();
    let report = bench.again(Trigger::Start).await.unwrap();
    assert_eq!(outcomes(&report)[2], Outcome::Changed, "{report:?}");
    assert_eq!(bench.seen("app").await.unwrap().condition, Condition::Running);
    assert!(bench.seen("app.prev").await.is_err());
    assert_eq!(bench.look(Depth::Full).await.unwrap(), None);
}
