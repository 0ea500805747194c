//! Secrets are where their containers read them, and nowhere else: not in a store, an output, a log, a
//! definition or a process, in no common spelling.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use replicator_lab::dockerd::docker;
use replicator_lab::fleet::Fleet;

/// How many are planted.
const PLANTED: usize = 20;
/// What is declared in clear, to be found.
const CONTROL: &str = "c@ntrol/in+clear=81f0a3";

/// A place, and all that stands there.
struct Place {
    name: String,
    text: String,
}

impl Place {
    fn of(name: impl Into<String>, bytes: &[u8]) -> Self {
        Self { name: name.into(), text: String::from_utf8_lossy(bytes).into_owned() }
    }
}

/// A value that each spelling spells in another way.
fn value(at: usize) -> String {
    let mut random = [0; 8];
    getrandom::fill(&mut random).unwrap();
    format!("pl@nt/{at:02}+{}=?", hex::encode(random))
}

/// The value as it may be written; all of it is ASCII.
fn spellings(value: &str) -> Vec<(&'static str, String)> {
    let hexed = hex::encode(value);
    let mut url = String::new();
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            url.push(char::from(byte));
        } else {
            write!(url, "%{byte:02X}").unwrap();
        }
    }
    let mut all = vec![("raw", value.to_owned()), ("hex", hexed.to_uppercase()), ("hex", hexed)];
    all.extend([("URL-encoded", url.replace("%2F", "%2f").replace("%2B", "%2b")), ("URL-encoded", url)]);
    // In the midst of something longer, its first bits stand at any of three places.
    for before in 0..3 {
        let mut longer = vec![0; before];
        longer.extend(value.bytes());
        let own = (before * 8).div_ceil(6)..longer.len() * 8 / 6;
        for engine in [&STANDARD_NO_PAD, &URL_SAFE_NO_PAD] {
            all.push(("base64", engine.encode(&longer)[own.clone()].to_owned()));
        }
    }
    all
}

/// Where a value stands, and how it is spelled there.
fn sightings(value: &str, places: &[Place]) -> Vec<String> {
    let spellings = spellings(value);
    let seen = |place: &Place| {
        let spelled = spellings.iter().find(|(_, text)| place.text.contains(text))?;
        Some(format!("{} ({})", place.name, spelled.0))
    };
    places.iter().filter_map(seen).collect()
}

/// Every file below `folder`, but for these folders.
fn files(folder: &Path, but: &[PathBuf]) -> Vec<Place> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() && !path.is_symlink() && !but.contains(&path) {
            all.extend(files(&path, but));
        } else if path.is_file() {
            // A file may go away while others are read.
            all.push(Place::of(path.display().to_string(), &std::fs::read(&path).unwrap_or_default()));
        }
    }
    all
}

/// Environment and arguments of every process of the machine.
fn processes() -> Vec<Place> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let numbered =
        processes.filter(|path| path.file_name().is_some_and(|name| name.as_encoded_bytes()[0].is_ascii_digit()));
    let files = numbered.flat_map(|path| ["environ", "cmdline"].map(|name| path.join(name)));
    files.filter_map(|path| Some(Place::of(path.display().to_string(), &std::fs::read(&path).ok()?))).collect()
}

/// Whether a program that runs under this number, and nothing else, reads a file.
fn readable_by(id: u32, file: &Path) -> bool {
    let id = id.to_string();
    let mut reads = Command::new("setpriv");
    reads.args(["--reuid", &id, "--regid", &id, "--clear-groups", "cat"]).arg(file);
    reads.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success()
}

/// What every command says that shows something.
async fn outputs(fleet: &Fleet) -> Vec<Place> {
    let distribution = Path::new(env!("CARGO_MANIFEST_DIR")).join("images/distribution.json");
    let distribution = distribution.to_str().unwrap();
    let host = fleet.host.as_str();
    let mut all = Vec::new();
    for arguments in [
        &["validate"][..],
        &["plan", host, "--distribution", distribution],
        &["host", "list"],
        &["host", "show", host],
        &["secrets", "list"],
        &["events"],
        &["fleet", "status"],
    ] {
        for form in ["human", "json"] {
            let said = fleet.replicator(&[arguments, &["-v", "-v", "-o", form]].concat()).await.unwrap();
            let name = format!("replicator {} -o {form}", arguments.join(" "));
            assert!(!said.stdout.is_empty() || !said.stderr.is_empty(), "{name} says nothing");
            assert!(said.code == 0, "{name}: {said:?}");
            all.push(Place::of(name, format!("{}{}", said.stdout, said.stderr).as_bytes()));
        }
    }
    for arguments in [&["status"][..], &["ledger", "show"], &["ledger", "verify"]] {
        for form in ["human", "json"] {
            let said = fleet.agent(&[arguments, &["-o", form]].concat()).await.unwrap();
            let name = format!("replicator-host-agent {} -o {form}", arguments.join(" "));
            assert!(said.code == 0, "{name}: {said:?}");
            all.push(Place::of(name, format!("{}{}", said.stdout, said.stderr).as_bytes()));
        }
    }
    all
}

/// All that can be looked into, but the files that the containers read their secrets from.
async fn everywhere(fleet: &Fleet) -> Vec<Place> {
    let state = fleet.agent_root().join("var/lib/replicator-host-agent");
    // What was replaced is kept here until its replacement is proven, readable to root as the file itself is.
    let mut all = files(&fleet.agent_root(), &[state.join("previous"), state.join("originals")]);
    all.extend(files(fleet.broker.home.root(), &[]));
    all.extend(files(&fleet.file(""), &[fleet.agent_root()]));
    all.extend(processes());
    let containers = docker(&["ps", "-aq"]).unwrap();
    let containers: Vec<_> = ["inspect"].into_iter().chain(containers.split_whitespace()).collect();
    all.push(Place::of("docker inspect", docker(&containers).unwrap().as_bytes()));
    all.extend(outputs(fleet).await);
    all
}

#[tokio::test]
async fn planted_secrets_are_found_nowhere_but_in_their_files() {
    let fleet = Fleet::start().await.unwrap();
    let planted: Vec<_> = (0..PLANTED).map(|at| (format!("planted{at}"), value(at))).collect();
    for (name, value) in &planted {
        fleet.set_secret(name, value).await.unwrap();
    }
    let names = |part: &[(String, String)]| part.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
    let (web, leaking) = planted.split_at(PLANTED / 2);
    fleet.edit("GREETING: hello\n", &format!("GREETING: hello\n        CONTROL: \"{CONTROL}\"\n")).unwrap();
    fleet
        .edit(
            "      secrets: [ webToken ]\n",
            &format!(
                "      secrets: [ webToken, {} ]\n  - repo: acme/leak\n    image: local:replicator-demo/web:1\n    env:\n      \
                 plain:\n        LAB_MODE: leak\n        PORT: \"3001\"\n      secrets: [ {} ]\n",
                names(web),
                names(leaking)
            ),
        )
        .unwrap();

    let up = fleet.host("up").await.unwrap();
    assert_eq!(up.code, 1, "one container fails: {up:?}");
    let again = fleet.host("converge").await.unwrap();
    // Generations that follow are kept no worse than the first.
    let (name, _) = &planted[0];
    let changed = value(PLANTED);
    fleet.set_secret(name, &changed).await.unwrap();
    let third = fleet.host("converge").await.unwrap();

    let mut places = everywhere(&fleet).await;
    for (verb, said) in [("up", up), ("converge again", again), ("converge", third)] {
        places.push(Place::of(format!("host {verb}"), format!("{}{}", said.stdout, said.stderr).as_bytes()));
    }

    // The controls: the failed container told all it had, and the containers have it all.
    let masked = |place: &Place| place.name == "host up" && place.text.contains("[masked]");
    assert!(places.iter().any(masked), "its words are reported");
    let secrets = files(Path::new(&format!("/var/lib/replicator.{}", fleet.host)), &[]);
    for (_, value) in planted[1..].iter().map(|(name, value)| (name, value)).chain([(name, &changed)]) {
        assert!(!sightings(value, &secrets).is_empty(), "a container reads it");
    }
    // An account of this machine with the number a container runs under reads none of them.
    for place in secrets.iter().filter(|place| place.name.contains("/secrets/")) {
        assert!(!readable_by(1000, Path::new(&place.name)), "{}", place.name);
    }
    assert!(readable_by(1000, Path::new("/etc/os-release")), "the control: it reads what is open");

    // One that is declared in clear is found in every kind of place.
    let control = sightings(CONTROL, &places).join("\n");
    for place in ["docker inspect", "/environ", "/jetstream/", "/clanker.yml"] {
        assert!(control.contains(place), "the control is not seen in `{place}`:\n{control}");
    }

    let mut seen = Vec::new();
    for (name, value) in planted.iter().map(|(name, value)| (name, value)).chain([(name, &changed)]) {
        seen.extend(sightings(value, &places).into_iter().map(|place| format!("{name} in {place}")));
    }
    assert!(seen.is_empty(), "{seen:#?}");
}

/// The control of the search itself.
#[test]
fn every_spelling_is_found() {
    let value = value(7);
    let (hex, bytes) = (hex::encode(&value), value.as_bytes());
    let url = value.replace('@', "%40").replace('/', "%2F").replace('+', "%2B").replace('=', "%3D").replace('?', "%3F");
    let mut written = vec![value.clone(), hex.clone(), hex.to_uppercase(), url];
    for (before, after) in [("", ""), ("x", "y"), ("xx", "yyy"), ("xxx", "yy")] {
        let longer = [before.as_bytes(), bytes, after.as_bytes()].concat();
        written.extend([STANDARD_NO_PAD.encode(&longer), URL_SAFE_NO_PAD.encode(&longer)]);
    }
    for text in written {
        assert_eq!(sightings(&value, &[Place::of("here", format!("<{text}>").as_bytes())]).len(), 1, "{text}");
    }
    assert!(sightings(&value, &[Place::of("here", b"nothing")]).is_empty());
}
