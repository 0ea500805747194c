//! `container`: works; fails half-way and recovers; twice is once.

use replicator_host_agent::daemon::Depth;
use replicator_host_agent::host::docker::Condition;
use replicator_lab::bench::{Bench, code, outcomes};
use replicator_lab::dockerd::docker;
use replicator_lab::images;
use replicator_lab::life::Life;
use replicator_protocol::change::reason;
use replicator_protocol::wire::declaration::{
    Container, Health, HealthCommand, Mount, Network, NetworkAttachment, health::Test, mount::Source, resource::Kind,
};
use replicator_protocol::wire::event::{Action, Outcome, ReasonCode, Trigger};

/// Checks each 200 ms, so that a test need not wait long for a verdict.
fn checked(container: &mut Container) {
    let arguments = vec!["/lab-workload".into(), "health".into()];
    container.health = Some(Health {
        test: Some(Test::Command(HealthCommand { arguments })),
        interval: 200,
        timeout: 2000,
        retries: 3,
        start_period: 0,
    });
}

fn variable(container: &mut Container, name: &str, value: &str) {
    container.environment.insert(name.into(), value.into());
}

/// A file and a container that takes it in.
fn with_file(
    bench: &Bench,
    image: &str,
    content: &str,
    edit: impl FnOnce(&mut Container),
) -> [(&'static str, Kind); 2] {
    let source = bench.path("conf").to_string_lossy().into_owned();
    let mount = Mount { source: Some(Source::Bind(source)), target: "/conf".into(), read_only: true };
    let container = bench.container("app", image, |c| {
        checked(c);
        c.mounts = vec![mount];
        edit(c);
    });
    [("m.conf", bench.file("conf", content)), ("m.app", container)]
}

#[tokio::test]
async fn container_runs_and_twice_is_once() {
    let (mut bench, image) = (Bench::new().unwrap(), images::id(images::WORKLOAD).unwrap());
    let resources = [("m.app", bench.container("app", &image, checked))];
    assert_eq!(outcomes(&bench.apply(&resources).await.unwrap()), [Outcome::Changed]);
    let first = bench.seen("app").await.unwrap();
    assert_eq!(first.condition, Condition::Running);
    assert_eq!(outcomes(&bench.apply(&resources).await.unwrap()), [Outcome::Unchanged]);
    let second = bench.seen("app").await.unwrap();
    assert_eq!((first.id, first.started_at), (second.id, second.started_at));
    assert_eq!(outcomes(&bench.apply(&[]).await.unwrap()), [Outcome::Removed]);
    assert!(bench.seen("app").await.is_err());
}

#[tokio::test]
async fn name_that_reads_like_the_id_of_another_is_a_name() {
    let (mut bench, image) = (Bench::new().unwrap(), images::id(images::WORKLOAD).unwrap());
    let app = ("m.app", bench.container("app", &image, checked));
    bench.apply(std::slice::from_ref(&app)).await.unwrap();
    let id = bench.seen("app").await.unwrap().id;
    let twin = bench.container("twin", &image, |c| c.name = id[..8].to_owned());
    let both = bench.apply(&[app.clone(), ("m.twin", twin)]).await.unwrap();
    assert_eq!(outcomes(&both), [Outcome::Unchanged, Outcome::Changed], "{both:?}");
    assert_eq!(outcomes(&bench.apply(&[app]).await.unwrap()), [Outcome::Unchanged, Outcome::Removed]);
    assert_eq!(bench.seen("app").await.unwrap().id, id);
}

#[tokio::test]
async fn container_is_left_running_while_what_it_takes_in_cannot_be_read() {
    let (mut bench, image) = (Bench::new().unwrap(), images::id(images::WORKLOAD).unwrap());
    let (folder, aside) = (bench.path("folder"), bench.path("aside"));
    std::fs::create_dir(&folder).unwrap();
    let [conf, variables] = ["conf", "variables"].map(|name| folder.join(name).to_string_lossy().into_owned());
    std::fs::write(&conf, "theirs").unwrap();
    std::fs::write(&variables, "A=1").unwrap();
    for by_mount in [true, false] {
        let app = bench.container("app", &image, |c| {
            checked(c);
            let source = Some(Source::Bind(conf.clone()));
            c.mounts = if by_mount {
                vec![Mount { source, target: "/conf".into(), read_only: true }]
            } else {
                c.environment_files = vec![variables.clone()];
                Vec::new()
            };
        });
        let resources = [("m.app", app)];
        assert_eq!(outcomes(&bench.apply(&resources).await.unwrap()), [Outcome::Changed]);
        let before = bench.seen("app").await.unwrap();
        // A link that leads to itself: nobody can tell what lies there.
        std::fs::rename(&folder, &aside).unwrap();
        std::os::unix::fs::symlink(&folder, &folder).unwrap();
        let report = bench.apply(&resources).await.unwrap();
        assert_eq!((code(&report, 0), report.results[0].action()), ("input-unreadable", Action::None), "{report:?}");
        let after = bench.seen("app").await.unwrap();
        assert_eq!((after.id, after.started_at, after.condition), (before.id, before.started_at, Condition::Running));
        std::fs::remove_file(&folder).unwrap();
        std::fs::rename(&aside, &folder).unwrap();
        assert_eq!(outcomes(&bench.apply(&resources).await.unwrap()), [Outcome::Unchanged]);
    }
}

#[tokio::test]
async fn changed_file_recreates_what_takes_it_in_and_says_which() {
    let (mut bench, image) = (Bench::new().unwrap(), images::id(images::WORKLOAD).unwrap());
    let one = with_file(&bench, &image, "one", |_| ());
    bench.apply(&one).await.unwrap();
    let before = bench.seen("app").await.unwrap().id;
    let two = with_file(&bench, &image, "two", |_| ());
    let report = bench.apply(&two).await.unwrap();
    assert_eq!(outcomes(&report), [Outcome::Changed, Outcome::Changed]);
    let because = &report.results[1].reasons[0];
    assert_eq!((report.results[1].action(), because.code()), (Action::Recreate, ReasonCode::InputChanged));
    assert_eq!(because.subject, bench.path("conf").to_string_lossy());
    assert_ne!(bench.seen("app").await.unwrap().id, before);
    assert_eq!(bench.look(Depth::Full).await.unwrap(), None, "nothing is left to do");
}

/// Breaks the replacement in one way, together with a changed file: the old one serves on with the old bytes.
async fn old_one_serves_on(edit: impl FnOnce(&mut Container), expected: &str) {
    let (mut bench, image) = (Bench::new().unwrap(), images::id(images::WORKLOAD).unwrap());
    let good = with_file(&bench, &image, "one", |_| ());
    bench.apply(&good).await.unwrap();
    let before = bench.seen("app").await.unwrap();
    let broken = with_file(&bench, &image, "two", edit);
    let report = bench.apply(&broken).await.unwrap();
    assert_eq!(outcomes(&report), [Outcome::Failed, Outcome::Failed], "{report:?}");
    assert_eq!((code(&report, 0), code(&report, 1)), ("replacement-failed", expected), "{report:?}");
    assert!(report.results.iter().all(|result| result.failure.as_ref().unwrap().previous_restored), "{report:?}");
    let after = bench.seen("app").await.unwrap();
    assert_eq!((&after.id, after.condition), (&before.id, Condition::Running));
    assert_eq!(std::fs::read(bench.path("conf")).unwrap(), b"one");
    let inside = std::fs::read(format!("/proc/{}/root/conf", after.pid)).unwrap();
    assert_eq!(inside, b"one", "and the container reads it so");
    for leftover in ["app.next", "app.prev"] {
        assert!(bench.seen(leftover).await.is_err(), "{leftover}");
    }
    // What works again is applied again.
    let mended = with_file(&bench, &image, "three", |_| ());
    assert_eq!(outcomes(&bench.apply(&mended).await.unwrap()), [Outcome::Changed, Outcome::Changed]);
    assert_eq!(bench.look(Depth::Full).await.unwrap(), None);
}

#[tokio::test]
async fn replacement_that_exits_at_once_leaves_the_old_one_serving() {
    old_one_serves_on(|c| variable(c, "LAB_MODE", "exit"), "exited").await;
}

#[tokio::test]
async fn replacement_that_is_never_healthy_leaves_the_old_one_serving() {
    old_one_serves_on(|c| variable(c, "LAB_MODE", "unhealthy"), "unhealthy").await;
}

#[tokio::test]
async fn definition_the_runtime_refuses_leaves_the_old_one_serving() {
    old_one_serves_on(|c| drop(c.sysctls.insert("kernel.none".into(), "1".into())), "runtime-refused").await;
}

#[tokio::test]
async fn image_that_is_not_to_be_had_leaves_the_old_one_serving() {
    old_one_serves_on(|c| c.image = format!("sha256:{}", "0".repeat(64)), "image-missing").await;
}

#[tokio::test]
async fn failed_replacement_is_not_tried_again_for_the_same_declaration() {
    let (mut bench, image) = (Bench::new().unwrap(), images::id(images::WORKLOAD).unwrap());
    let good = with_file(&bench, &image, "one", |_| ());
    bench.apply(&good).await.unwrap();
    let broken = with_file(&bench, &image, "two", |c| variable(c, "LAB_MODE", "exit"));
    bench.apply(&broken).await.unwrap();
    let started = bench.seen("app").await.unwrap().started_at;
    bench.look(Depth::Full).await.unwrap();
    assert_eq!(bench.seen("app").await.unwrap().started_at, started, "the old one was not stopped again");
    assert_eq!(std::fs::read(bench.path("conf")).unwrap(), b"one");
}

#[tokio::test]
async fn what_serves_in_place_of_a_failed_replacement_is_still_looked_after() {
    let (mut bench, image) = (Bench::new().unwrap(), images::id(images::WORKLOAD).unwrap());
    let lan = bench.name("lan");
    let on_lan = |bench: &Bench, content: &str, mode: &str| {
        let all = with_file(bench, &image, content, |c| {
            c.networks = vec![NetworkAttachment { name: bench.name("lan"), ..NetworkAttachment::default() }];
            variable(c, "LAB_MODE", mode);
        });
        [vec![("m.lan", Kind::Network(Network { name: bench.name("lan") }))], all.to_vec()].concat()
    };
    let [one, broken] = [("one", "serve"), ("two", "exit")].map(|(content, mode)| on_lan(&bench, content, mode));
    bench.apply(&one).await.unwrap();
    bench.apply(&broken).await.unwrap();
    let serving = bench.seen("app").await.unwrap();
    let looked_after = async |bench: &Bench, depth, lost: &str| {
        let look = bench.look(depth).await.unwrap().unwrap();
        let result = look.results.iter().find(|result| result.resource == "m.app").unwrap();
        assert_eq!((result.outcome(), result.reasons[0].subject.as_str()), (Outcome::Failed, lost), "{look:?}");
        assert!(result.failure.as_ref().unwrap().previous_restored, "{look:?}");
        let seen = bench.seen("app").await.unwrap();
        assert_eq!((&seen.id, seen.condition), (&serving.id, Condition::Running), "the old one, and it alone");
        assert_eq!(std::fs::read(bench.path("conf")).unwrap(), b"one");
        seen
    };
    for _ in 0..2 {
        bench.docker.stop(&serving.id, std::time::Duration::from_secs(5)).await.unwrap();
        looked_after(&bench, Depth::Cheap, "stopped").await;
    }
    // The network it is on is lost, and made again.
    docker(&["network", "disconnect", "-f", &lan, &serving.id]).unwrap();
    docker(&["network", "rm", &lan]).unwrap();
    let seen = looked_after(&bench, Depth::Full, "altered").await;
    let made = bench.docker.networks(&lan).await.unwrap();
    assert_eq!(seen.networks.get(&lan), made.first().map(|made| &made.id), "{made:?}");
    assert_ne!(serving.networks[&lan], made[0].id);
    // And it is joined again to one that somebody took it off.
    docker(&["network", "disconnect", &lan, &serving.id]).unwrap();
    assert_eq!(looked_after(&bench, Depth::Full, "altered").await.networks, seen.networks);
}

#[tokio::test]
async fn output_of_a_failed_container_is_told_without_its_secrets() {
    let (mut bench, image) = (Bench::new().unwrap(), images::id(images::WORKLOAD).unwrap());
    let source = bench.path("token").to_string_lossy().into_owned();
    let container = bench.container("app", &image, |c| {
        c.mounts =
            vec![Mount { source: Some(Source::Bind(source)), target: "/run/secrets/token".into(), read_only: true }];
        variable(c, "TOKEN_FILE", "/run/secrets/token");
        variable(c, "LAB_MODE", "leak");
    });
    let resources = [("m.token", bench.secret("m.token", "hunter22", 1).unwrap()), ("m.app", container)];
    let report = bench.apply(&resources).await.unwrap();
    let failure = report.results[1].failure.clone().unwrap();
    assert!(failure.output.contains("TOKEN_FILE holds [masked]"), "{failure:?}");
    assert_eq!(failure.fields["exit_code"], "1");
}

#[tokio::test]
async fn stopped_removed_and_renamed_containers_are_put_right() {
    let (mut bench, image) = (Bench::new().unwrap(), images::id(images::WORKLOAD).unwrap());
    let resources = [("m.app", bench.container("app", &image, checked))];
    bench.apply(&resources).await.unwrap();
    let first = bench.seen("app").await.unwrap();
    bench.docker.stop(&first.id, std::time::Duration::from_secs(5)).await.unwrap();
    let look = bench.look(Depth::Cheap).await.unwrap().unwrap();
    assert_eq!((look.results[0].action(), look.results[0].reasons[0].subject.as_str()), (Action::Change, "stopped"));
    assert_eq!(bench.seen("app").await.unwrap().id, first.id, "started again, not made again");
    bench.docker.remove(&first.id).await.unwrap();
    let look = bench.look(Depth::Cheap).await.unwrap().unwrap();
    assert_eq!((look.results[0].action(), look.results[0].reasons[0].subject.as_str()), (Action::Create, "gone"));
    let second = bench.seen("app").await.unwrap();
    bench.docker.rename(&second.id, &bench.name("other")).await.unwrap();
    let look = bench.look(Depth::Cheap).await.unwrap().unwrap();
    assert_eq!(outcomes(&look), [Outcome::Changed], "{look:?}");
    assert_eq!(bench.seen("app").await.unwrap().condition, Condition::Running);
    assert!(bench.seen("other").await.is_err());
}

#[tokio::test]
async fn container_of_somebody_else_is_never_touched() {
    let (mut bench, image) = (Bench::new().unwrap(), images::id(images::WORKLOAD).unwrap());
    let name = bench.name("app");
    let made = std::process::Command::new("docker").args(["create", "--name", &name, &image]).status().unwrap();
    assert!(made.success());
    let before = bench.seen("app").await.unwrap().id;
    let report = bench.apply(&[("m.app", bench.container("app", &image, checked))]).await.unwrap();
    assert_eq!(code(&report, 0), "name-taken");
    assert_eq!(bench.seen("app").await.unwrap().id, before);
    bench.docker.remove(&before).await.unwrap();
}

#[tokio::test]
async fn what_follows_a_container_is_recreated_with_it_and_restarted_after_it() {
    let (mut bench, image) = (Bench::new().unwrap(), images::id(images::WORKLOAD).unwrap());
    let all = |bench: &Bench, greeting: &str| {
        let lan = NetworkAttachment { name: bench.name("lan"), ..NetworkAttachment::default() };
        let net = bench.container("net", &image, |c| {
            variable(c, "LAB_ROLE", "net");
            c.networks = vec![lan];
            variable(c, "GREETING", greeting);
        });
        let app = bench.container("app", &image, |c| {
            checked(c);
            c.network_of = bench.name("net");
        });
        [("m.lan", Kind::Network(Network { name: bench.name("lan") })), ("m.net", net), ("m.app", app)]
    };
    let one = all(&bench, "one");
    bench.apply(&one).await.unwrap();
    let two = all(&bench, "two");
    let report = bench.apply(&two).await.unwrap();
    assert_eq!(outcomes(&report), [Outcome::Unchanged, Outcome::Changed, Outcome::Changed]);
    assert_eq!(report.results[2].reasons[0].code(), ReasonCode::FollowedRecreated);
    // The followed one starts again by itself, and its network with it: the follower holds one that is gone.
    let net = bench.seen("net").await.unwrap().id;
    for depth in [Depth::Cheap, Depth::Full] {
        docker(&["restart", "-t", "0", &net]).unwrap();
        assert_eq!(restarted(&bench, depth).await, [vec![], vec!["network".to_owned()]]);
    }
    // It is down, or paused: both are started again, in order, by one look.
    for act in ["kill", "pause"] {
        docker(&[act, &net]).unwrap();
        let reasons = [vec!["stopped".to_owned()], vec!["network".to_owned()]];
        assert_eq!(restarted(&bench, Depth::Cheap).await, reasons, "{act}");
    }
    // It is gone: both are made again.
    docker(&["rm", "-f", &net]).unwrap();
    let before = bench.seen("app").await.unwrap();
    let look = bench.look(Depth::Cheap).await.unwrap().unwrap();
    assert_eq!(outcomes(&look), [Outcome::Unchanged, Outcome::Changed, Outcome::Changed], "{look:?}");
    assert_eq!(look.results[2].reasons, [reason(ReasonCode::FollowedRecreated, bench.name("net"))]);
    let (net, after) = (bench.seen("net").await.unwrap(), bench.seen("app").await.unwrap());
    assert!(after.id != before.id && after.followed == net.id);
    assert_eq!(bench.look(Depth::Full).await.unwrap(), None);
    // So is one of which no record speaks yet, where what it was made on is gone by then.
    let (net, lan) = (bench.name("net"), bench.name("lan"));
    let [killed, lost, gone] = [vec!["kill", &net], vec!["network", "rm", &lan], vec!["rm", "-f", &net]];
    let cuts = [
        ("three", "container.remove.after#1:kill", vec![killed, lost]),
        ("four", "container.remove.after#2:kill", vec![gone]),
    ];
    for (greeting, fault, acts) in cuts {
        let declared = all(&bench, greeting);
        let life = Life::new(bench.share(), &declared.clone().map(|(id, kind)| (id.to_owned(), kind)).to_vec());
        assert!(life.meet(fault).await.unwrap(), "{fault} struck nothing");
        acts.iter().for_each(|act| drop(docker(act).unwrap()));
        bench.start().unwrap();
        bench.skip_number();
        let report = bench.apply(&declared).await.unwrap();
        assert!(report.results.iter().all(|result| result.failure.is_none()), "{fault}: {report:?}");
        assert_eq!(bench.look(Depth::Full).await.unwrap(), None, "{fault}");
        let (net, app) = (bench.seen("net").await.unwrap(), bench.seen("app").await.unwrap());
        assert_eq!((&app.followed, app.condition), (&net.id, Condition::Running), "{fault}");
    }
}

/// Looks at a container and its follower, of which the follower is started again and stays; returns the reasons of
/// both. Nothing is left to do.
async fn restarted(bench: &Bench, depth: Depth) -> [Vec<String>; 2] {
    let before = bench.seen("app").await.unwrap();
    let look = bench.look(depth).await.unwrap().unwrap();
    let after = bench.seen("app").await.unwrap();
    assert!(after.id == before.id && before.started_before(&after), "{look:?}");
    assert_eq!(bench.look(Depth::Full).await.unwrap(), None, "{look:?}");
    [1, 2].map(|at| look.results[at].reasons.iter().map(|reason| reason.subject.clone()).collect())
}

#[tokio::test]
async fn swap_cut_off_at_any_name_goes_on_after_a_restart() {
    let (mut bench, image) = (Bench::new().unwrap(), images::id(images::WORKLOAD).unwrap());
    let app = |bench: &Bench, greeting: &str| {
        [(
            "m.app",
            bench.container("app", &image, |c| {
                checked(c);
                variable(c, "GREETING", greeting);
            }),
        )]
    };
    let one = app(&bench, "one");
    bench.apply(&one).await.unwrap();
    // As a kill between the two renames leaves it: the old one aside and stopped, nobody in its place.
    let old = bench.seen("app").await.unwrap().id;
    bench.docker.stop(&old, std::time::Duration::from_secs(5)).await.unwrap();
    bench.docker.rename(&old, &format!("{}.prev", bench.name("app"))).await.unwrap();
    bench.start().unwrap();
    let report = bench.again(Trigger::Start).await.unwrap();
    assert_eq!(outcomes(&report), [Outcome::Changed], "{report:?}");
    assert_eq!(bench.seen("app").await.unwrap().condition, Condition::Running);
    assert!(bench.seen("app.prev").await.is_err());
    assert_eq!(bench.look(Depth::Full).await.unwrap(), None);
}

#[tokio::test]
async fn what_steps_left_of_nothing_declared_goes_at_a_full_look_and_nothing_else_does() {
    let (mut bench, image) = (Bench::new().unwrap(), images::id(images::WORKLOAD).unwrap());
    bench.apply(&[("m.app", bench.container("app", &image, |_| ()))]).await.unwrap();
    let ours =
        |resource: &str| [bench.label(), format!("replicator.resource={resource}"), "replicator.identity=v1:0".into()];
    let make = |act: &[&str], labels: &[String], rest: &[&str]| {
        let labels = labels.iter().flat_map(|label| ["--label", label]);
        docker(&act.iter().copied().chain(labels).chain(rest.iter().copied()).collect::<Vec<_>>()).unwrap();
    };
    // As steps leave them that were cut off, under names of an earlier declaration.
    let [lan, old, next, theirs, copy] = ["lan", "old", "app2.next", "theirs", "copy"].map(|name| bench.name(name));
    make(&["network", "create"], &ours("m.lan"), &[&lan]);
    make(&["run", "-d"], &ours("m.old"), &["--name", &old, "--network", &lan, &image]);
    make(&["create"], &ours("m.app"), &["--name", &next, &image]);
    // Of somebody who made an image of ours, and has its labels without asking for them.
    docker(&["commit", "--pause=false", &bench.name("app"), &copy]).unwrap();
    make(&["create"], &[], &["--name", &theirs, &copy]);
    let cheap = bench.look(Depth::Cheap).await;
    let look = bench.look(Depth::Full).await;
    let again = bench.look(Depth::Full).await;
    let stays = bench.seen("theirs").await.unwrap().id;
    bench.docker.remove(&stays).await.unwrap();
    docker(&["rmi", &copy]).unwrap();
    assert_eq!(cheap.unwrap(), None);
    let look = look.unwrap().unwrap();
    let told: Vec<_> = look.results.iter().map(|one| (one.outcome(), one.note.clone())).collect();
    let left = |name: &str| (Outcome::Removed, format!("`{name}`, which an earlier step had left"));
    assert_eq!(told[0], (Outcome::Unchanged, String::new()), "{look:#?}");
    assert!(told.len() == 4 && [&lan, &old, &next].iter().all(|name| told.contains(&left(name))), "{look:#?}");
    assert!(look.results[1].resource.starts_with("m.") && look.results[1].resource != "m.app", "{look:#?}");
    assert!(bench.seen("old").await.is_err() && bench.seen("app2.next").await.is_err());
    assert!(bench.docker.networks(&lan).await.unwrap().is_empty());
    assert_eq!(again.unwrap(), None, "and that is all");
    assert_eq!(bench.seen("app").await.unwrap().condition, Condition::Running);
}

#[tokio::test]
async fn swap_that_was_cut_off_runs_nothing_on_files_of_the_other_and_makes_nothing_twice() {
    let (mut bench, image) = (Bench::new().unwrap(), images::id(images::WORKLOAD).unwrap());
    let one = with_file(&bench, &image, "one", |_| ());
    bench.apply(&one).await.unwrap();
    let old = bench.seen("app").await.unwrap();
    let two = with_file(&bench, &image, "two", |c| c.restart_on = vec!["m.conf".into()]);
    let lives = |bench: &mut Bench, fault: &'static str| {
        let life = Life::new(bench.share(), &two.clone().map(|(id, kind)| (id.to_owned(), kind)).to_vec());
        async move { assert!(life.meet(fault).await.unwrap(), "{fault} struck nothing") }
    };
    // The old one is aside, and what is declared by then cannot even be made.
    lives(&mut bench, "container.rename.after:kill").await;
    bench.start().unwrap();
    let missing = bench.path("missing").to_string_lossy().into_owned();
    let refused = with_file(&bench, &image, "two", |c| {
        c.mounts.push(Mount { source: Some(Source::Bind(missing)), target: "/missing".into(), read_only: true });
    });
    bench.skip_number();
    let report = bench.apply(&refused).await.unwrap();
    assert_eq!((code(&report, 0), code(&report, 1)), ("replacement-failed", "bind-missing"), "{report:?}");
    let back = bench.seen("app").await.unwrap();
    assert_eq!((&back.id, back.condition), (&old.id, Condition::Running));
    let inside = std::fs::read_to_string(format!("/proc/{}/root/conf", back.pid)).unwrap();
    assert_eq!(inside, "one", "it runs with the file it had");
    // Nor is it tried, for a file that it takes in fails, or cannot be read.
    let folder = bench.path("folder");
    std::os::unix::fs::symlink(&folder, &folder).unwrap();
    for (file, outcome, said) in
        [("none/more", Outcome::Skipped, "input-failed"), ("folder/more", Outcome::Failed, "input-unreadable")]
    {
        lives(&mut bench, "container.rename.after:kill").await;
        bench.start().unwrap();
        let more = bench.path(file).to_string_lossy().into_owned();
        let [conf, app] = with_file(&bench, &image, "two", |c| {
            c.mounts.push(Mount { source: Some(Source::Bind(more)), target: "/more".into(), read_only: true });
        });
        let more = (outcome == Outcome::Skipped).then(|| ("m.more", bench.file(file, "more")));
        let all: Vec<_> = std::iter::once(conf).chain(more).chain([app]).collect();
        bench.skip_number();
        let report = bench.apply(&all).await.unwrap();
        let at = all.len() - 1;
        assert_eq!((code(&report, 0), code(&report, at)), ("replacement-failed", said), "{report:?}");
        let told = &report.results[at];
        assert!(told.outcome() == outcome && told.failure.as_ref().unwrap().previous_restored, "{report:?}");
        let back = bench.seen("app").await.unwrap();
        assert_eq!((&back.id, back.condition), (&old.id, Condition::Running));
        let inside = std::fs::read_to_string(format!("/proc/{}/root/conf", back.pid)).unwrap();
        assert_eq!(inside, "one");
        assert!(bench.seen("app.next").await.is_err() && bench.seen("app.prev").await.is_err());
    }
    // The old one is gone, and nothing says that yet.
    lives(&mut bench, "container.remove.after:kill").await;
    let new = bench.seen("app").await.unwrap();
    assert_ne!(new.id, old.id);
    bench.start().unwrap();
    bench.skip_number();
    assert_eq!(outcomes(&bench.apply(&two).await.unwrap()), [Outcome::Unchanged, Outcome::Changed]);
    let after = bench.seen("app").await.unwrap();
    assert_eq!((after.id, after.started_at), (new.id, new.started_at), "known by its labels");
    assert_eq!(bench.look(Depth::Full).await.unwrap(), None);
}
