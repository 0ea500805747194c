//! What a host refuses to be asked for: whichever way a declaration gets at it, and as soon as its owner says so.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::{Duration, Instant};

use replicator_host_agent::config::Layout;
use replicator_host_agent::daemon::Depth;
use replicator_host_agent::host::docker::{Condition, SOCKET};
use replicator_lab::bench::{Bench, code, outcomes};
use replicator_lab::fleet::Fleet;
use replicator_lab::{images, wait};
use replicator_protocol::wire::declaration::{Mount, mount::Source, resource::Kind};
use replicator_protocol::wire::event::{Outcome, Trigger};

/// Longest until what a host said is collected.
const SOON: Duration = Duration::from_secs(10);

fn container(bench: &Bench, image: &str, source: &str) -> Kind {
    bench.container("app", image, |c| {
        let source = Some(Source::Bind(source.to_owned()));
        c.mounts = vec![Mount { source, target: "/in".into(), read_only: true }];
        c.stop_signal = "SIGKILL".into();
    })
}

#[tokio::test]
async fn nothing_forbidden_is_reached_by_another_name() {
    let image = images::id(images::WORKLOAD).unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let socket = elsewhere.path().join("runtime.sock").display().to_string();
    symlink(SOCKET, &socket).unwrap();
    // The runtime listens where only its operator says.
    let mut bench = Bench::before(&socket).unwrap();
    let machine = bench.path("");
    let link = |to: &str, name: &str| {
        symlink(to, machine.join(name)).unwrap();
        machine.join(name).display().to_string()
    };
    let sources = [
        socket.clone(),
        link(SOCKET, "socket"),
        link("/etc", "etc"),
        format!("{}/ssl", link("/etc", "again")),
        link(&bench.folder().join("var/lib/replicator-host-agent").display().to_string(), "own"),
        "/var/run/docker.sock".into(),
    ];
    for source in sources {
        let report = bench.apply(&[("m.app", container(&bench, &image, &source))]).await.unwrap();
        assert_eq!(code(&report, 0), "policy", "{source}: {report:?}");
        let failure = report.results[0].failure.as_ref().unwrap();
        assert_eq!(failure.fields["refused"], "forbidden-bind", "{source}: {failure:?}");
        assert!(bench.seen("app").await.is_err(), "{source}");
    }
    let cron = format!("{}/lab-policy", link("/etc/cron.d", "cron"));
    let mut file = bench.file("", "* * * * * root true");
    if let Kind::File(file) = &mut file {
        file.path = cron;
    }
    let report = bench.apply(&[("m.file", file)]).await.unwrap();
    assert_eq!(code(&report, 0), "policy", "{report:?}");
    assert!(!fs::exists("/etc/cron.d/lab-policy").unwrap());
    fs::create_dir(bench.path("plain")).unwrap();
    let plain = link(&bench.path("plain").display().to_string(), "fine");
    let report = bench.apply(&[("m.app", container(&bench, &image, &plain))]).await.unwrap();
    assert_eq!(outcomes(&report), [Outcome::Changed], "the control: {report:?}");
}

#[tokio::test]
async fn what_is_allowed_no_longer_is_left_as_it_stands_until_it_is_again() {
    let (mut bench, image) = (Bench::new().unwrap(), images::id(images::WORKLOAD).unwrap());
    let policy = Layout::new(bench.folder()).policy();
    fs::create_dir_all(policy.parent().unwrap()).unwrap();
    fs::write(&policy, "allow_binds = ['/etc/ssl']").unwrap();
    let declared = [("m.app", container(&bench, &image, "/etc/ssl"))];
    assert_eq!(outcomes(&bench.apply(&declared).await.unwrap()), [Outcome::Changed]);
    let first = bench.seen("app").await.unwrap();

    fs::remove_file(&policy).unwrap();
    for depth in [Depth::Cheap, Depth::Full] {
        let report = bench.look(depth).await.unwrap().unwrap();
        assert_eq!((outcomes(&report), code(&report, 0)), (vec![Outcome::Failed], "policy"), "{report:?}");
        let line = &report.results[0].failure.as_ref().unwrap().fields["line"];
        assert_eq!(line, "allow_binds = [\"/etc/ssl\"]");
    }
    let second = bench.seen("app").await.unwrap();
    assert_eq!((&second.id, second.condition), (&first.id, Condition::Running), "left as it stands");
    bench.docker.stop(&first.id, Duration::from_secs(1)).await.unwrap();
    assert_eq!(code(&bench.again(Trigger::Start).await.unwrap(), 0), "policy");
    assert_ne!(bench.seen("app").await.unwrap().condition, Condition::Running, "nothing is started either");

    fs::write(&policy, "allow_binds = ['/etc/ssl']").unwrap();
    let mended = bench.look(Depth::Cheap).await.unwrap().unwrap();
    assert_eq!(outcomes(&mended), [Outcome::Changed], "{mended:?}");
    let third = bench.seen("app").await.unwrap();
    assert_eq!((third.id, third.condition), (first.id, Condition::Running));
}

#[tokio::test]
async fn policy_that_cannot_be_read_refuses_at_once_and_says_why() {
    let fleet = Fleet::start().await.unwrap();
    fleet.host("up").await.unwrap().json().unwrap();
    let before = fleet.containers().unwrap();
    let policy = Layout::new(&fleet.agent_root()).policy();
    fs::write(&policy, "# what this host allows\nallow_bind = ['/srv']\n").unwrap();
    fleet.edit("GREETING: hello", "GREETING: moin").unwrap();
    let asked = Instant::now();
    let said = fleet.host_within("converge", 60).await.unwrap();
    assert_eq!(said.code, 1, "{said:?}");
    for expected in
        ["refuses declaration 2 (policy)", "policy.toml", "line 2", "unknown field `allow_bind`", "hint: correct"]
    {
        assert!(said.stderr.contains(expected), "`{expected}`: {}", said.stderr);
    }
    assert!(asked.elapsed() < Duration::from_secs(30), "at once: {:?}", asked.elapsed());
    let event = wait::until("the refusal is an event", SOON, async || {
        let events = fleet.replicator(&["events", "--kind", "declaration-refused"]).await?;
        Ok(events.done()?.stdout.contains("policy").then_some(()))
    });
    event.await.unwrap();
    assert_eq!(fleet.containers().unwrap(), before);
    fs::remove_file(&policy).unwrap();
    fleet.host("converge").await.unwrap().json().unwrap();
    assert!(fleet.fetch(fleet.name(), "/").await.unwrap().body.starts_with("moin "));
    fleet.host("down").await.unwrap().done().unwrap();
}
