use std::process::Command;

use replicator_protocol::wire::event::DriftFound;
use rusqlite::Connection;

use super::*;
use crate::clock::SystemClock;

fn uid() -> HostUid {
    HostUid::parse(&"a".repeat(32)).unwrap()
}

fn open(folder: &Path) -> Result<(Ledger, Option<Damage>), OpenError> {
    open_or_set_aside(folder, &uid(), Arc::new(SystemClock))
}

/// A ledger of six entries in one file.
fn lived() -> tempfile::TempDir {
    let at = tempfile::tempdir().unwrap();
    let mut ledger = Ledger::open(at.path(), &uid(), Arc::new(SystemClock)).unwrap();
    let drift = |number: u32| Body::DriftFound(DriftFound { resource: "acme.web".into(), what: number.to_string() });
    ledger.append(None, (0..5).map(drift).collect()).unwrap();
    at
}

fn database(folder: &Path) -> PathBuf {
    folder.join("ledger/ledger.db")
}

/// Alters entry 4, and returns the bytes of the file.
fn damage(folder: &Path) -> Vec<u8> {
    let connection = Connection::open(database(folder)).unwrap();
    let alter = "DROP TRIGGER events_are_never_changed; UPDATE events SET payload = x'00' WHERE number = 4";
    connection.execute_batch(alter).unwrap();
    drop(connection);
    fs::read(database(folder)).unwrap()
}

/// What the first entry says of the ledger before.
fn named(ledger: &Ledger) -> LedgerSetAside {
    match ledger.read_after(0, 1).unwrap()[0].event().unwrap().body {
        Some(Body::LedgerSetAside(named)) => named,
        other => panic!("not a set-aside: {other:?}"),
    }
}

#[test]
fn damaged_ledger_is_set_aside_and_the_new_one_names_it() {
    let at = lived();
    let third = Ledger::open(at.path(), &uid(), Arc::new(SystemClock)).unwrap().read_after(2, 1).unwrap().remove(0);
    let old = damage(at.path());
    let (ledger, found) = open(at.path()).unwrap();
    assert!(matches!(found, Some(Damage::Altered { number: 4, .. })));
    assert_eq!(fs::read(at.path().join("ledger.damaged-1/ledger.db")).unwrap(), old);
    let named = named(&ledger);
    assert_eq!((named.last_good_number, &named.last_good_hash[..]), (3, &third.hash.0[..]));
    assert_eq!(named.last_good_chain, third.event().unwrap().chain);
    assert_ne!(named.last_good_chain[..], ledger.head().chain);
    let head = ledger.head();
    drop(ledger);
    let (again, none) = open(at.path()).unwrap();
    assert_eq!((again.head(), none), (head, None), "the new ledger opens again");
}

#[test]
fn file_that_is_no_database_is_set_aside_as_it_is() {
    let at = tempfile::tempdir().unwrap();
    let garbage = vec![0x5a; 8192];
    fs::create_dir(at.path().join(DATABASE)).unwrap();
    fs::write(database(at.path()), &garbage).unwrap();
    let (ledger, found) = open(at.path()).unwrap();
    assert!(matches!(found, Some(Damage::File { .. })));
    assert_eq!(named(&ledger).last_good_number, 0);
    assert_eq!(fs::read(at.path().join("ledger.damaged-1/ledger.db")).unwrap(), garbage);
}

#[test]
fn ledger_that_was_removed_or_emptied_is_lost_and_what_is_left_of_it_is_kept() {
    let log = |folder: &Path| folder.join("ledger/ledger.db-wal");
    let remove = |folder: &Path| fs::remove_file(database(folder)).unwrap();
    let empty = |folder: &Path| fs::write(database(folder), "").unwrap();
    let without_log = |folder: &Path| {
        remove(folder);
        fs::remove_file(log(folder)).unwrap();
    };
    let with_its_folder = |folder: &Path| {
        fs::remove_dir_all(folder.join(DATABASE)).unwrap();
        fs::write(folder.join(ANCHORS[1]), "").unwrap();
    };
    let lose = |case: &str, folder: &Path| match case {
        "removed" => remove(folder),
        "emptied" => empty(folder),
        "all removed" => without_log(folder),
        _ => with_its_folder(folder),
    };
    for case in ["removed", "emptied", "all removed", "no folder"] {
        let at = lived();
        let ledger = Ledger::open(at.path(), &uid(), Arc::new(SystemClock)).unwrap();
        let written = fs::read(log(at.path())).unwrap();
        drop(ledger);
        fs::write(log(at.path()), &written).unwrap();
        lose(case, at.path());
        let left = fs::read(log(at.path())).ok();
        assert!(matches!(Ledger::open(at.path(), &uid(), Arc::new(SystemClock)), Err(OpenError::Damaged(_))), "{case}");
        let (ledger, found) = open(at.path()).unwrap();
        assert!(matches!(found, Some(Damage::File { last_good: 0, .. })), "{case}: {found:?}");
        assert_eq!(named(&ledger).last_good_number, 0, "{case}");
        assert!(ledger.state().resources.lost, "{case}");
        assert_eq!(fs::read(at.path().join("ledger.damaged-1/ledger.db-wal")).ok(), left, "{case}");
        drop(ledger);
        assert_eq!(open(at.path()).unwrap().1, None, "{case}: the new ledger opens again");
    }
}

#[test]
fn further_file_that_was_emptied_or_of_which_only_the_log_is_left_is_lost() {
    let further = "ledger/ledger-00000000000000000007.db";
    for lose in [
        |file: &Path| fs::write(file, "").unwrap(),
        |file: &Path| fs::rename(file, file.with_extension("db-wal")).unwrap(),
    ] {
        let at = lived();
        Ledger::open(at.path(), &uid(), Arc::new(SystemClock)).unwrap().rotate().unwrap();
        lose(&at.path().join(further));
        let (ledger, found) = open(at.path()).unwrap();
        assert!(matches!(found, Some(Damage::File { .. })), "{found:?}");
        assert!(ledger.state().resources.lost);
    }
}

#[test]
fn damaged_file_behind_a_good_one_leaves_the_good_ones_last_entry_named() {
    let at = lived();
    let mut ledger = Ledger::open(at.path(), &uid(), Arc::new(SystemClock)).unwrap();
    let closed_with = ledger.head();
    ledger.rotate().unwrap();
    drop(ledger);
    fs::write(at.path().join("ledger/ledger-00000000000000000007.db"), [0x5a; 8192]).unwrap();
    let (ledger, _) = open(at.path()).unwrap();
    let named = named(&ledger);
    assert_eq!((named.last_good_number, &named.last_good_hash[..]), (6, &closed_with.hash.0[..]));
}

#[test]
fn nothing_that_was_set_aside_is_ever_overwritten() {
    let at = lived();
    fs::create_dir(at.path().join("ledger.damaged-1")).unwrap();
    fs::write(at.path().join("ledger.damaged-1/ledger.db"), "first").unwrap();
    fs::write(at.path().join("ledger.damaged-2"), "no folder").unwrap();
    let old = damage(at.path());
    drop(open(at.path()).unwrap());
    assert_eq!(fs::read(at.path().join("ledger.damaged-1/ledger.db")).unwrap(), b"first");
    assert_eq!(fs::read(at.path().join("ledger.damaged-2")).unwrap(), b"no folder");
    assert_eq!(fs::read(at.path().join("ledger.damaged-3/ledger.db")).unwrap(), old);
}

/// Opens a ledger on which something was done, and demands that it is left where it is.
fn is_left(folder: &Path, hint: &str) {
    let error = open(folder).map(|_| ()).unwrap_err();
    assert!(matches!(error, OpenError::Store(_)), "{error:?}");
    assert!(error.hint().unwrap().contains(hint), "{error:?}");
    let text = error.to_string();
    assert!(text.contains(&folder.join("ledger/ledger.db").display().to_string()), "it says where: {text}");
    let source = std::error::Error::source(&error).unwrap();
    assert!(!source.to_string().is_empty(), "and why");
    assert!(!folder.join("ledger.damaged-1").exists());
}

#[test]
fn ledger_that_another_program_has_open_is_no_damage() {
    let at = lived();
    let other = Connection::open(database(at.path())).unwrap();
    other.execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; COMMIT;").unwrap();
    is_left(at.path(), "another program");
    drop(other);
    assert_eq!(open(at.path()).unwrap().0.head().number, 6);
}

#[test]
fn ledger_that_cannot_be_opened_is_no_damage() {
    let at = lived();
    let side = at.path().join("ledger/ledger.db-wal");
    let _absent = fs::remove_file(&side);
    fs::create_dir(&side).unwrap();
    is_left(at.path(), "as root");
    fs::remove_dir(&side).unwrap();
    assert_eq!(open(at.path()).unwrap().0.head().number, 6);
}

const LIFE: &str = "LEDGER_ASIDE_IN";

/// Opens the ledger in a process of its own, with this fault, and says whether that was killed.
fn opens(folder: &Path, fault: &str) -> bool {
    use std::os::unix::process::ExitStatusExt as _;
    let this = "ledger::aside::tests::kill_between_any_two_steps_loses_neither_the_old_ledger_nor_its_name";
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", this]).env(LIFE, folder).env("REPLICATOR_FAULT_POINT", fault);
    let output = command.output().unwrap();
    output.status.signal() == Some(9)
}

#[test]
fn kill_between_any_two_steps_loses_neither_the_old_ledger_nor_its_name() {
    if let Some(folder) = std::env::var_os(LIFE) {
        open(Path::new(&folder)).map(drop).unwrap();
        return;
    }
    let points = [("ledger.make", 1), ("ledger.set-aside", 1), ("ledger.set-aside", 2)];
    for (effect, nth) in points {
        for side in ["before", "after"] {
            let at = lived();
            let old = damage(at.path());
            let fault = format!("{effect}.{side}#{nth}:kill");
            assert!(opens(at.path(), &fault), "{fault} struck nothing");
            let (ledger, _) = open(at.path()).unwrap();
            assert_eq!(named(&ledger).last_good_number, 3, "{fault}");
            assert_eq!(fs::read(at.path().join("ledger.damaged-1/ledger.db")).unwrap(), old, "{fault}");
            assert!(!at.path().join("ledger.damaged-2").exists(), "{fault}");
            assert!(!at.path().join(NEXT).exists(), "{fault}");
        }
    }
    for fault in ["ledger.make.before", "ledger.make.after", "ledger.set-aside.before", "ledger.set-aside.after"] {
        let at = tempfile::tempdir().unwrap();
        assert!(opens(at.path(), &format!("{fault}:kill")), "{fault} struck nothing");
        let (ledger, found) = open(at.path()).unwrap();
        assert_eq!((ledger.head().number, found), (1, None), "{fault}: a host's first ledger");
    }
}
