//! The file below the store: opened, found damaged, put aside, and missed where somebody removed it.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, OptionalExtension as _};

use super::{SCHEMA, Store, StoreError, fills};
use crate::home::private_folder;
use crate::point::{self, Effect};

/// How long another reader or writer is waited for.
const BUSY: Duration = Duration::from_secs(5);
/// What SQLite keeps beside a database.
const BESIDE: [&str; 2] = ["-wal", "-shm"];

/// An open database, and which file it is.
pub(super) struct Opened {
    pub(super) connection: Connection,
    file: Option<FileNumber>,
}

/// A file apart from its name: device and inode.
type FileNumber = (u64, u64);

/// What was wrong with the file, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mended {
    /// It was no sound database; it lies there now, and a new one has begun.
    PutAside {
        /// Where.
        aside: PathBuf,
        /// What was wrong.
        what: String,
    },
    /// Somebody removed it; it was written again with all it held.
    WrittenAgain,
    /// Somebody put another in its place; that one is in use now.
    Replaced,
}

impl std::fmt::Display for Mended {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::PutAside { aside, what } => write!(
                out,
                "what hosts reported is damaged ({what}) and lies in `{}` now; a new store has begun, and hosts send \
                 again what they hold",
                aside.display()
            ),
            Self::WrittenAgain => out.write_str("somebody removed what hosts reported; it was written again whole"),
            Self::Replaced => out.write_str(
                "somebody put another store in the place of what hosts reported; it is used from now on, and hosts send \
                 again what it lacks",
            ),
        }
    }
}

fn number(path: &Path) -> Option<FileNumber> {
    std::fs::metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

/// The path with `end` behind its name.
fn with(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}

/// Opens `path` to write, making it where it is absent.
pub(super) fn open(path: &Path) -> Result<Opened, StoreError> {
    private_folder(path.parent().unwrap_or(Path::new(".")))?;
    let failed = |source| StoreError::of("open", path, source);
    let connection = Connection::open(path).map_err(failed)?;
    let prepare = || {
        connection.busy_timeout(BUSY)?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        // A receipt frees a host's own record: what it speaks of has to outlive a power cut.
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.execute_batch(SCHEMA)?;
        connection.execute_batch(fills::SCHEMA)
    };
    prepare().map_err(failed)?;
    point::behind(Effect::StoreOpen);
    Ok(Opened { connection, file: number(path) })
}

/// Opens `path`, which must be there, to read.
pub(super) fn open_to_read(path: &Path) -> Result<Opened, StoreError> {
    if !path.exists() {
        return Err(StoreError::Absent { path: path.to_owned() });
    }
    let failed = |source| StoreError::of("open", path, source);
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(failed)?;
    let prepare = || {
        connection.busy_timeout(BUSY)?;
        // An earlier build did not keep this. An empty table of this connection's own says the same.
        let known = "SELECT 1 FROM main.sqlite_master WHERE type = 'table' AND name = 'streams'";
        if connection.query_row(known, [], |_| Ok(())).optional()?.is_none() {
            let empty = fills::SCHEMA.replace("CREATE TABLE", "CREATE TEMP TABLE");
            connection.execute_batch(&empty)?;
        }
        Ok(())
    };
    prepare().map_err(failed)?;
    Ok(Opened { connection, file: number(path) })
}

/// The whole file, read: SQLite's own word on whether it is sound.
fn check(opened: &Opened, path: &Path) -> Result<(), StoreError> {
    let said = opened.connection.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0));
    match said.map_err(|source| StoreError::of("read", path, source))?.as_str() {
        "ok" => Ok(()),
        what => Err(StoreError::Damaged { path: path.to_owned(), what: what.to_owned() }),
    }
}

/// Puts the database `path` aside, with what lies beside it; `now` is part of its new name, and nothing that lies
/// there already is written over.
fn put_aside(path: &Path, now: u64) -> Result<PathBuf, StoreError> {
    let free = (0_u32..).map(|nth| with(path, &format!(".damaged-{now}.{nth}"))).find(|aside| !aside.exists());
    let aside = free.unwrap_or_else(|| with(path, ".damaged"));
    let failed = |source| StoreError::Aside { path: path.to_owned(), source };
    for end in BESIDE {
        match std::fs::rename(with(path, end), with(&aside, end)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(error)),
            Ok(()) | Err(_) => {}
        }
    }
    // Last: until then the next start finds it damaged again.
    std::fs::rename(path, &aside).map_err(failed)?;
    point::behind(Effect::StoreAside);
    Ok(aside)
}

impl Store {
    /// Opens `path` as [`Store::open`] does, and reads all of it: a damaged one is put aside, never written over, and a
    /// new one begins. `now` is in milliseconds since the Unix epoch.
    ///
    /// # Errors
    ///
    /// [`StoreError`]; a damaged one lies where it was, or aside.
    pub fn open_sound(path: &Path, now: u64) -> Result<(Self, Option<Mended>), StoreError> {
        let sound = Self::open(path).and_then(|store| {
            check(&store.lock(), path)?;
            Ok(store)
        });
        match sound {
            Err(StoreError::Damaged { what, .. }) => {
                let aside = put_aside(path, now)?;
                Ok((Self::open(path)?, Some(Mended::PutAside { aside, what })))
            }
            sound => Ok((sound?, None)),
        }
    }

    /// Looks whether the file is still the one that was opened. One that was removed is written again with all that
    /// this process still holds open of it; another one in its place is opened.
    ///
    /// # Errors
    ///
    /// [`StoreError`]; nothing may be receipted until a later look finds all well.
    pub fn look(&self) -> Result<Option<Mended>, StoreError> {
        let mut opened = self.lock();
        let found = number(&self.path);
        if found.is_some() && found == opened.file {
            return Ok(None);
        }
        let mended = if found.is_some() {
            Mended::Replaced
        } else {
            write_again(&opened, &self.path)?;
            Mended::WrittenAgain
        };
        *opened = open(&self.path)?;
        Ok(Some(mended))
    }

    /// Reads all of it, as [`Store::open_sound`] does at a start: for one that was found damaged while it was in use.
    ///
    /// # Errors
    ///
    /// [`StoreError`]; a damaged one lies where it was, or aside.
    pub fn check(&self, now: u64) -> Result<Option<Mended>, StoreError> {
        let mut opened = self.lock();
        match check(&opened, &self.path) {
            Err(StoreError::Damaged { what, .. }) => {
                let aside = put_aside(&self.path, now)?;
                *opened = open(&self.path)?;
                Ok(Some(Mended::PutAside { aside, what }))
            }
            sound => sound.map(|()| None),
        }
    }
}

/// Writes what `opened` holds to `path`, where nothing lies.
fn write_again(opened: &Opened, path: &Path) -> Result<(), StoreError> {
    private_folder(path.parent().unwrap_or(Path::new(".")))?;
    // What lies beside a removed database belongs to none, and would be taken for the new one's.
    for end in BESIDE {
        let beside = with(path, end);
        match std::fs::remove_file(&beside) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                return Err(StoreError::Aside { path: beside, source });
            }
            Ok(()) | Err(_) => {}
        }
    }
    let fresh = path.with_extension("db.new");
    let written = opened.connection.execute("VACUUM INTO ?", [fresh.to_string_lossy()]);
    written.map_err(|source| StoreError::of("write", path, source))?;
    let placed = std::fs::File::open(&fresh).and_then(|file| file.sync_all());
    let placed = placed.and_then(|()| std::fs::rename(&fresh, path));
    placed.map_err(|source| StoreError::Aside { path: fresh, source })?;
    point::behind(Effect::StoreAgain);
    Ok(())
}

#[cfg(test)]
mod tests;
