use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use replicator_protocol::ids::HostUid;
use replicator_protocol::wire::event::{ApplyReported, DriftFound, Outcome, ResourceResult};

use super::*;
use crate::clock::{Clock, SystemClock};
use crate::ledger::projections::{Projections, status_at};
use crate::ledger::{Damage, Limits, OpenError, Reader, SharedLedger, VerifyError};

/// A file is full after a dozen entries of [`drift`].
const SMALL: Limits = Limits { file: 80 << 10, budget: 200 << 10 };
/// No file is ever full, nothing is ever too much.
const ENDLESS: Limits = Limits { file: u64::MAX, budget: u64::MAX };

fn open(folder: &Path, limits: Limits) -> Result<SharedLedger, OpenError> {
    let host = HostUid::parse(&"a".repeat(32)).unwrap();
    Ok(SharedLedger::new(Ledger::open(folder, &host, Arc::new(SystemClock))?.within(limits)))
}

/// An entry of four kibibytes.
fn drift(number: u64) -> Body {
    Body::DriftFound(DriftFound { resource: format!("web.server-{}", number % 5), what: "x".repeat(4096) })
}

fn report() -> Body {
    let result =
        ResourceResult { resource: "web.server".into(), outcome: Outcome::Changed.into(), ..ResourceResult::default() };
    Body::ApplyReported(ApplyReported { results: vec![result], complete: true, ..ApplyReported::default() })
}

fn live(ledger: &SharedLedger, entries: u64) {
    for number in 0..entries {
        ledger.append(None, vec![drift(number), report()]).unwrap();
    }
}

fn settle_all(ledger: &SharedLedger) {
    let head = ledger.head();
    assert!(ledger.settle(head.number, head.hash).unwrap());
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder.join("ledger")).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.retain(|name| name.ends_with(".db"));
    names.sort();
    names
}

fn all(reader: &Reader) -> Vec<u64> {
    reader.read_after(0, u32::MAX).unwrap().iter().map(|entry| entry.number).collect()
}

#[test]
fn full_file_is_closed_and_the_chain_goes_on_in_the_next() {
    let at = tempfile::tempdir().unwrap();
    let ledger = open(at.path(), SMALL).unwrap();
    live(&ledger, 40);
    let head = ledger.head();
    let count = names(at.path()).len();
    assert!(count > 2, "{:?}", names(at.path()));
    let entries = ledger.read_after(0, u32::MAX).unwrap();
    assert_eq!(entries.iter().map(|entry| entry.number).collect::<Vec<_>>(), (1..=head.number).collect::<Vec<_>>());
    let rotated = entries.iter().filter(|entry| matches!(entry.event().unwrap().body, Some(Body::LedgerRotated(_))));
    assert_eq!(rotated.count(), count - 1);
    let page = ledger.read_after(10, 20).unwrap();
    assert_eq!(page, entries[10..30], "a page over the end of a file");
    let state = ledger.state();
    drop(ledger);
    let again = open(at.path(), SMALL).unwrap();
    assert_eq!((again.head(), again.state()), (head, state));
    let reader = Reader::open(at.path()).unwrap().unwrap();
    assert_eq!(all(&reader), (1..=head.number).collect::<Vec<_>>());
    assert_eq!(reader.verify().unwrap().hash, head.hash);
}

/// With as many applies as are kept, a checkpoint alone is above the least limit there may be.
#[test]
fn file_that_is_nearly_all_checkpoint_is_not_full_from_its_beginning() {
    let least = Limits { file: 64 << 10, budget: 64 << 10 };
    let at = tempfile::tempdir().unwrap();
    let ledger = open(at.path(), least).unwrap();
    assert_eq!(ledger.lock().size().unwrap(), NOTHING, "with its first entry");
    let every = [Outcome::Changed, Outcome::Unchanged, Outcome::Failed, Outcome::Skipped, Outcome::Removed];
    let results = every.map(|outcome| ResourceResult { outcome: outcome.into(), ..ResourceResult::default() }).into();
    let report = ApplyReported { results, complete: true, ..ApplyReported::default() };
    ledger.append(None, vec![Body::ApplyReported(report); 300]).unwrap();
    let rotations = || {
        let entries = ledger.read_after(0, u32::MAX).unwrap();
        let rotated =
            entries.iter().filter(|entry| matches!(entry.event().unwrap().body, Some(Body::LedgerRotated(_))));
        (rotated.count(), ledger.head().number)
    };
    assert_eq!(names(at.path()).len(), 2, "the control");
    assert!(ledger.lock().size().unwrap() > least.file, "the control");
    settle_all(&ledger);
    let (count, head) = rotations();
    for _ in 0..20 {
        settle_all(&ledger);
    }
    assert_eq!(rotations(), (count, head), "a receipt brings on nothing");
    let before = ledger.head().number;
    for _ in 0..4 {
        live(&ledger, 1);
        settle_all(&ledger);
    }
    assert_eq!(ledger.head().number, before + 8, "nor do entries that are less than a checkpoint");
    live(&ledger, 40);
    assert!(rotations().0 > count, "in the end it is full");
    drop(ledger);
    let again = open(at.path(), least).unwrap();
    settle_all(&again);
    let head = again.head();
    for _ in 0..5 {
        settle_all(&again);
    }
    assert_eq!(again.head(), head, "opened again it is the same");
}

#[test]
fn only_files_receipted_to_their_end_are_dropped_oldest_first_above_the_budget() {
    let at = tempfile::tempdir().unwrap();
    let ledger = open(at.path(), SMALL).unwrap();
    live(&ledger, 60);
    let before = names(at.path());
    assert!(before.len() > 4, "{before:?}");
    let second: u64 = before[1]["ledger-".len()..][..20].parse().unwrap();
    // `ledger.db` sorts behind the others.
    assert_eq!(before.last().unwrap(), "ledger.db");
    let first: u64 = before[0]["ledger-".len()..][..20].parse().unwrap();
    let entry = |number: u64| ledger.read_after(number - 1, 1).unwrap().pop().unwrap();
    assert!(ledger.settle(first - 2, entry(first - 2).hash).unwrap());
    assert_eq!(names(at.path()), before, "the last entry of the oldest is not receipted");
    assert!(ledger.settle(second - 2, entry(second - 2).hash).unwrap());
    let left = names(at.path());
    assert_eq!(left.len(), before.len() - 1, "one file is receipted to its end: {left:?}");
    assert!(!left.contains(&"ledger.db".to_owned()));
    let dropped = ledger.read_after(ledger.head().number - 1, 1).unwrap()[0].event().unwrap();
    let Some(Body::LedgerDropped(dropped)) = dropped.body else { panic!("{dropped:?}") };
    assert_eq!((dropped.first, dropped.last), (1, first - 1));
    assert!(dropped.size >= SMALL.file);
    assert_eq!(ledger.read_after(0, 1).unwrap()[0].number, first);

    settle_all(&ledger);
    let size: u64 = names(at.path()).iter().map(|n| at.path().join("ledger").join(n).metadata().unwrap().len()).sum();
    assert!(size <= SMALL.budget, "{size}");
    assert!(names(at.path()).len() > 1, "and no more than that: {:?}", names(at.path()));
    let (base, head) = (ledger.read_after(0, 1).unwrap()[0].number, ledger.head());
    settle_all(&ledger);
    assert!(!ledger.settle(base - 2, head.hash).unwrap(), "an entry that was dropped");
    drop(ledger);
    let again = open(at.path(), SMALL).unwrap();
    assert_eq!((again.head(), again.settled().unwrap()), (head, head.number));
    let verified = Reader::open(at.path()).unwrap().unwrap().verify().unwrap();
    assert_eq!((verified.first, verified.number), (base, head.number));
}

#[test]
fn last_entry_that_was_dropped_can_be_receipted_still() {
    let at = tempfile::tempdir().unwrap();
    let ledger = open(at.path(), SMALL).unwrap();
    live(&ledger, 60);
    let hashes: Vec<_> = ledger.read_after(0, u32::MAX).unwrap().iter().map(|entry| entry.hash).collect();
    settle_all(&ledger);
    let base = ledger.read_after(0, 1).unwrap()[0].number - 1;
    let hash = hashes[usize::try_from(base).unwrap() - 1];
    assert!(!ledger.settle(base, hashes[0]).unwrap());
    assert!(ledger.settle(base, hash).unwrap(), "the collector lost what is kept here");
    assert_eq!(ledger.settled().unwrap(), base);
}

#[test]
fn replay_of_what_is_kept_gives_what_was_folded_before_the_drop() {
    let at = tempfile::tempdir().unwrap();
    let ledger = open(at.path(), SMALL).unwrap();
    live(&ledger, 60);
    let reader = || Reader::open(at.path()).unwrap().unwrap();
    let fold = |name: &str| {
        let mut projections = Projections::open(&at.path().join(name)).unwrap();
        projections.catch_up(&reader()).unwrap();
        projections
    };
    fold("piecemeal.db");
    settle_all(&ledger);
    let (state, head) = (ledger.state(), ledger.head());
    assert!(state.dropped > 0, "the control");
    let (piecemeal, anew) = (fold("piecemeal.db"), fold("anew.db"));
    assert_eq!(anew.status().unwrap(), piecemeal.status().unwrap());
    assert_eq!(anew.applies().unwrap(), piecemeal.applies().unwrap());
    assert_eq!(anew.digest().unwrap(), piecemeal.digest().unwrap());
    assert_eq!(status_at(&reader(), head.number).unwrap(), *state.status);
    drop(ledger);
    assert_eq!(open(at.path(), SMALL).unwrap().state(), state, "folded from the checkpoint that is kept");
    assert_eq!(reader().verify().unwrap().state, state);
}

#[test]
fn ledger_of_an_earlier_build_opens_and_goes_on() {
    let at = tempfile::tempdir().unwrap();
    let ledger = open(at.path(), ENDLESS).unwrap();
    live(&ledger, 40);
    let head = ledger.head();
    drop(ledger);
    let connection = Connection::open(at.path().join("ledger/ledger.db")).unwrap();
    connection.execute_batch("DROP TABLE checkpoint; PRAGMA user_version = 1;").unwrap();
    drop(connection);
    let reader = Reader::open(at.path()).unwrap().unwrap();
    assert_eq!((reader.verify().unwrap().number, reader.base().unwrap().0), (head.number, 0));
    drop(reader);
    let ledger = open(at.path(), SMALL).unwrap();
    assert_eq!(ledger.head(), head);
    live(&ledger, 1);
    assert_eq!(names(at.path()).len(), 2);
    assert_eq!(Reader::open(at.path()).unwrap().unwrap().verify().unwrap().number, ledger.head().number);
}

/// A clock that stands still until it is set.
#[derive(Default)]
struct Still(AtomicU64);

impl Clock for Still {
    fn wall_time(&self) -> u64 {
        0
    }
    fn monotonic_time(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
    fn boot_id(&self) -> String {
        "boot".into()
    }
}

#[test]
fn further_file_that_cannot_be_begun_is_tried_for_again_only_after_a_pause() {
    let at = tempfile::tempdir().unwrap();
    let clock = Arc::new(Still::default());
    let host = HostUid::parse(&"a".repeat(32)).unwrap();
    let mut ledger = Ledger::open(at.path(), &host, Arc::<Still>::clone(&clock)).unwrap().within(SMALL);
    ledger.append(None, vec![drift(1); 60]).unwrap();
    ledger.keep_within_limits().unwrap();
    ledger.append(None, vec![drift(1); 60]).unwrap();
    assert_eq!(names(at.path()).len(), 2, "the control");
    // In the place of every file that might be made.
    let places: Vec<_> =
        (100..200).map(|first| LedgerFile::beginning_with(&ledger.folder, first).unfinished()).collect();
    places.iter().for_each(|place| std::fs::create_dir(place).unwrap());
    let head = ledger.head();
    assert!(ledger.settle(head.number, head.hash).unwrap());
    assert!(ledger.keep_within_limits().is_err());
    assert_eq!(names(at.path()).len(), 1, "what is receipted makes room all the same");
    for now in [0, AGAIN / 2, AGAIN - 1] {
        clock.0.store(now, Ordering::Relaxed);
        ledger.append(None, vec![report()]).unwrap();
        ledger.keep_within_limits().unwrap();
    }
    clock.0.store(AGAIN, Ordering::Relaxed);
    assert!(ledger.keep_within_limits().is_err(), "tried again");
    places.iter().for_each(|place| std::fs::remove_dir(place).unwrap());
    ledger.keep_within_limits().unwrap();
    assert_eq!(names(at.path()).len(), 1, "not before the next minute is over");
    clock.0.store(2 * AGAIN, Ordering::Relaxed);
    ledger.keep_within_limits().unwrap();
    assert!(ledger.current.first > head.number, "a further file is begun");
}

/// What is wrong with a ledger of several files whose file at `place` something was done to.
fn damage(place: usize, what: impl FnOnce(&Path)) -> Damage {
    let at = tempfile::tempdir().unwrap();
    let ledger = open(at.path(), SMALL).unwrap();
    live(&ledger, 60);
    drop(ledger);
    let files = files::list(&at.path().join("ledger")).unwrap();
    what(&files[place].path);
    let read = Reader::open(at.path()).unwrap().unwrap().verify().unwrap_err();
    let VerifyError::Damaged(read) = read else { panic!("not damaged: {read}") };
    match open(at.path(), SMALL).map(|_| ()) {
        Err(OpenError::Damaged(found)) => assert_eq!(found, read),
        other => panic!("not damaged: {other:?}"),
    }
    read
}

#[test]
fn missing_file_is_damage_unless_the_ledger_says_it_was_dropped() {
    let removed = |path: &Path| std::fs::remove_file(path).unwrap();
    assert!(matches!(damage(0, removed), Damage::Missing { first: 1, .. }));
    let Damage::Missing { first, last } = damage(2, removed) else { panic!("a file in the middle") };
    assert!(first > 1 && last > first);
}

#[test]
fn altered_checkpoint_is_found() {
    let edit = |sql: &'static str| {
        move |path: &Path| {
            let connection = Connection::open(path).unwrap();
            connection.execute_batch(&format!("DROP TRIGGER checkpoint_is_never_changed; {sql}")).unwrap();
        }
    };
    for sql in [
        "UPDATE checkpoint SET number = number - 1",
        "UPDATE checkpoint SET hash = zeroblob(32)",
        "UPDATE checkpoint SET state = CAST(state || x'00' AS BLOB)",
    ] {
        assert!(matches!(damage(1, edit(sql)), Damage::Altered { .. }), "{sql}");
    }
    let gone = "DROP TRIGGER checkpoint_is_never_removed; DELETE FROM checkpoint";
    assert!(matches!(damage(1, edit(gone)), Damage::File { last_good, .. } if last_good > 1));
}

#[test]
fn checkpoint_can_be_neither_changed_nor_removed() {
    let at = tempfile::tempdir().unwrap();
    live(&open(at.path(), SMALL).unwrap(), 20);
    let second = files::list(&at.path().join("ledger")).unwrap().remove(1);
    let connection = Connection::open(&second.path).unwrap();
    let replace = "REPLACE INTO checkpoint SELECT * FROM checkpoint";
    for sql in ["UPDATE checkpoint SET number = 1", "DELETE FROM checkpoint", replace] {
        assert!(connection.execute(sql, []).is_err(), "{sql}");
    }
}

const LIFE: &str = "LEDGER_LIFE_IN";

/// In a process of its own: lives and is receipted by turns, until a fault strikes.
fn short_life(folder: &Path) {
    let ledger = open(folder, SMALL).unwrap();
    for _ in 0..60 {
        live(&ledger, 1);
        settle_all(&ledger);
    }
}

/// Runs [`short_life`] in `folder` with this fault, and says whether it was killed.
fn lives(folder: &Path, fault: &str) -> bool {
    use std::os::unix::process::ExitStatusExt as _;
    let this = "ledger::log::keeping::tests::kill_between_any_two_steps_leaves_a_ledger_that_opens_and_verifies";
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", this]).env(LIFE, folder).env("REPLICATOR_FAULT_POINT", fault);
    let output = command.output().unwrap();
    let killed = output.status.signal() == Some(9);
    assert!(killed || output.status.success(), "{fault}: {}", String::from_utf8_lossy(&output.stdout));
    killed
}

#[test]
fn kill_between_any_two_steps_leaves_a_ledger_that_opens_and_verifies() {
    if let Some(folder) = std::env::var_os(LIFE) {
        return short_life(&PathBuf::from(folder));
    }
    for effect in [Effect::LedgerMake, Effect::LedgerRotate, Effect::LedgerDrop] {
        for (side, act) in [("before", "kill"), ("after", "kill"), ("before", "error"), ("after", "error")] {
            let at = tempfile::tempdir().unwrap();
            drop(open(at.path(), SMALL).unwrap());
            for nth in 1..=2 {
                let fault = format!("{}.{side}#{nth}:{act}", effect.as_str());
                assert_eq!(lives(at.path(), &fault), act == "kill", "{fault}");
                let read = Reader::open(at.path()).unwrap().unwrap().verify().unwrap();
                let ledger = open(at.path(), SMALL).unwrap();
                assert_eq!((ledger.head().number, ledger.head().hash), (read.number, read.hash), "{fault}");
                live(&ledger, 30);
                settle_all(&ledger);
                let (state, first) = (ledger.state(), ledger.read_after(0, 1).unwrap()[0].number);
                assert_eq!(state.dropped + 1, first, "{fault}: what was told to be dropped is");
                drop(ledger);
                let verified = Reader::open(at.path()).unwrap().unwrap().verify().unwrap();
                assert_eq!((verified.first, &verified.state), (first, &state), "{fault}");
                let stray = std::fs::read_dir(at.path().join("ledger")).unwrap().map(|entry| entry.unwrap().path());
                let stray: Vec<_> = stray.filter(|path| path.to_string_lossy().contains(".new")).collect();
                assert!(stray.is_empty(), "{fault}: {stray:?}");
            }
        }
    }
}
