use std::path::PathBuf;

use super::super::super::chain::tests::{batch, history, host};
use super::super::Incoming;
use super::*;

fn at() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("serve/events.db");
    (folder, path)
}

fn say(store: &Store, count: u64) {
    let events = history(1, count, 0);
    let incoming = Incoming { host: host(), batch: Ok(batch(1, &events)), envelope: events.concat().into() };
    assert_eq!(store.append(&[incoming], 5).unwrap()[0].fault, None);
}

fn numbers(store: &Store) -> Vec<u64> {
    store.events_after(0, None, 100).unwrap().iter().map(|stored| stored.event.number).collect()
}

#[test]
fn store_of_an_earlier_build_is_read_as_it_is_and_migrated_when_it_is_opened() {
    let (_folder, path) = at();
    private_folder(path.parent().unwrap()).unwrap();
    Connection::open(&path).unwrap().execute_batch(SCHEMA).unwrap();
    let read = Store::read_only(&path).unwrap();
    assert_eq!((read.fills().unwrap(), read.heads().unwrap().len()), (Vec::new(), 0));
    let store = Store::open(&path).unwrap();
    let fill = crate::publisher::streams::Fill { stream: "EVT".into(), bytes: 1, room: 2 };
    store.keep_fills(std::slice::from_ref(&fill), 5).unwrap();
    assert_eq!(Store::read_only(&path).unwrap().fills().unwrap(), [(5, fill)]);
}

#[test]
fn damaged_store_is_put_aside_and_never_written_over() {
    let (folder, path) = at();
    for count in 1..=2 {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, format!("this is no database, {count} {}", "x".repeat(4096))).unwrap();
        assert!(matches!(Store::read_only(&path), Err(StoreError::Damaged { .. })));
        let (store, mended) = Store::open_sound(&path, 7).unwrap();
        let Some(Mended::PutAside { aside, .. }) = mended else { panic!("{mended:?}") };
        assert!(std::fs::read_to_string(aside).unwrap().contains(&format!("no database, {count} ")));
        say(&store, 3);
        assert_eq!(numbers(&store), [1, 2, 3]);
    }
    let aside = std::fs::read_dir(folder.path().join("serve")).unwrap().flatten();
    assert_eq!(aside.filter(|entry| entry.file_name().to_string_lossy().contains("damaged")).count(), 2);
}

#[test]
fn page_that_was_overwritten_is_found_at_the_start_and_in_use() {
    let (_folder, path) = at();
    let spoil = || {
        Connection::open(&path).unwrap().execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[4096..].fill(0x5a);
        std::fs::write(&path, bytes).unwrap();
    };
    say(&Store::open(&path).unwrap(), 40);
    spoil();
    let (store, mended) = Store::open_sound(&path, 7).unwrap();
    assert!(matches!(mended, Some(Mended::PutAside { .. })), "{mended:?}");
    say(&store, 40);
    assert_eq!(store.check(8).unwrap(), None, "the control: it is sound");
    spoil();
    assert!(matches!(store.check(8).unwrap(), Some(Mended::PutAside { .. })));
    assert_eq!(numbers(&store), [0; 0]);
}

#[test]
fn store_that_was_removed_is_written_again_whole() {
    let (folder, path) = at();
    let (store, _) = Store::open_sound(&path, 7).unwrap();
    say(&store, 3);
    assert_eq!(store.look().unwrap(), None);
    std::fs::remove_dir_all(folder.path().join("serve")).unwrap();
    assert_eq!(store.look().unwrap(), Some(Mended::WrittenAgain));
    say(&store, 5);
    assert_eq!(store.look().unwrap(), None);
    drop(store);
    let store = Store::open(&path).unwrap();
    assert_eq!(numbers(&store), [1, 2, 3, 4, 5]);
    assert!(store.lock().connection.execute("DELETE FROM events", []).is_err(), "its guards are there again");
}

#[test]
fn store_that_was_put_in_its_place_is_used_from_then_on() {
    let (folder, path) = at();
    say(&Store::open(&path).unwrap(), 2);
    let backup = folder.path().join("backup");
    std::fs::copy(&path, &backup).unwrap();
    let (store, _) = Store::open_sound(&path, 7).unwrap();
    say(&store, 5);
    std::fs::rename(&backup, &path).unwrap();
    for beside in ["events.db-wal", "events.db-shm"] {
        std::fs::remove_file(path.with_file_name(beside)).unwrap();
    }
    assert_eq!(store.look().unwrap(), Some(Mended::Replaced));
    assert_eq!(numbers(&store), [1, 2]);
    say(&store, 3);
    assert_eq!(numbers(&Store::read_only(&path).unwrap()), [1, 2, 3]);
}
