//! The files a ledger is made of: their names, their order, and what a kill may have left of them.
//!
//! A file never changes its name: what SQLite keeps beside it (`-wal`) is found by that name. See
//! `docs/decisions/0007-ledger-files.md`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};

use super::error::StoreError;

/// The folder of the ledger's files, inside the agent's state folder. They stand in a folder of their own so that
/// one rename sets all of them aside: see `docs/decisions/0003-ledger-in-a-folder.md`.
pub const DATABASE: &str = "ledger";

/// The file that begins with entry 1: all there is of a ledger that was never rotated.
const FIRST: &str = "ledger.db";
/// Stands behind the name of a file until it is whole.
const UNFINISHED: &str = ".new";
/// Stands behind the name of a file that was written again, whole and not yet in its place.
const AGAIN: &str = ".again";
/// What SQLite keeps beside a database.
const SIDE_FILES: [&str; 3] = ["-wal", "-shm", "-journal"];

/// One file of a ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LedgerFile {
    /// The number of its first entry. Its last is the one before the next file's first.
    pub(super) first: u64,
    /// Where it is.
    pub(super) path: PathBuf,
}

impl LedgerFile {
    /// The file in `folder` that begins with entry `first`, there or not.
    pub(super) fn beginning_with(folder: &Path, first: u64) -> Self {
        let name = if first <= 1 { FIRST.to_owned() } else { format!("ledger-{first:020}.db") };
        Self { first, path: folder.join(name) }
    }

    /// Where it is made, before it gets its name.
    pub(super) fn unfinished(&self) -> PathBuf {
        beside(&self.path, UNFINISHED)
    }

    /// Where it waits for its place after it was written again.
    pub(super) fn again(&self) -> PathBuf {
        beside(&self.path, AGAIN)
    }

    /// Itself, and what SQLite may keep beside it, there or not.
    pub(super) fn with_side_files(&self) -> Vec<PathBuf> {
        let beside = SIDE_FILES.iter().map(|suffix| beside(&self.path, suffix));
        std::iter::once(self.path.clone()).chain(beside).collect()
    }

    /// Opens it for writing; it has to be there.
    pub(super) fn open(&self) -> Result<Connection, StoreError> {
        self.open_with(OpenFlags::SQLITE_OPEN_READ_WRITE)
    }

    /// Opens it for reading; it has to be there.
    pub(super) fn open_to_read(&self) -> Result<Connection, StoreError> {
        self.open_with(OpenFlags::SQLITE_OPEN_READ_ONLY)
    }

    fn open_with(&self, access: OpenFlags) -> Result<Connection, StoreError> {
        let opened = Connection::open_with_flags(&self.path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX);
        opened.map_err(|source| StoreError::new(&self.path, source))
    }

    /// Bytes on disk.
    pub(super) fn size(&self) -> io::Result<u64> {
        Ok(fs::metadata(&self.path)?.len())
    }

    /// Removes it. The database goes first: without what stands beside it, it could look sound and be shorter.
    pub(super) fn remove(&self) -> io::Result<()> {
        remove(&self.path)
    }
}

/// Removes a database with what SQLite keeps beside it, if it is there.
pub(super) fn remove(database: &Path) -> io::Result<()> {
    remove_one(database)?;
    SIDE_FILES.iter().try_for_each(|suffix| remove_one(&beside(database, suffix)))
}

/// The files in `folder`, oldest first; none where there is no such folder.
pub(super) fn list(folder: &Path) -> io::Result<Vec<LedgerFile>> {
    let mut files: Vec<_> = names(folder)?
        .iter()
        .filter_map(|name| first_of(name))
        .map(|first| LedgerFile::beginning_with(folder, first))
        .collect();
    files.sort_by_key(|file| file.first);
    Ok(files)
}

/// The files in `folder` that were written again and are not yet in their place.
pub(super) fn written_again(folder: &Path) -> io::Result<Vec<LedgerFile>> {
    let firsts = names(folder)?.into_iter().filter_map(|name| first_of(name.strip_suffix(AGAIN)?));
    Ok(firsts.map(|first| LedgerFile::beginning_with(folder, first)).collect())
}

/// A file that is not there though something stands beside its place, and that was not dropped: those go oldest first.
pub(super) fn lost(folder: &Path) -> io::Result<Option<LedgerFile>> {
    let oldest = list(folder)?.first().map_or(1, |file| file.first);
    let beside = names(folder)?.into_iter().filter_map(|name| first_of(whose(&name)?));
    let lost = beside.map(|first| LedgerFile::beginning_with(folder, first)).filter(|file| file.first >= oldest);
    Ok(lost.into_iter().find(|file| !file.path.exists()))
}

/// Removes what a kill left in a ledger that is well: a file that was not finished, and what stood beside one that is
/// gone.
pub(super) fn clear(folder: &Path) -> io::Result<()> {
    let names = names(folder)?;
    for name in &names {
        let owner = whose(name).unwrap_or(name);
        let unfinished = owner.strip_suffix(UNFINISHED).is_some_and(|name| first_of(name).is_some());
        let orphan = owner != name && first_of(owner).is_some() && !names.iter().any(|name| name == owner);
        if unfinished || orphan {
            remove_one(&folder.join(name))?;
        }
    }
    Ok(())
}

/// The database that `name` stands beside; none where it is no side file.
fn whose(name: &str) -> Option<&str> {
    SIDE_FILES.iter().find_map(|suffix| name.strip_suffix(suffix))
}

pub(super) fn names(folder: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
}

/// The number of the first entry, as a file's name says; `None` for what is no file of a ledger.
fn first_of(name: &str) -> Option<u64> {
    if name == FIRST {
        return Some(1);
    }
    let digits = name.strip_prefix("ledger-")?.strip_suffix(".db")?;
    let number = digits.parse().ok().filter(|number| *number > 1)?;
    (digits.len() == 20).then_some(number)
}

/// Removes a file, if it is there.
pub(super) fn remove_one(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut path = path.as_os_str().to_owned();
    path.push(suffix);
    path.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_listed_in_their_order_and_nothing_else_is() {
        let at = tempfile::tempdir().unwrap();
        let names = [
            "ledger-00000000000000000012.db",
            "ledger.db",
            "ledger.db-wal",
            "ledger-00000000000000000007.db",
            "ledger-00000000000000000020.db.new",
            "ledger-30.db",
            "notes",
        ];
        names.iter().for_each(|name| fs::write(at.path().join(name), "").unwrap());
        let listed = list(at.path()).unwrap();
        assert_eq!(listed.iter().map(|file| file.first).collect::<Vec<_>>(), [1, 7, 12]);
        assert!(listed.iter().all(|file| file.path.exists()));
        assert_eq!(list(&at.path().join("absent")).unwrap(), []);
    }

    #[test]
    fn what_a_kill_left_is_cleared_and_nothing_else_is() {
        let at = tempfile::tempdir().unwrap();
        let kept = ["ledger-00000000000000000007.db", "ledger-00000000000000000007.db-wal", "notes"];
        let left =
            ["ledger.db-wal", "ledger-00000000000000000012.db.new", "ledger-00000000000000000012.db.new-journal"];
        kept.iter().chain(&left).for_each(|name| fs::write(at.path().join(name), "").unwrap());
        clear(at.path()).unwrap();
        assert!(kept.iter().all(|name| at.path().join(name).exists()));
        assert!(!left.iter().any(|name| at.path().join(name).exists()));
    }

    #[test]
    fn file_of_which_only_the_log_is_left_is_lost_unless_it_was_dropped() {
        let at = tempfile::tempdir().unwrap();
        let touch = |name: &str| fs::write(at.path().join(name), "").unwrap();
        let lost = || lost(at.path()).unwrap().map(|file| file.first);
        let left = ["ledger-00000000000000000007.db", "ledger-00000000000000000007.db-wal", "ledger.db-wal"];
        left.into_iter().for_each(touch);
        assert_eq!(lost(), None, "the oldest are dropped");
        touch("ledger-00000000000000000012.db-wal");
        assert_eq!(lost(), Some(12));
    }
}
