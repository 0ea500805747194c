use std::os::unix::fs::PermissionsExt as _;

use super::lock::lock;
use super::*;
use crate::keys::Keyrings;

const NOW: Duration = Duration::from_secs(1_800_000_000);

fn wanted(listen: &str, transport: Transport) -> Wanted {
    Wanted { fleet: FleetName::parse("lab").unwrap(), listen: listen.parse().unwrap(), transport }
}

fn named() -> Transport {
    Transport::Tls { names: vec!["broker.lab".into(), "127.0.0.1".into()] }
}

fn home(folder: &tempfile::TempDir) -> Home {
    Home::at(folder.path().join("home")).unwrap()
}

/// Every file below `folder`, by path.
fn files_below(folder: &Path) -> Vec<(PathBuf, Vec<u8>, u32)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_below(&path));
        } else {
            let mode = path.metadata().unwrap().permissions().mode() & 0o7777;
            found.push((path.clone(), std::fs::read(&path).unwrap(), mode));
        }
    }
    found.sort();
    found
}

#[test]
fn fleet_is_set_up_whole_and_private() {
    let folder = tempfile::tempdir().unwrap();
    let home = home(&folder);
    let fleet = init(&home, &wanted("0.0.0.0:4222", named()), NOW).unwrap();
    let settings = Settings::load(&fleet).unwrap();
    assert_eq!(settings.broker.urls, ["tls://broker.lab:4222", "tls://127.0.0.1:4222"]);
    assert_eq!(settings.broker.server_name, "broker.lab");
    let keyrings = Keyrings::load(&fleet).unwrap();
    assert_eq!(keyrings.current.document().to_string(), settings.root);
    for signer in Signer::ONLINE {
        signing::load(&fleet, signer).unwrap();
    }
    assert_eq!(home.fleets().unwrap(), [FleetName::parse("lab").unwrap()]);
    for (path, _, mode) in files_below(fleet.root()) {
        assert_eq!(mode, 0o600, "{}", path.display());
    }
    let left: Vec<_> = std::fs::read_dir(home.root().join("fleets")).unwrap().collect();
    assert_eq!(left.len(), 1, "the draft is gone");
}

#[test]
fn second_time_is_refused_without_loss() {
    let folder = tempfile::tempdir().unwrap();
    let home = home(&folder);
    let fleet = init(&home, &wanted("127.0.0.1:4222", Transport::InsecureLoopback), NOW).unwrap();
    let before = files_below(fleet.root());
    let again = init(&home, &wanted("0.0.0.0:4222", named()), NOW);
    assert!(matches!(again, Err(InitError::Exists { .. })));
    assert_eq!(files_below(fleet.root()), before);
}

#[test]
fn plain_text_is_for_loopback_alone_and_tls_needs_a_name() {
    let folder = tempfile::tempdir().unwrap();
    let home = home(&folder);
    let plain = init(&home, &wanted("0.0.0.0:4222", Transport::InsecureLoopback), NOW);
    assert!(matches!(plain, Err(InitError::PlainBeyondLoopback(_))));
    let nameless = init(&home, &wanted("0.0.0.0:4222", Transport::Tls { names: vec![] }), NOW);
    assert!(matches!(nameless, Err(InitError::NoName)));
    assert!(matches!(init(&home, &wanted("127.0.0.1:0", named()), NOW), Err(InitError::NoPort)));
    assert_eq!(home.fleets().unwrap(), []);
}

#[test]
fn configuration_holds_no_private_key() {
    let folder = tempfile::tempdir().unwrap();
    let fleet = init(&home(&folder), &wanted("0.0.0.0:4222", named()), NOW).unwrap();
    let text = std::fs::read_to_string(fleet.broker().join("nats.conf")).unwrap();
    for (path, bytes, _) in files_below(&fleet.keys()) {
        let Ok(seed) = String::from_utf8(bytes) else { continue };
        assert!(!text.contains(seed.trim()), "{}", path.display());
    }
    for line in ["sync_interval: always", "min_version: \"1.3\"", "handshake_first: true", "type: full"] {
        assert!(text.contains(line), "{line}");
    }
}

#[test]
fn name_that_no_host_could_reach_is_refused_and_nothing_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let home = home(&folder);
    let init = |names: &[&str]| {
        let names = names.iter().map(ToString::to_string).collect();
        init(&home, &wanted("0.0.0.0:4222", Transport::Tls { names }), NOW)
    };
    let long = format!("{}.example", "a".repeat(64));
    for odd in ["", "a b", "https://x", "x:4222", "*.acme.example", "-x", "a..b", "acme.example.", "1.2.3", &long] {
        let refused = init(&["broker.lab", odd]).unwrap_err();
        assert!(matches!(&refused, InitError::Name(name) if name == odd), "{odd}: {refused}");
        assert!(refused.hint().contains("--name"));
    }
    assert!(matches!(init(&["broker.lab", "Broker.lab"]), Err(InitError::Twice(_))));
    assert!(!home.root().exists());
    init(&["localhost", "broker-1.acme.example", "192.0.2.7", "2001:db8::7"]).unwrap();
}

#[test]
fn fleets_set_up_at_once_are_whole_and_each_is_set_up_once() {
    let folder = tempfile::tempdir().unwrap();
    let home = home(&folder);
    // What a run that was cut off left behind.
    std::fs::create_dir_all(home.root().join("fleets/.new-left/keys")).unwrap();
    std::fs::set_permissions(home.root(), Permissions::from_mode(0o700)).unwrap();
    std::fs::set_permissions(home.root().join("fleets"), Permissions::from_mode(0o700)).unwrap();
    let names: Vec<FleetName> = (0..8).map(|number| format!("fleet-{number}").parse().unwrap()).collect();
    let init = |name: &FleetName| {
        let transport = Transport::InsecureLoopback;
        let listen = "127.0.0.1:4222".parse().unwrap();
        super::init(&home, &Wanted { fleet: name.clone(), listen, transport }, NOW)
    };
    let ended: Vec<_> = std::thread::scope(|scope| {
        let runs: Vec<_> = names.iter().chain(&names).map(|name| scope.spawn(move || init(name))).collect();
        runs.into_iter().map(|run| run.join().unwrap()).collect()
    });
    for pair in 0..names.len() {
        let (first, second) = (&ended[pair], &ended[pair + names.len()]);
        let refused = match (first, second) {
            (Ok(_), Err(refused)) | (Err(refused), Ok(_)) => refused,
            (Ok(_), Ok(_)) => panic!("{} was set up twice", names[pair]),
            (Err(first), Err(_)) => panic!("{} was not set up: {first}", names[pair]),
        };
        assert!(matches!(refused, InitError::Exists { .. }), "{refused}");
        Keyrings::load(&home.fleet(&names[pair])).unwrap();
    }
    let left = std::fs::read_dir(home.root().join("fleets")).unwrap().count();
    assert_eq!(left, names.len(), "no draft is left");
}

#[test]
fn another_who_does_not_come_to_an_end_is_named_and_waited_for_no_longer() {
    let folder = tempfile::tempdir().unwrap();
    let held = lock(folder.path(), Duration::ZERO).unwrap();
    let refused = lock(folder.path(), Duration::from_millis(1)).unwrap_err();
    let ours = std::process::id();
    assert!(matches!(refused, InitError::Busy { pid: Some(pid), .. } if pid == ours), "{refused:?}");
    assert!(refused.hint().contains(&format!("kill -CONT {ours}")), "{}", refused.hint());
    drop(held);
    lock(folder.path(), Duration::ZERO).unwrap();
}
