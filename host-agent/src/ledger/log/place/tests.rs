use std::process::Command;
use std::sync::Arc;

use replicator_protocol::ids::HostUid;
use replicator_protocol::wire::event::DriftFound;

use super::*;
use crate::clock::SystemClock;
use crate::ledger::{DATABASE, Damage, Reader, open_or_set_aside};

fn open(folder: &Path) -> (Ledger, Option<Damage>) {
    let host = HostUid::parse(&"a".repeat(32)).unwrap();
    open_or_set_aside(folder, &host, Arc::new(SystemClock)).unwrap()
}

fn drift() -> Body {
    Body::DriftFound(DriftFound { resource: "acme.web".into(), what: "x".repeat(4096) })
}

/// A ledger of two files, receipted as far as entry 5, and another ledger of the same files that is shorter.
fn lived() -> (tempfile::TempDir, Ledger) {
    let at = tempfile::tempdir().unwrap();
    let (mut ledger, _) = open(at.path());
    ledger.append(None, vec![drift(); 5]).unwrap();
    ledger.rotate().unwrap();
    ledger.append(None, vec![drift()]).unwrap();
    drop(ledger);
    std::fs::create_dir(at.path().join("backup")).unwrap();
    for name in names(&at.path().join(DATABASE)) {
        fs::copy(at.path().join(DATABASE).join(&name), at.path().join("backup").join(&name)).unwrap();
    }
    let (mut ledger, _) = open(at.path());
    ledger.append(None, vec![drift(); 5]).unwrap();
    let fifth = ledger.read_after(4, 1).unwrap().remove(0);
    assert!(ledger.settle(5, fifth.hash).unwrap());
    (at, ledger)
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = files::names(folder).unwrap();
    names.sort();
    names
}

/// The file of [`lived`] that is appended to.
const CURRENT: &str = "ledger-00000000000000000007.db";

/// What somebody does to a ledger that is in use, and what of it is kept aside.
const DONE: [(&str, &[&str]); 7] = [
    ("removed", &[]),
    ("removed with its log", &[]),
    ("log removed", &[]),
    ("index of the log removed", &[]),
    ("replaced", &[CURRENT]),
    ("replaced with a log", &[CURRENT, "ledger-00000000000000000007.db-wal"]),
    ("no database", &[CURRENT]),
];

/// Does it to the ledger in `folder`.
fn done(what: &str, folder: &Path) {
    let current = folder.join(DATABASE).join(CURRENT);
    let beside = |end: &str| current.with_extension(format!("db-{end}"));
    let remove = |path: &Path| fs::remove_file(path).unwrap();
    let place = |from: &Path, to: &Path| fs::rename(from, to).unwrap();
    match what {
        "removed" => remove(&current),
        "removed with its log" => [&current, &beside("wal"), &beside("shm")].into_iter().for_each(|path| remove(path)),
        "log removed" => remove(&beside("wal")),
        "index of the log removed" => remove(&beside("shm")),
        "replaced" => place(&folder.join("backup").join(CURRENT), &current),
        "replaced with a log" => {
            place(&folder.join("backup").join(CURRENT), &current);
            let log = folder.join("backup/log");
            fs::write(&log, "another's log").unwrap();
            place(&log, &beside("wal"));
        }
        "no database" => {
            let other = folder.join("backup/other");
            fs::write(&other, "no database").unwrap();
            place(&other, &current);
        }
        other => panic!("{other}"),
    }
}

fn put_back(entries: &[crate::ledger::Entry]) -> Vec<LedgerPutBack> {
    let bodies = entries.iter().filter_map(|entry| entry.event()?.body);
    let told = bodies.filter_map(|body| if let Body::LedgerPutBack(told) = body { Some(told) } else { None });
    told.collect()
}

#[test]
fn file_that_is_not_in_its_place_is_written_there_again_with_all_it_held() {
    for (what, aside) in DONE {
        let (at, mut ledger) = lived();
        let before = ledger.head();
        done(what, at.path());
        ledger.append(None, vec![drift()]).unwrap();
        let head = ledger.append(None, vec![drift()]).unwrap();
        assert_eq!(head.number, before.number + 3, "{what}: and one entry says so");
        let state = ledger.state().clone();
        drop(ledger);

        let (ledger, damage) = open(at.path());
        assert_eq!((ledger.head(), damage), (head, None), "{what}");
        assert_eq!((ledger.settled().unwrap(), ledger.state()), (5, &state), "{what}");
        let entries = ledger.read_after(0, u32::MAX).unwrap();
        assert_eq!(entries[usize::try_from(before.number).unwrap() - 1].hash, before.hash, "{what}");
        let replaced = !aside.is_empty();
        assert_eq!(put_back(&entries), [LedgerPutBack { file: CURRENT.into(), replaced }], "{what}");
        let left = at.path().join("ledger.left-1");
        assert_eq!(names(&left), aside, "{what}: none of ours");
        assert!(names(&at.path().join(DATABASE)).iter().all(|name| !name.ends_with(".again")), "{what}");
    }
}

#[test]
fn folder_that_was_removed_is_made_again() {
    let at = tempfile::tempdir().unwrap();
    let (mut ledger, _) = open(at.path());
    ledger.append(None, vec![drift()]).unwrap();
    fs::remove_dir_all(at.path().join(DATABASE)).unwrap();
    let head = ledger.append(None, vec![drift()]).unwrap();
    drop(ledger);
    let (ledger, damage) = open(at.path());
    assert_eq!((ledger.head(), ledger.head().number, damage), (head, 4, None));
}

#[test]
fn one_that_is_in_its_place_is_left_alone_though_others_read_it() {
    let (at, mut ledger) = lived();
    let head = ledger.head();
    for _ in 0..2 {
        Reader::open(at.path()).unwrap().unwrap().verify().unwrap();
        ledger.look().unwrap();
    }
    assert_eq!(ledger.head(), head);
}

const LIFE: &str = "LEDGER_PLACE_IN";

/// In a process of its own: the ledger in `folder` is replaced while it is in use, and a step of what follows fails once.
fn replaced_in_use(folder: &Path) {
    let (mut ledger, _) = open(folder);
    let head = ledger.append(None, vec![drift()]).unwrap();
    fs::write(folder.join("head"), head.hash.0).unwrap();
    done("replaced", folder);
    ledger.append(None, vec![drift()]).unwrap_err();
    assert_eq!(ledger.head(), head, "nothing was recorded");
    assert_eq!(ledger.read_after(head.number - 1, 1).unwrap()[0].hash, head.hash, "and it can be read");
    assert_eq!(ledger.append(None, vec![drift()]).unwrap().number, head.number + 2);
}

#[test]
fn kill_or_fault_between_any_two_steps_loses_nothing_that_was_appended() {
    use std::os::unix::process::ExitStatusExt as _;
    if let Some(folder) = std::env::var_os(LIFE) {
        return replaced_in_use(Path::new(&folder));
    }
    let this = "ledger::log::place::tests::kill_or_fault_between_any_two_steps_loses_nothing_that_was_appended";
    let points = ["ledger.make.after", "ledger.put-back.before", "ledger.put-back.after"];
    let points = points.into_iter().flat_map(|point| [1, 2].map(|nth| (point, nth)));
    for (point, nth) in points.filter(|point| *point != ("ledger.make.after", 2)) {
        for act in ["kill", "error"] {
            let (at, ledger) = lived();
            let before = ledger.head().number;
            drop(ledger);
            let fault = format!("{point}#{nth}:{act}");
            let mut command = Command::new(std::env::current_exe().unwrap());
            command.args(["--exact", this]).env(LIFE, at.path()).env("REPLICATOR_FAULT_POINT", &fault);
            let output = command.output().unwrap();
            let killed = output.status.signal() == Some(9);
            assert_eq!(killed, act == "kill", "{fault}: {}", String::from_utf8_lossy(&output.stdout));
            assert!(killed || output.status.success(), "{fault}: {}", String::from_utf8_lossy(&output.stdout));

            let (ledger, damage) = open(at.path());
            assert_eq!(damage, None, "{fault}");
            let entries = ledger.read_after(0, u32::MAX).unwrap();
            let last = &entries[usize::try_from(before).unwrap()];
            assert_eq!(last.hash.0[..], fs::read(at.path().join("head")).unwrap(), "{fault}");
            assert!(!put_back(&entries).is_empty(), "{fault}");
            let left = at.path().join("ledger.left-1").join(CURRENT);
            assert!(
                Connection::open(left).unwrap().execute("VACUUM", []).is_ok(),
                "{fault}: and the other one is kept"
            );
        }
    }
}
