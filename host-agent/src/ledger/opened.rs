//! The file that is appended to: open, and known by more than its name.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use super::error::{OpenError, StoreError};
use super::files::LedgerFile;
use super::schema;

/// A file apart from its name: device and inode.
type FileNumber = (u64, u64);

/// The file that is appended to, open.
pub(super) struct Opened {
    pub(super) connection: Connection,
    /// Which file that is, and which stand beside it: without its log it is not whole.
    numbers: Vec<(PathBuf, Option<FileNumber>)>,
}

impl Opened {
    fn new(connection: Connection, file: &LedgerFile) -> Self {
        let numbers = file.with_side_files().into_iter().map(|path| (path.clone(), number(&path))).collect();
        Self { connection, numbers }
    }

    /// Whether each of them stands where it stood when it was opened.
    pub(super) fn is_in_place(&self) -> bool {
        self.numbers.iter().all(|(path, before)| before.is_none() || *before == number(path))
    }

    /// Those that are still what was opened: of no use beside a copy.
    pub(super) fn ours(&self) -> impl Iterator<Item = &Path> {
        let ours = self.numbers.iter().filter(|(path, before)| before.is_some() && *before == number(path));
        ours.map(|(path, _)| &**path)
    }
}

/// Of a link the link itself: what it leads to is found by another name.
pub(super) fn number(path: &Path) -> Option<FileNumber> {
    fs::symlink_metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

/// Opens the file that is appended to, or makes it; its name is on disk when this returns.
pub(super) fn connect(file: &LedgerFile) -> Result<Opened, OpenError> {
    let open = || {
        let connection = Connection::open(&file.path)?;
        // `FULL` syncs the write-ahead log at every commit: what is appended survives a power cut.
        connection.pragma_update(None, "journal_mode", "wal")?;
        connection.pragma_update(None, "synchronous", "full")?;
        Ok(connection)
    };
    let mut connection = open().map_err(|source| StoreError::new(&file.path, source))?;
    schema::migrate(&mut connection)?;
    sync_folder(file.path.parent().unwrap_or(&file.path))?;
    Ok(Opened::new(connection, file))
}

/// Makes the names in `folder` survive a power cut.
pub(super) fn sync_folder(folder: &Path) -> Result<(), OpenError> {
    let synced = File::open(folder).and_then(|file| file.sync_all());
    synced.map_err(|source| OpenError::file(folder, source))
}
