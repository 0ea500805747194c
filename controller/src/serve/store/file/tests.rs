use std::path::{Path, PathBuf};

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

/// Overwrites every page but the first.
fn spoil(path: &Path) {
    Connection::open(path).unwrap().execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    let mut bytes = std::fs::read(path).unwrap();
    bytes[4096..].fill(0x5a);
    std::fs::write(path, bytes).unwrap();
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
fn new_store_that_could_not_be_made_leaves_nothing_that_is_taken_for_one() {
    let (_folder, path) = at();
    private_folder(path.parent().unwrap()).unwrap();
    std::fs::create_dir(with(&path, ".begun")).unwrap();
    assert!(Store::open(&path).is_err());
    assert_eq!(number(&path), None, "it is made elsewhere");
    std::fs::remove_dir(with(&path, ".begun")).unwrap();
    // As one that was killed there leaves it.
    std::fs::write(with(&path, ".begun"), "").unwrap();
    let (store, mended) = Store::open_sound(&path, 7).unwrap();
    assert_eq!((mended, numbers(&store), put_aside_so_far(&path)), (None, Vec::new(), Vec::new()));
    assert_eq!(number(&with(&path, ".begun")), None);
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
        assert!(std::fs::read_to_string(aside.join("events.db")).unwrap().contains(&format!("no database, {count} ")));
        say(&store, 3);
        assert_eq!(numbers(&store), [1, 2, 3]);
    }
    let aside = std::fs::read_dir(folder.path().join("serve")).unwrap().flatten();
    assert_eq!(aside.filter(|entry| entry.file_name().to_string_lossy().contains("damaged")).count(), 2);
}

#[test]
fn page_that_was_overwritten_is_found_at_the_start_and_in_use() {
    let (_folder, path) = at();
    say(&Store::open(&path).unwrap(), 40);
    spoil(&path);
    let (store, mended) = Store::open_sound(&path, 7).unwrap();
    assert!(matches!(mended, Some(Mended::PutAside { .. })), "{mended:?}");
    say(&store, 40);
    assert_eq!(store.check(8).unwrap(), None, "the control: it is sound");
    spoil(&path);
    assert!(matches!(store.check(8).unwrap(), Some(Mended::PutAside { .. })));
    assert_eq!(numbers(&store), [0; 0]);
}

#[test]
fn store_that_was_removed_is_written_again_whole() {
    let (folder, path) = at();
    let (store, _) = Store::open_sound(&path, 7).unwrap();
    say(&store, 3);
    assert_eq!(store.look(8).unwrap(), None);
    std::fs::remove_dir_all(folder.path().join("serve")).unwrap();
    assert_eq!(store.look(8).unwrap(), Some(Mended::WrittenAgain));
    say(&store, 5);
    assert_eq!(store.look(8).unwrap(), None);
    drop(store);
    let store = Store::open(&path).unwrap();
    assert_eq!(numbers(&store), [1, 2, 3, 4, 5]);
    assert!(store.lock().connection.execute("DELETE FROM events", []).is_err(), "its guards are there again");
}

/// A store that holds `count` events is in use; another with two lies beside it.
fn one_in_use_and_another(count: u64) -> (tempfile::TempDir, PathBuf, Store, PathBuf) {
    let (folder, path) = at();
    say(&Store::open(&path).unwrap(), 2);
    let backup = folder.path().join("backup");
    std::fs::copy(&path, &backup).unwrap();
    let (store, _) = Store::open_sound(&path, 7).unwrap();
    say(&store, count);
    (folder, path, store, backup)
}

/// What is put aside, each folder with the files in it.
fn put_aside_so_far(path: &Path) -> Vec<(String, Vec<String>)> {
    let names = |folder: &Path| {
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
        let mut names: Vec<_> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    };
    let folder = path.parent().unwrap();
    let folders = names(folder).into_iter().filter(|name| folder.join(name).is_dir());
    folders.map(|name| (name.clone(), names(&folder.join(name)))).collect()
}

#[test]
fn store_that_was_put_in_its_place_is_used_from_then_on_without_the_log_of_the_one_before() {
    let (_folder, path, store, backup) = one_in_use_and_another(5);
    std::fs::rename(&backup, &path).unwrap();
    assert_eq!(store.look(8).unwrap(), Some(Mended::Replaced));
    assert_eq!(numbers(&store), [1, 2], "what lay beside the one before is not played into it");
    assert_eq!(put_aside_so_far(&path), [("events.db.left.0".to_owned(), vec!["events.db.new".to_owned()])]);
    let before = Store::read_only(&path.with_file_name("events.db.left.0/events.db.new")).unwrap();
    assert_eq!(numbers(&before), [1, 2, 3, 4, 5], "the one before is not lost");
    say(&store, 3);
    assert_eq!(store.look(8).unwrap(), None);
    assert_eq!(numbers(&Store::read_only(&path).unwrap()), [1, 2, 3]);
}

/// Copies the database with what lies beside it to where a process that was killed would have left it.
fn killed(path: &Path, folder: &Path) -> PathBuf {
    let left = folder.join("killed/events.db");
    private_folder(left.parent().unwrap()).unwrap();
    for end in ["", BESIDE[0], BESIDE[1]] {
        std::fs::copy(with(path, end), with(&left, end)).unwrap();
    }
    left
}

#[test]
fn backup_in_the_place_of_a_store_whose_process_was_killed_is_used_without_the_log_of_that_one() {
    let (folder, path, store, backup) = one_in_use_and_another(5);
    let left = killed(&path, folder.path());
    note::write(&left).unwrap();
    assert_eq!(numbers(&store), [1, 2, 3, 4, 5]);
    std::fs::rename(&backup, &left).unwrap();
    let (store, mended) = Store::open_sound(&left, 8).unwrap();
    assert_eq!((mended, numbers(&store)), (Some(Mended::Replaced), vec![1, 2]));
    let aside = ["events.db-shm".to_owned(), "events.db-wal".to_owned()].to_vec();
    assert_eq!(put_aside_so_far(&left), [("events.db.left.0".to_owned(), aside)]);
}

#[test]
fn log_of_a_store_whose_process_was_killed_is_played_into_it_wherever_both_are() {
    let (folder, path, _store, _) = one_in_use_and_another(5);
    for is_moved in [false, true] {
        let left = killed(&path, folder.path());
        if is_moved {
            // The note names the files both were copied from.
            std::fs::copy(note::path_of(&path), note::path_of(&left)).unwrap();
        } else {
            note::write(&left).unwrap();
        }
        let (store, mended) = Store::open_sound(&left, 8).unwrap();
        assert_eq!((mended, numbers(&store)), (None, vec![1, 2, 3, 4, 5]));
        drop(store);
    }
}

#[test]
fn damaged_file_in_the_place_of_a_store_in_use_is_put_aside_and_the_store_is_written_again() {
    for damaged in [String::new(), "this is no database".repeat(400)] {
        let (_folder, path, store, backup) = one_in_use_and_another(5);
        std::fs::write(&backup, &damaged).unwrap();
        std::fs::rename(&backup, &path).unwrap();
        let mended = store.look(8).unwrap();
        let Some(Mended::PutBack { aside, .. }) = mended else { panic!("{mended:?}") };
        assert_eq!(std::fs::read_to_string(aside.join("events.db")).unwrap(), damaged);
        assert_eq!(store.look(8).unwrap(), None);
        assert_eq!(numbers(&store), [1, 2, 3, 4, 5]);
        say(&store, 6);
        assert_eq!(numbers(&Store::read_only(&path).unwrap()), [1, 2, 3, 4, 5, 6]);
    }
}

#[test]
fn damaged_file_in_the_place_of_a_damaged_store_begins_a_new_one() {
    let (_folder, path, store, backup) = one_in_use_and_another(40);
    spoil(&path);
    std::fs::write(&backup, "this is no database".repeat(400)).unwrap();
    std::fs::rename(&backup, &path).unwrap();
    assert!(matches!(store.look(8).unwrap(), Some(Mended::PutAside { .. })));
    assert_eq!((store.look(8).unwrap(), numbers(&store)), (None, Vec::new()));
}

#[test]
fn copy_that_was_not_put_in_its_place_goes_out_of_the_way_of_a_sound_store_and_replaces_a_damaged_one() {
    for is_damaged in [false, true] {
        let (_folder, path) = at();
        say(&Store::open(&path).unwrap(), 3);
        std::fs::copy(&path, copy_of(&path)).unwrap();
        if is_damaged {
            std::fs::write(&path, "this is no database".repeat(400)).unwrap();
        } else {
            say(&Store::open(&path).unwrap(), 5);
        }
        let (store, mended) = Store::open_sound(&path, 9).unwrap();
        assert_eq!(matches!(mended, Some(Mended::PutBack { .. })), is_damaged, "{mended:?}");
        assert_eq!(numbers(&store).len(), if is_damaged { 3 } else { 5 });
        assert_eq!(number(&copy_of(&path)), None);
        if !is_damaged {
            let left = vec!["events.db.new".to_owned()];
            assert_eq!(put_aside_so_far(&path), [("events.db.left.0".to_owned(), left)]);
        }
    }
}

#[test]
fn event_that_was_altered_is_damage_that_is_mended() {
    let (_folder, path) = at();
    let (store, _) = Store::open_sound(&path, 7).unwrap();
    say(&store, 3);
    let other = Connection::open(&path).unwrap();
    other.execute_batch("DROP TRIGGER events_stay; UPDATE events SET body = x'ff' WHERE number = 2").unwrap();
    let found = store.events_after(0, None, 9).unwrap_err();
    assert!(matches!(found, StoreError::Damaged { .. }), "{found}");
    assert!(matches!(store.check(8).unwrap(), Some(Mended::PutAside { .. })));
    assert_eq!(numbers(&store), [0; 0]);
}

#[test]
fn sound_file_in_the_place_of_a_damaged_one_is_never_put_aside() {
    let (_folder, path, store, backup) = one_in_use_and_another(40);
    spoil(&path);
    std::fs::rename(&backup, &path).unwrap();
    assert_eq!(store.check(8).unwrap(), Some(Mended::Replaced));
    assert_eq!(numbers(&store), [1, 2]);
}

#[test]
fn removed_store_that_cannot_be_read_any_more_is_begun_anew() {
    let (_folder, path) = at();
    let (store, _) = Store::open_sound(&path, 7).unwrap();
    say(&store, 40);
    spoil(&path);
    std::fs::remove_file(&path).unwrap();
    let mended = store.look(8).unwrap();
    assert!(matches!(mended, Some(Mended::Lost { .. })), "{mended:?}");
    say(&store, 3);
    assert_eq!((store.look(8).unwrap(), numbers(&store)), (None, vec![1, 2, 3]));
}

#[test]
fn database_that_is_gone_or_empty_is_told_and_its_log_is_neither_played_into_a_new_one_nor_lost() {
    for is_empty in [false, true] {
        let (_folder, path) = at();
        let store = Store::open(&path).unwrap();
        say(&store, 3);
        // As a cut would leave it behind the first thing that putting it aside does.
        std::fs::rename(&path, path.with_file_name("gone")).unwrap();
        if is_empty {
            std::fs::write(&path, "").unwrap();
        }
        let log = std::fs::read(path.with_file_name("events.db-wal")).unwrap();
        let (new, mended) = Store::open_sound(&path, 8).unwrap();
        assert_eq!(numbers(&new), [0; 0]);
        let told = mended.unwrap().to_string();
        let folder = path.with_file_name(if is_empty { "events.db.damaged-8.0" } else { "events.db.left.0" });
        assert!(told.contains(&*folder.to_string_lossy()) && told.contains("a new store has begun"), "{told}");
        assert_eq!(std::fs::read(folder.join("events.db-wal")).unwrap(), log);
    }
}

#[test]
fn copy_that_was_not_put_in_its_place_is_taken_up() {
    let (_folder, path) = at();
    say(&Store::open(&path).unwrap(), 3);
    std::fs::rename(&path, copy_of(&path)).unwrap();
    let (store, mended) = Store::open_sound(&path, 9).unwrap();
    assert_eq!((mended, numbers(&store)), (Some(Mended::WrittenAgain), vec![1, 2, 3]));
}

#[test]
fn copy_that_is_not_whole_is_in_nobodys_way() {
    for half in [String::new(), "half a copy ".repeat(400)] {
        let (_folder, path) = at();
        let (store, _) = Store::open_sound(&path, 7).unwrap();
        say(&store, 3);
        std::fs::remove_file(&path).unwrap();
        std::fs::write(copy_of(&path), &half).unwrap();
        assert_eq!(store.look(8).unwrap(), Some(Mended::WrittenAgain));
        assert_eq!(numbers(&store), [1, 2, 3]);
        drop(store);

        std::fs::remove_file(&path).unwrap();
        std::fs::write(copy_of(&path), &half).unwrap();
        // What SQLite keeps beside a copy while it writes it.
        std::fs::write(with(&path, ".new-journal"), "half a journal").unwrap();
        let (store, mended) = Store::open_sound(&path, 9).unwrap();
        assert!(matches!(mended, Some(Mended::Lost { .. })), "{mended:?}");
        assert_eq!(numbers(&store), [0; 0]);
        let left = ["events.db.new".to_owned(), "events.db.new-journal".to_owned()].to_vec();
        assert_eq!(put_aside_so_far(&path), [("events.db.left.0".to_owned(), left)]);
    }
}
