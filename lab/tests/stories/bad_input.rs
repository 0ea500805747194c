//! Whatever is wrong is told: where, why, and what to do; and nothing is lost over it.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use replicator::home::FleetFolder;
use replicator_host_agent::appliers::FailureCode;
use replicator_lab::dockerd::docker;
use replicator_lab::fleet::{Fleet, PROXY, Said, binary};
use replicator_lab::nats::Broker;
use replicator_lab::wait;
use replicator_protocol::wire::event::Failure;

/// Somebody who is not the superuser.
const NOBODY: u32 = 65534;
/// Room for the agent's files, and no more.
const SMALL: &str = "size=8m,mode=0700";

/// A small file system, gone when dropped.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn at(path: &Path) -> Self {
        std::fs::create_dir_all(path).unwrap();
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", SMALL, "tmpfs"]).arg(path).output().unwrap();
        assert!(mounted.status.success(), "this test mounts a file system, as root: {mounted:?}");
        Self(path.to_owned())
    }

    /// Leaves no room at all.
    fn fill(&self) {
        let mut dd = Command::new("dd");
        dd.args(["if=/dev/zero", "bs=4k"]).arg(format!("of={}", self.0.join("filler").display()));
        // It ends with an error, which is what it is for.
        assert!(!dd.stderr(Stdio::null()).status().unwrap().success(), "the disk is not full");
    }

    fn make_room(&self) {
        std::fs::remove_file(self.0.join("filler")).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily: an agent may still have its log open.
        let _unmounted = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// What was refused says all of `texts`, ends with what to do, and with `code`.
fn told(said: &Said, code: i32, texts: &[&str]) {
    let text = format!("{}{}", said.stdout, said.stderr);
    assert_eq!(said.code, code, "{text}");
    assert!(!text.contains("panicked"), "{text}");
    let hints: Vec<_> = said.stderr.lines().filter_map(|line| line.trim_start().strip_prefix("hint: ")).collect();
    assert!(hints.iter().any(|hint| !hint.is_empty()), "nothing says what to do:\n{text}");
    assert!(said.stderr.contains("error: ") || said.stderr.contains("refused ("), "{text}");
    for expected in texts {
        assert!(text.contains(expected), "`{expected}` is not said:\n{text}");
    }
}

fn distribution() -> String {
    format!("{}/images/distribution.json", env!("CARGO_MANIFEST_DIR"))
}

async fn converge(fleet: &Fleet, more: &[&str]) -> Said {
    let distribution = distribution();
    let mut arguments = vec!["host", "converge", &fleet.host, "--distribution", &distribution];
    arguments.extend(more);
    fleet.replicator(&arguments).await.unwrap()
}

async fn up(fleet: &Fleet) -> Said {
    up_with(fleet, &[]).await
}

async fn up_with(fleet: &Fleet, more: &[&str]) -> Said {
    let (distribution, agent, root) =
        (distribution(), binary("replicator-host-agent").unwrap(), fleet.agent_root().display().to_string());
    let agent = agent.display().to_string();
    let arguments = ["host", "up", &fleet.host, "--distribution", &distribution, "--agent", &agent];
    // The first time it is set up; from then on where it is set up is known.
    let root = ["--agent-root", &root];
    let root = if more.is_empty() { &root[..] } else { &[] };
    fleet.replicator(&[&arguments[..], root, more].concat()).await.unwrap()
}

async fn down_with(fleet: &Fleet, more: &[&str]) -> Said {
    fleet.replicator(&[&["host", "down", &fleet.host][..], more].concat()).await.unwrap()
}

/// How many entries the host's log has.
fn log_entries(fleet: &Fleet) -> usize {
    let log = fleet.broker.home.state().join(&fleet.host).join(&fleet.host).join("log");
    std::fs::read_dir(log).unwrap().count()
}

/// Everything is as it was before somebody did something wrong.
async fn nothing_lost(what: &str, fleet: &Fleet, before: &BTreeMap<String, String>) {
    assert_eq!(fleet.containers().unwrap(), *before, "{what}");
    let page = fleet.fetch(fleet.name(), "/").await.unwrap();
    assert_eq!(page.status, 200, "{what}: {page:?}");
}

/// With the fault gone, the same command does it, and changes nothing that needs no change.
async fn goes_on(what: &str, fleet: &Fleet) {
    let report = fleet.host("converge").await.unwrap().json().unwrap_or_else(|error| panic!("{what}: {error:#}"));
    for result in report["results"].as_array().unwrap() {
        assert_eq!(result["outcome"], "unchanged", "{what}: {result:#}");
    }
}

#[test]
fn every_way_a_resource_can_fail_has_something_to_do() {
    for code in FailureCode::ALL {
        let failure = Failure { code: code.as_str().into(), ..Failure::default() };
        assert!(replicator::planner::hint(&failure).is_some(), "{}", failure.code);
    }
}

#[test]
fn agent_is_given_the_time_it_takes_to_end() {
    assert!(replicator::bootstrap::supervisor::ENDS_WITHIN > replicator_host_agent::daemon::ENDS_WITHIN);
}

#[tokio::test]
async fn wrong_files_and_names_are_told_with_their_place() {
    let fleet = Fleet::start().await.unwrap();
    let (spec, file) = (fleet.file(&format!("hosts/{}.yml", fleet.host)), fleet.file("clanker.yml"));
    let (good_spec, good_file) = (fleet.spec(), fleet.fleet_file(""));

    // A spec: a typo, and an offer of another version.
    std::fs::write(&spec, good_spec.replace("compute:\n", "compute:\n  provder: existing-host\n")).unwrap();
    for verb in ["plan", "validate"] {
        let said = fleet.replicator(&[verb]).await.unwrap();
        told(&said, 1, &[&format!("{}.yml:4:3", fleet.host), "provder", "provider"]);
    }
    std::fs::write(&spec, good_spec.replace("provider: none", "provider: cloudflare-tunnel")).unwrap();
    told(&converge(&fleet, &[]).await, 1, &[&format!("{}.yml:8:", fleet.host), "cloudflare-tunnel", "none"]);
    std::fs::write(&spec, b"id: \xff\xfe\n").unwrap();
    told(&converge(&fleet, &[]).await, 2, &[&format!("{}.yml", fleet.host)]);
    std::fs::remove_file(&spec).unwrap();
    told(&converge(&fleet, &[]).await, 2, &[&format!("{}.yml", fleet.host), "No such file"]);
    std::fs::write(&spec, &good_spec).unwrap();

    // A fleet file: an image that can move, a secret in clear, a port that is none.
    for (from, to, says) in [
        ("local:replicator-demo/web:1", "replicator-demo/web:1", "can move"),
        ("GREETING: hello", "GREETING: ghp_0123456789abcdefghijABCDEFGHIJ012345", "secret"),
        ("port: 3000", "port: 70000", "65535"),
    ] {
        std::fs::write(&file, good_file.replace(from, to)).unwrap();
        let said = converge(&fleet, &[]).await;
        told(&said, 1, &["clanker.yml:", says]);
        assert!(!said.stderr.contains("ghp_0123"), "the secret is repeated: {}", said.stderr);
    }

    // The name of a secret: none at all, one with its value, one that is needed and was never set.
    std::fs::write(&file, &good_file).unwrap();
    told(&fleet.replicator(&["secrets", "set", "no name"]).await.unwrap(), 2, &["secret"]);
    let said = fleet.replicator(&["secrets", "set", "token=planted-value"]).await.unwrap();
    told(&said, 2, &["command line", "stdin"]);
    assert!(!said.stderr.contains("planted-value"));
    std::fs::write(&file, good_file.replace("[ webToken ]", "[ webToken, neverSet ]")).unwrap();
    let said = converge(&fleet, &[]).await;
    told(&said, 1, &["`neverSet`", "acme/web", "`replicator secrets set neverSet`"]);
    std::fs::write(&file, good_file.replace("[ webToken ]", "[ web-Token ]")).unwrap();
    told(&converge(&fleet, &[]).await, 1, &["clanker.yml:16:", "where a name is expected", "replicator secrets set"]);

    // The control: what was good is good, and nothing was begun meanwhile.
    std::fs::write(&file, &good_file).unwrap();
    fleet.replicator(&["validate"]).await.unwrap().done().unwrap();
    // The engine's own images are not on this machine.
    told(&fleet.replicator(&["plan"]).await.unwrap(), 1, &["holds no image", "`--distribution FILE`"]);
    told(&converge(&fleet, &[]).await, 1, &["is not up", "host up"]);
    assert!(fleet.containers().unwrap().is_empty());
    assert!(!Path::new(&format!("/var/lib/replicator.{}", fleet.host)).exists());
}

#[tokio::test]
async fn lost_data_key_is_told_and_never_replaced() {
    let fleet = Fleet::start().await.unwrap();
    let (key, aside) = (fleet.broker.home.data_key(), fleet.file("data.key"));
    std::fs::rename(&key, &aside).unwrap();
    let texts = ["data.key", "opens with no other", "hint: restore", "--again"];
    told(&fleet.replicator(&["secrets", "set", "other"]).await.unwrap(), 1, &texts);
    told(&fleet.replicator(&["secrets", "list"]).await.unwrap(), 1, &texts);
    told(&converge(&fleet, &[]).await, 1, &texts);
    assert!(!key.exists());
    std::fs::write(&key, [7; 32]).unwrap();
    std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    told(&fleet.replicator(&["plan", &fleet.host]).await.unwrap(), 1, &["is not the one", "hint: restore"]);
    std::fs::rename(&aside, &key).unwrap();
    fleet.replicator(&["secrets", "list"]).await.unwrap().done().unwrap();
}

#[tokio::test]
async fn agent_that_cannot_start_is_told_set_up_anew_or_let_go() {
    let fleet = Fleet::start().await.unwrap();
    up(&fleet).await.done().unwrap();
    let before = fleet.containers().unwrap();
    let (etc, state) = (fleet.agent_root().join("etc"), fleet.agent_root().join("var/lib/replicator-host-agent"));

    // Settings and a key that are none: it says which, and the operator's word makes both anew.
    fleet.stop_agent().await.unwrap();
    std::fs::write(etc.join("replicator-host-agent/agent.toml"), "broker = 7\n").unwrap();
    std::fs::write(state.join("keys/sealing"), "short").unwrap();
    told(&up(&fleet).await, 1, &["the agent ended at once", "agent.toml", "--again"]);
    up_with(&fleet, &["--again"]).await.done().unwrap();
    nothing_lost("set up anew", &fleet, &before).await;
    goes_on("set up anew", &fleet).await;

    // Elsewhere there is another agent: none is set up beside the one that runs.
    let elsewhere = fleet.file("elsewhere").display().to_string();
    let said = up_with(&fleet, &["--agent-root", &elsewhere]).await;
    told(&said, 1, &["is set up under", &fleet.agent_root().display().to_string(), "--agent-root"]);
    assert!(!Path::new(&elsewhere).exists());

    // A controller without the agent's program beside it cannot start the agent.
    fleet.stop_agent().await.unwrap();
    told(&alone(&fleet, &["host", "down", &fleet.host]), 1, &["there is no agent at", "--agent PATH"]);

    // And for good: nothing is changed over it, however often; only the operator's word lets go, and says what stays.
    std::fs::write(state.join("trust/membership.json"), "{").unwrap();
    let entries = log_entries(&fleet);
    told(&fleet.host("down").await.unwrap(), 1, &["cannot be told", "membership.json", "--again", "--abandon"]);
    assert_eq!(log_entries(&fleet), entries, "something was recorded");
    nothing_lost("down without an agent", &fleet, &before).await;
    let said = down_with(&fleet, &["--abandon"]).await;
    assert_eq!(said.code, 0, "{said:?}");
    for expected in ["membership.json", "Retired", "`pod.ada.web`", "remove it by hand"] {
        assert!(said.stderr.contains(expected), "`{expected}` is not said: {said:?}");
    }
    assert_eq!(fleet.containers().unwrap(), before, "what stays is as it was");
    assert!(!state.exists(), "the agent is gone");
    let kept = std::fs::read_dir(fleet.agent_root().join("var/lib")).unwrap().flatten().next().unwrap();
    assert!(kept.path().join("ledger").exists() && !kept.path().join("keys").exists(), "{:?}", kept.path());
    let again = fleet.host("down").await.unwrap();
    assert!(again.code == 0 && again.stderr.contains("is not up"), "{again:?}");
}

#[tokio::test]
async fn machine_that_cannot_is_told_and_can_later() {
    let fleet = Fleet::start().await.unwrap();

    // Not root.
    told(&as_nobody(&fleet), 1, &["root", "sudo"]);

    // No room for the agent.
    let disk = SmallDisk::at(&fleet.agent_root());
    disk.fill();
    told(&up(&fleet).await, 1, &[&fleet.agent_root().display().to_string(), "No space left on device"]);
    assert!(fleet.containers().unwrap().is_empty());
    disk.make_room();

    // The proxy's port is somebody else's.
    let taken = TcpListener::bind(PROXY).unwrap();
    let said = up(&fleet).await;
    told(&said, 1, &["proxy.server", "8480", "address already in use", "free the port"]);
    drop(taken);
    // The agent tries again by itself: nothing stood there that a further attempt could interrupt.
    let served = wait::until("the proxy serves", Duration::from_secs(90), async || {
        Ok(fleet.fetch(fleet.name(), "/").await.ok().filter(|answer| answer.status == 200))
    });
    served.await.unwrap();
    up(&fleet).await.done().unwrap();
    let before = fleet.containers().unwrap();
    nothing_lost("port taken", &fleet, &before).await;

    // No runtime for the controller, then none for the agent.
    let mut command = Command::new(binary("replicator").unwrap());
    command.args(["host", "converge", &fleet.host, "--distribution", &distribution()]);
    command.env("DOCKER_HOST", "unix:///not/there.sock");
    told(&run(&fleet, command), 1, &["container runtime of this machine", "docker"]);
    let config = fleet.agent_root().join("etc/replicator-host-agent/agent.toml");
    let good = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, format!("docker = \"/not/there.sock\"\n{good}")).unwrap();
    end_agent(&fleet).await;
    fleet.edit("GREETING: hello", "GREETING: moin").unwrap();
    told(&up(&fleet).await, 1, &["pod.ada.web", "runtime-unreachable", "systemctl start docker"]);
    nothing_lost("no runtime", &fleet, &before).await;
    std::fs::write(&config, good).unwrap();
    end_agent(&fleet).await;
    up(&fleet).await.done().unwrap();
    assert!(fleet.fetch(fleet.name(), "/").await.unwrap().body.starts_with("moin "));
    goes_on("no runtime", &fleet).await;

    // No room for the ledger: nothing is done without a record, and the wait is bounded.
    let before = fleet.containers().unwrap();
    disk.fill();
    fleet.edit("GREETING: moin", "GREETING: servus").unwrap();
    told(&converge(&fleet, &["--timeout", "6"]).await, 1, &["within 6 s", "agent"]);
    nothing_lost("no room for the ledger", &fleet, &before).await;
    disk.make_room();
    up(&fleet).await.done().unwrap();
    assert!(fleet.fetch(fleet.name(), "/").await.unwrap().body.starts_with("servus "));
    fleet.agent(&["ledger", "verify"]).await.unwrap().done().unwrap();
    goes_on("no room for the ledger", &fleet).await;

    // The agent runs: it is told by a controller that has no program of it.
    alone(&fleet, &["host", "down", &fleet.host]).done().unwrap();
}

#[tokio::test]
async fn broker_that_is_away_for_a_moment_does_not_end_the_wait_for_a_report() {
    let mut fleet = Fleet::start().await.unwrap();
    up(&fleet).await.done().unwrap();
    fleet.stop_agent().await.unwrap();
    fleet.edit("GREETING: hello", "GREETING: moin").unwrap();
    let said = fleet.file("converge.log");
    let log = std::fs::File::create(&said).unwrap();
    let mut command = Command::new(binary("replicator").unwrap());
    command.args(["host", "converge", &fleet.host, "--distribution", &distribution()]);
    command.current_dir(fleet.file("")).env("REPLICATOR_HOME", fleet.broker.home.root()).stdin(Stdio::null());
    let mut converge = command.stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap();
    let says = async |text: &str| {
        let look = async || Ok(std::fs::read_to_string(&said)?.contains(text).then_some(()));
        wait::until(text, Duration::from_secs(30), look).await.unwrap();
    };
    says("waiting for its report").await;
    fleet.broker.kill();
    says("trying again").await;
    fleet.broker.resume().await.unwrap();
    fleet.start_agent().await.unwrap();
    let ended = wait::until("the end", Duration::from_secs(60), async || Ok(converge.try_wait()?)).await.unwrap();
    assert!(ended.success(), "{}", std::fs::read_to_string(&said).unwrap());
    fleet.host("down").await.unwrap().done().unwrap();
}

#[tokio::test]
async fn broker_that_is_not_ours_is_told() {
    let mut fleet = Fleet::start().await.unwrap();
    up(&fleet).await.done().unwrap();
    let before = fleet.containers().unwrap();
    let log = |fleet: &Fleet| std::fs::read_dir(fleet.broker.home.state()).unwrap().count();
    let entries = log(&fleet);
    let other = Broker::start().await.unwrap();

    // A credential of another fleet.
    let credentials = fleet.broker.fleet.credentials();
    swap(&credentials, &other.fleet.credentials());
    told(&converge(&fleet, &[]).await, 1, &["refuses the credential", "nats.conf"]);
    swap(&credentials, &aside(&credentials));
    nothing_lost("wrong credential", &fleet, &before).await;

    // An authority of another fleet.
    let settings = fleet.broker.fleet.settings();
    let good = std::fs::read_to_string(&settings).unwrap();
    let authority = |fleet: &FleetFolder| replicator::keys::Settings::load(fleet).unwrap().broker.ca;
    let wrong = good.replace(&authority(&fleet.broker.fleet), &authority(&other.fleet));
    assert_ne!(wrong, good);
    std::fs::write(&settings, wrong).unwrap();
    told(&converge(&fleet, &[]).await, 1, &["the certificate of the broker at", "ca.pem"]);
    std::fs::write(&settings, good).unwrap();
    nothing_lost("wrong authority", &fleet, &before).await;

    // No broker.
    fleet.broker.kill();
    told(&converge(&fleet, &[]).await, 1, &["cannot reach the broker at", "start it with `nats-server -c`"]);
    nothing_lost("no broker", &fleet, &before).await;
    fleet.broker.resume().await.unwrap();
    assert_eq!(log(&fleet), entries);
    goes_on("the broker is back", &fleet).await;
    fleet.host("down").await.unwrap().done().unwrap();
}

/// Where the files of a folder are put while others are in their place.
fn aside(folder: &Path) -> PathBuf {
    folder.with_extension("aside")
}

/// Puts the files of `from` in the place of `folder`; what was there is put aside, once.
fn swap(folder: &Path, from: &Path) {
    if !aside(folder).exists() {
        std::fs::rename(folder, aside(folder)).unwrap();
    } else {
        std::fs::remove_dir_all(folder).unwrap();
    }
    assert!(Command::new("cp").arg("-a").arg(from).arg(folder).status().unwrap().success());
}

fn run(fleet: &Fleet, mut command: Command) -> Said {
    command.current_dir(fleet.file(""));
    command.env("REPLICATOR_HOME", fleet.broker.home.root()).env("NO_COLOR", "1").stdin(Stdio::null());
    said(command)
}

/// Runs a controller that has no agent beside it.
fn alone(fleet: &Fleet, arguments: &[&str]) -> Said {
    let program = fleet.file("replicator");
    if !program.exists() {
        std::fs::copy(binary("replicator").unwrap(), &program).unwrap();
    }
    let mut command = Command::new(program);
    command.args(arguments);
    run(fleet, command)
}

fn said(mut command: Command) -> Said {
    let output = command.output().unwrap();
    Said {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// `host up` by somebody who owns a copy of the operator's files, and is not root.
fn as_nobody(fleet: &Fleet) -> Said {
    let folder = tempfile::tempdir().unwrap();
    let copy = |from: &Path, name: &str| {
        let to = folder.path().join(name);
        assert!(Command::new("cp").arg("-a").arg(from).arg(&to).status().unwrap().success());
        to
    };
    let home = copy(fleet.broker.home.root(), "home");
    let programs = ["replicator", "replicator-host-agent"].map(|name| copy(&binary(name).unwrap(), name));
    copy(&fleet.file("hosts"), "hosts");
    copy(&fleet.file("clanker.yml"), "clanker.yml");
    let owned = Command::new("chown").args(["-R", &NOBODY.to_string()]).arg(folder.path()).status().unwrap();
    assert!(owned.success());
    let mut command = Command::new("setpriv");
    command.args([format!("--reuid={NOBODY}"), format!("--regid={NOBODY}"), "--clear-groups".into()]);
    command.arg(&programs[0]).args(["host", "up", &fleet.host, "--distribution", &distribution()]);
    command.current_dir(folder.path()).env("REPLICATOR_HOME", home).env("NO_COLOR", "1").stdin(Stdio::null());
    said(command)
}

/// Ends the agent, so that the next `up` starts it with its settings read anew.
async fn end_agent(fleet: &Fleet) {
    let file = fleet.agent_root().join("run/replicator-host-agent/pid");
    let text = std::fs::read_to_string(file).unwrap();
    let pid = text.split_whitespace().next().unwrap().to_owned();
    assert!(Command::new("sh").args(["-c", &format!("kill {pid}")]).status().unwrap().success());
    let ended = wait::until("the agent ends", Duration::from_secs(10), async || {
        let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        Ok((state.is_empty() || state.contains(") Z ")).then_some(()))
    });
    ended.await.unwrap();
    assert!(!docker(&["ps", "-q"]).unwrap().is_empty(), "what it runs goes on without it");
}
