use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use prost::Message as _;
use replicator_protocol::wire::event::{AgentStarted, DriftFound};

use super::super::{DATABASE, Damage, OpenError, Reader, VerifyError};
use super::*;

/// The file that begins with entry 1.
const FILE: &str = "ledger.db";

/// A clock that ticks once for each question.
#[derive(Default)]
struct Ticks(AtomicU64);

impl Clock for Ticks {
    fn wall_time(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }
    fn monotonic_time(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
    fn boot_id(&self) -> String {
        "boot".into()
    }
}

fn uid(digit: char) -> HostUid {
    HostUid::parse(&digit.to_string().repeat(32)).unwrap()
}

fn open(folder: &Path) -> Result<Ledger, OpenError> {
    Ledger::open(folder, &uid('a'), Arc::new(Ticks::default()))
}

fn drift(what: &str) -> Body {
    Body::DriftFound(DriftFound { resource: "acme.web".into(), what: what.into() })
}

/// A ledger with its first event and five more, closed again.
fn closed_with_six() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut ledger = open(folder.path()).unwrap();
    for number in 0..5 {
        ledger.append(None, vec![drift(&number.to_string())]).unwrap();
    }
    folder
}

/// Changes the file behind the ledger's back, past its triggers.
fn tamper(folder: &Path, sql: &str) {
    let connection = Connection::open(folder.join(DATABASE).join(FILE)).unwrap();
    let triggers = "DROP TRIGGER events_are_never_changed; DROP TRIGGER events_are_never_removed;";
    connection.execute_batch(&format!("{triggers} {sql}")).unwrap();
}

fn damage(folder: &Path) -> Damage {
    match open(folder).map(|_| ()).unwrap_err() {
        OpenError::Damaged(damage) => damage,
        other @ (OpenError::Locked(_)
        | OpenError::OtherHost { .. }
        | OpenError::Newer { .. }
        | OpenError::File { .. }
        | OpenError::First(_)
        | OpenError::Store(_)) => panic!("not damaged: {other}"),
    }
}

#[test]
fn entries_are_numbered_from_one_and_chained() {
    let folder = closed_with_six();
    let ledger = open(folder.path()).unwrap();
    let entries = ledger.read_after(0, 100).unwrap();
    assert_eq!(entries.iter().map(|entry| entry.number).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6]);
    let events: Vec<_> = entries.iter().map(|entry| Event::decode(&entry.payload[..]).unwrap()).collect();
    assert_eq!(events[0].previous, vec![0; 32]);
    for (entry, next) in entries.iter().zip(&events[1..]) {
        assert_eq!(next.previous[..], entry.hash.0);
    }
    assert!(matches!(events[0].body, Some(Body::ChainStarted(_))));
    assert_eq!(ledger.head().hash, entries[5].hash);
    assert_eq!(ledger.read_after(2, 2).unwrap(), entries[2..4]);
}

#[test]
fn batch_is_recorded_whole_or_not_at_all() {
    let folder = closed_with_six();
    let mut ledger = open(folder.path()).unwrap();
    let before = ledger.head();
    // A number that is taken makes the second insert of the batch fail.
    let squatter = "INSERT INTO events VALUES (8, 0, 30, x'', zeroblob(32), zeroblob(32))";
    ledger.connection().unwrap().execute(squatter, []).unwrap();
    ledger.append(None, vec![drift("one"), drift("two")]).unwrap_err();
    assert_eq!(ledger.head(), before);
    assert_eq!(ledger.read_after(6, 100).unwrap().iter().map(|entry| entry.number).collect::<Vec<_>>(), [8]);
}

#[test]
fn events_can_be_neither_changed_nor_removed() {
    let folder = closed_with_six();
    let connection = Connection::open(folder.path().join(DATABASE).join(FILE)).unwrap();
    for sql in ["UPDATE events SET payload = x'00'", "DELETE FROM events", "REPLACE INTO events SELECT * FROM events"] {
        assert!(connection.execute(sql, []).is_err(), "{sql}");
    }
    drop(connection);
    assert_eq!(open(folder.path()).unwrap().head().number, 6);
}

#[test]
fn second_writer_is_refused_until_the_first_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let first = open(folder.path()).unwrap();
    assert!(matches!(open(folder.path()), Err(OpenError::Locked(_))));
    drop(first);
    assert!(open(folder.path()).is_ok());
}

#[test]
fn ledger_of_another_host_is_refused() {
    let folder = closed_with_six();
    let other = Ledger::open(folder.path(), &uid('b'), Arc::new(Ticks::default()));
    assert!(matches!(other, Err(OpenError::OtherHost { .. })));
}

#[test]
fn every_changed_byte_of_an_entry_is_found() {
    let length: usize = {
        let folder = closed_with_six();
        let ledger = open(folder.path()).unwrap();
        ledger.read_after(2, 1).unwrap()[0].payload.len()
    };
    for position in 1..=length {
        let folder = closed_with_six();
        let flip = format!(
            "UPDATE events SET payload = CAST(substr(payload, 1, {position} - 1)
                || (CASE WHEN substr(payload, {position}, 1) = x'61' THEN x'62' ELSE x'61' END)
                || substr(payload, {position} + 1) AS BLOB) WHERE number = 3"
        );
        tamper(folder.path(), &flip);
        assert!(matches!(damage(folder.path()), Damage::Altered { number: 3, .. }), "byte {position}");
    }
}

#[test]
fn changed_columns_are_found() {
    let other = ["wall_time = 99", "kind = 21", "previous = zeroblob(32)", "hash = zeroblob(32)"];
    // No event has these, and no number of this program holds them.
    let none = ["wall_time = -1", "kind = -1", "kind = 1 << 40"];
    for column in other.into_iter().chain(none) {
        let folder = closed_with_six();
        tamper(folder.path(), &format!("UPDATE events SET {column} WHERE number = 4"));
        let read = Reader::open(folder.path()).unwrap().unwrap().verify().unwrap_err();
        assert!(matches!(read, VerifyError::Damaged(Damage::Altered { number: 4, .. })), "{column}: {read}");
        assert!(matches!(damage(folder.path()), Damage::Altered { number: 4, .. }), "{column}");
    }
}

#[test]
fn entry_forged_with_a_fitting_hash_does_not_fit_the_next() {
    let folder = closed_with_six();
    let forged = {
        let ledger = open(folder.path()).unwrap();
        let mut event = Event::decode(&ledger.read_after(2, 1).unwrap()[0].payload[..]).unwrap();
        event.body = Some(drift("forged"));
        event.encode_to_vec()
    };
    let (payload, hash) = (hex::encode(&forged), Digest::of(&forged));
    tamper(folder.path(), &format!("UPDATE events SET payload = x'{payload}', hash = x'{hash}' WHERE number = 3"));
    assert!(matches!(damage(folder.path()), Damage::Altered { number: 4, .. }));
}

#[test]
fn missing_entries_are_named_exactly() {
    let folder = closed_with_six();
    tamper(folder.path(), "DELETE FROM events WHERE number IN (3, 4)");
    assert_eq!(damage(folder.path()), Damage::Missing { first: 3, last: 4 });
    let folder = closed_with_six();
    tamper(folder.path(), "DELETE FROM events WHERE number = 1");
    assert_eq!(damage(folder.path()), Damage::Missing { first: 1, last: 1 });
}

/// Any change to what a file is made of, past all checks.
fn forge(folder: &Path, sql: &str) {
    let connection = Connection::open(folder.join(DATABASE).join(FILE)).unwrap();
    connection.execute_batch(&format!("PRAGMA ignore_check_constraints = on; {sql}")).unwrap();
}

#[test]
fn newer_format_is_refused_and_left_alone() {
    let folder = closed_with_six();
    forge(folder.path(), "CREATE TABLE newer (id INTEGER); PRAGMA user_version = 99");
    assert!(matches!(open(folder.path()), Err(OpenError::Newer { found: 99, known: 2 })));
}

#[test]
fn format_that_is_not_that_of_the_tables_is_damage() {
    for number in [-1, 0, 1, 3, 99] {
        let folder = closed_with_six();
        forge(folder.path(), &format!("PRAGMA user_version = {number}"));
        assert!(matches!(damage(folder.path()), Damage::File { .. }), "{number}");
    }
    let folder = closed_with_six();
    forge(folder.path(), "DROP TABLE settled");
    assert!(matches!(damage(folder.path()), Damage::File { .. }));
    let read = Reader::open(folder.path()).unwrap().unwrap().verify();
    assert!(matches!(read, Err(VerifyError::Damaged(Damage::File { .. }))));
}

#[test]
fn row_of_receipts_that_no_receipt_wrote_is_damage() {
    for number in [-1, 7] {
        let folder = closed_with_six();
        forge(folder.path(), &format!("INSERT INTO settled VALUES (zeroblob(16), {number})"));
        assert!(matches!(damage(folder.path()), Damage::File { .. }), "{number}");
    }
}

/// Whatever bit of the file is not what was written: the ledger is what it was, or damaged. A start that is refused
/// would be refused for ever.
#[test]
fn altered_bit_of_the_file_is_damage_or_says_nothing() {
    let folder = closed_with_six();
    let path = folder.path().join(DATABASE).join(FILE);
    let written = std::fs::read(&path).unwrap();
    let head = open(folder.path()).unwrap().head();
    // The header, and what of the rest the steps meet; 17255 lies in the text of a table.
    for bit in (0..100 * 8).step_by(3).chain([17255]).chain((100 * 8..written.len() * 8).step_by(1499)) {
        let mut altered = written.clone();
        altered[bit / 8] ^= 1 << (bit % 8);
        std::fs::write(&path, altered).unwrap();
        match open(folder.path()) {
            Ok(ledger) => assert_eq!(ledger.head(), head, "bit {bit}"),
            Err(OpenError::Damaged(_)) => {}
            Err(error) => panic!("bit {bit}: {error:?}"),
        }
    }
}

#[test]
fn receipt_settles_only_what_it_knows_and_may_go_back() {
    let folder = closed_with_six();
    let mut ledger = open(folder.path()).unwrap();
    let hash = |ledger: &Ledger, number: u64| ledger.read_after(number - 1, 1).unwrap()[0].hash;
    assert_eq!(ledger.settled().unwrap(), 0);
    let (fifth, second) = (hash(&ledger, 5), hash(&ledger, 2));
    assert!(ledger.settle(5, fifth).unwrap());
    assert!(!ledger.settle(6, fifth).unwrap(), "a hash of another entry");
    assert!(!ledger.settle(7, fifth).unwrap(), "a number that is not there");
    assert_eq!(ledger.settled().unwrap(), 5);
    assert!(ledger.settle(2, second).unwrap(), "the collector was restored");
    drop(ledger);
    assert_eq!(open(folder.path()).unwrap().settled().unwrap(), 2);
    let mut ledger = open(folder.path()).unwrap();
    assert!(!ledger.settle(0, second).unwrap());
    assert!(ledger.settle(0, Digest([0; 32])).unwrap(), "the collector lost everything");
    assert_eq!(ledger.settled().unwrap(), 0);
}

#[test]
fn events_carry_their_declaration_and_their_times() {
    let folder = tempfile::tempdir().unwrap();
    let mut ledger = open(folder.path()).unwrap();
    let declaration = DeclarationRef { epoch: 1, sequence: 7, hash: Bytes::from_static(&[3; 32]) };
    let started = Body::AgentStarted(AgentStarted { agent_version: "0".into(), supervisor: "detached".into() });
    ledger.append(Some(&declaration), vec![started]).unwrap();
    let event = Event::decode(&ledger.read_after(1, 1).unwrap()[0].payload[..]).unwrap();
    assert_eq!((event.declaration, &*event.boot_id), (Some(declaration), "boot"));
}
