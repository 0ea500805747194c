use super::super::chain::tests::{batch, history, host};
use super::*;

fn incoming(chain: u8, events: &[Bytes]) -> Incoming {
    let batch = batch(chain, events);
    let envelope = events.concat().into();
    Incoming { host: host(), batch: Ok(batch), envelope }
}

fn store(at: &tempfile::TempDir) -> Store {
    Store::open(&at.path().join("serve/events.db")).unwrap()
}

fn one(store: &Store, incoming: Incoming) -> Kept {
    store.append(&[incoming], 5).unwrap().remove(0)
}

#[test]
fn events_are_stored_once_in_order_and_survive_reopening() {
    let at = tempfile::tempdir().unwrap();
    let history = history(1, 6, 0);
    let kept = one(&store(&at), incoming(1, &history[..4]));
    assert_eq!((kept.new, kept.head.unwrap().number), (4, 4));
    let store = store(&at);
    let kept = one(&store, incoming(1, &history[2..]));
    assert_eq!((kept.new, kept.head.unwrap().number), (2, 6));
    assert_eq!(one(&store, incoming(1, &history)).new, 0);
    let read = store.events_after(0, Some(&host()), 100).unwrap();
    assert_eq!(read.iter().map(|stored| stored.event.number).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6]);
    assert_eq!(store.events_after(read[3].position, None, 1).unwrap()[0].event.number, 5);
    assert_eq!(store.heads().unwrap()[0].1.hash, Digest::of(&history[5]));
}

#[test]
fn gap_stores_nothing_and_says_what_is_there() {
    let at = tempfile::tempdir().unwrap();
    let (store, history) = (store(&at), history(1, 6, 0));
    one(&store, incoming(1, &history[..2]));
    let kept = one(&store, incoming(1, &history[3..]));
    assert_eq!((kept.new, kept.head.unwrap().number), (0, 2));
    assert_eq!(kept.fault, Some(Fault::Gap { have: 2, got: 4 }));
    assert_eq!(store.faults().unwrap()[0].2, "chain-gap");
}

#[test]
fn second_history_under_one_key_is_kept_as_evidence_and_not_stored() {
    let at = tempfile::tempdir().unwrap();
    let store = store(&at);
    one(&store, incoming(1, &history(1, 4, 0)));
    let other = history(1, 5, 7);
    for _ in 0..2 {
        assert_eq!(one(&store, incoming(1, &other)).fault, Some(Fault::Fork { number: 2 }));
    }
    assert_eq!(store.faults().unwrap().len(), 1);
    assert_eq!(store.heads().unwrap()[0].1.number, 4);
    assert_eq!(one(&store, incoming(2, &history(2, 2, 0))).new, 2, "a new chain starts at 1");
}

#[test]
fn stored_events_can_be_neither_changed_nor_deleted() {
    let at = tempfile::tempdir().unwrap();
    let store = store(&at);
    one(&store, incoming(1, &history(1, 2, 0)));
    let opened = store.lock();
    let connection = &opened.connection;
    assert!(connection.execute("DELETE FROM events", []).is_err());
    assert!(connection.execute("UPDATE events SET number = 9", []).is_err());
    assert!(connection.execute("DELETE FROM batches", []).is_err());
    assert!(connection.execute("INSERT OR REPLACE INTO events SELECT * FROM events", []).is_err());
    assert!(connection.execute("INSERT OR REPLACE INTO batches SELECT * FROM batches", []).is_err());
    let again = "INSERT OR REPLACE INTO events (host, chain, number, hash, body, batch)
        SELECT host, chain, number, hash, x'00', batch FROM events";
    assert!(connection.execute(again, []).is_err());
}

#[test]
fn reader_without_a_store_is_told_so() {
    let at = tempfile::tempdir().unwrap();
    assert!(matches!(Store::read_only(&at.path().join("events.db")), Err(StoreError::Absent { .. })));
}
