//! The file below the store: opened, found damaged, put aside, and missed where somebody removed it.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use replicator_protocol::ids::Digest;
use rusqlite::{Connection, OpenFlags, OptionalExtension as _};

use super::{SCHEMA, Store, StoreError, fills};
use crate::home::private_folder;
use crate::point::{self, Effect};

mod moves;
mod note;

use moves::{FileNumber, copy_of, folder_of, leave, number, place, put_aside, remove, with};

/// How long another reader or writer is waited for.
const BUSY: Duration = Duration::from_secs(5);
/// What SQLite keeps beside a database.
const BESIDE: [&str; 2] = ["-wal", "-shm"];
/// A copy of a removed database while it is written, and what SQLite keeps beside that.
const COPY: [&str; 2] = [".new", ".new-journal"];
/// A new database until its tables are there, and what SQLite keeps beside that.
const BEGUN: [&str; 2] = [".begun", ".begun-journal"];
/// All that may be left of a database that is gone.
const OF_ONE_BEFORE: [&str; 4] = [BESIDE[0], BESIDE[1], COPY[0], COPY[1]];

/// An open database, and which file it is.
pub(super) struct Opened {
    pub(super) connection: Connection,
    file: Option<FileNumber>,
    /// What lay beside it then, in the order of [`BESIDE`].
    beside: [Option<FileNumber>; 2],
}

impl Opened {
    fn new(connection: Connection, path: &Path) -> Self {
        Self { connection, file: number(path), beside: BESIDE.map(|end| number(&with(path, end))) }
    }
}

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
    /// It is gone, and what it held cannot be read any more; a new one has begun.
    Lost {
        /// What there was of it.
        what: String,
    },
    /// A damaged file lay in its place; that lies there now, and it was written again with all it held.
    PutBack {
        /// Where.
        aside: PathBuf,
        /// What was wrong with that file.
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
            Self::Lost { what } => write!(
                out,
                "what hosts reported is gone: {what}; a new store has begun, and hosts send again what they hold"
            ),
            Self::PutBack { aside, what } => write!(
                out,
                "somebody put a damaged file ({what}) in the place of what hosts reported; that lies in `{}` now, and \
                 what hosts reported was written again whole",
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

/// Opens `path` to write, making it where it is absent: beside it first, so that one that is empty was never made so.
pub(super) fn open(path: &Path) -> Result<Opened, StoreError> {
    private_folder(folder_of(path))?;
    if number(path).is_none() {
        // What lies beside no database is another's: SQLite would take it for the new one's, or empty it.
        leave(path, &BESIDE)?;
        begin(path)?;
    }
    let failed = |source| StoreError::of("open", path, source);
    let connection = Connection::open(path).map_err(failed)?;
    let prepare = || {
        connection.busy_timeout(BUSY)?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        point::behind(Effect::StoreOpen);
        // A receipt frees a host's own record: what it speaks of has to outlive a power cut.
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.execute_batch(SCHEMA)?;
        point::behind(Effect::StoreOpen);
        connection.execute_batch(fills::SCHEMA)?;
        point::behind(Effect::StoreOpen);
        Ok(())
    };
    prepare().map_err(failed)?;
    note::write(path)?;
    Ok(Opened::new(connection, path))
}

/// Makes a new database at `path`, where nothing lies; after an error nothing of it lies there.
fn begin(path: &Path) -> Result<(), StoreError> {
    let begun = with(path, BEGUN[0]);
    remove(path, &BEGUN)?;
    let make = || {
        let connection = Connection::open(&begun)?;
        point::behind(Effect::StoreOpen);
        connection.execute_batch(SCHEMA)?;
        point::behind(Effect::StoreOpen);
        Ok(())
    };
    if let Err(source) = make() {
        remove(path, &BEGUN)?;
        return Err(StoreError::of("make", path, source));
    }
    place(&begun, path)
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
    Ok(Opened::new(connection, path))
}

/// The whole file, read: SQLite's own word on whether it is sound.
fn check(opened: &Opened, path: &Path) -> Result<(), StoreError> {
    let said = opened.connection.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0));
    match said.map_err(|source| StoreError::of("read", path, source))?.as_str() {
        "ok" => events_hold(opened, path),
        what => Err(StoreError::Damaged { path: path.to_owned(), what: what.to_owned() }),
    }
}

/// Whether each event is the one that was stored: SQLite does not see a byte that was altered within one.
fn events_hold(opened: &Opened, path: &Path) -> Result<(), StoreError> {
    let read = || {
        let mut statement = opened.connection.prepare("SELECT position, hash, body FROM events ORDER BY position")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let body = row.get_ref(2)?.as_blob()?;
            if row.get_ref(1)?.as_blob()? != Digest::of(body).0 {
                return row.get::<_, u64>(0).map(Some);
            }
        }
        Ok(None)
    };
    match read().map_err(|source| StoreError::of("read", path, source))? {
        Some(position) => Err(super::altered(path, position)),
        None => Ok(()),
    }
}

/// As [`open`], and all of it is read: what is no sound database is put aside, and a new one begins. Where there is none,
/// or no sound one, a copy that was whole but not yet in its place is taken; beside a sound one it goes out of the way. So
/// does the log of another database.
fn open_sound(path: &Path, now: u64) -> Result<(Opened, Option<Mended>), StoreError> {
    let found = if number(path).is_none() {
        take_up(path)?
    } else if not_empty(path).is_ok() && note::is_of_another(path) {
        leave(path, &BESIDE)?;
        Some(Mended::Replaced)
    } else {
        None
    };
    let sound = not_empty(path).and_then(|()| open(path)).and_then(|opened| check(&opened, path).map(|()| opened));
    match sound {
        Err(StoreError::Damaged { what, .. }) => {
            let aside = put_aside(path, now)?;
            let mended = match take_up(path)? {
                Some(Mended::WrittenAgain) => Mended::PutBack { aside, what },
                _ => Mended::PutAside { aside, what },
            };
            Ok((open(path)?, Some(mended)))
        }
        sound => {
            let opened = sound?;
            // It would be taken for the newest where this one is removed later.
            leave(path, &COPY)?;
            Ok((opened, found))
        }
    }
}

/// SQLite takes an empty file for a new database, and drops the log beside it.
fn not_empty(path: &Path) -> Result<(), StoreError> {
    match std::fs::metadata(path) {
        Ok(file) if file.len() == 0 => Err(StoreError::Damaged { path: path.to_owned(), what: "it is empty".into() }),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Where `path` is absent: puts a copy that [`look`] had not yet put in its place there, if it is whole. Says what
/// there was of the database.
fn take_up(path: &Path) -> Result<Option<Mended>, StoreError> {
    private_folder(folder_of(path))?;
    let copy = copy_of(path);
    let is_whole = number(&copy).is_some()
        && not_empty(&copy).and_then(|()| open_to_read(&copy)).and_then(|opened| check(&opened, &copy)).is_ok();
    // What lies beside it is of the one before, and a copy that is not whole is no more than a sign that there was one.
    let left = leave(path, if is_whole { &BESIDE[..] } else { &OF_ONE_BEFORE })?;
    if is_whole {
        place(&copy, path)?;
        return Ok(Some(Mended::WrittenAgain));
    }
    let what = |left: PathBuf| format!("all there is of it lies in `{}` now", left.display());
    Ok(left.map(|left| Mended::Lost { what: what(left) }))
}

impl Store {
    /// Opens `path` as [`Store::open`] does, and reads all of it: a damaged one is put aside, never written over, and a
    /// new one begins. `now` is in milliseconds since the Unix epoch.
    ///
    /// # Errors
    ///
    /// [`StoreError`]; a damaged one lies where it was, or aside.
    pub fn open_sound(path: &Path, now: u64) -> Result<(Self, Option<Mended>), StoreError> {
        let (opened, mended) = open_sound(path, now)?;
        Ok((Self { opened: Mutex::new(opened), path: path.to_owned() }, mended))
    }

    /// Looks whether the file is still the one that was opened. One that was removed is written again with all that this
    /// process still holds open of it. Another one in its place is read whole and used, and what this process holds of
    /// the one before goes out of the way; where it is damaged it is put aside, and the one before is written again.
    /// `now` is in milliseconds since the Unix epoch.
    ///
    /// # Errors
    ///
    /// [`StoreError`]; nothing may be receipted until a later look finds all well.
    pub fn look(&self, now: u64) -> Result<Option<Mended>, StoreError> {
        look(&mut self.lock(), &self.path, now)
    }

    /// Reads all of it, as [`Store::open_sound`] does at a start: for one that was found damaged while it was in use.
    ///
    /// # Errors
    ///
    /// [`StoreError`]; a damaged one lies where it was, or aside.
    pub fn check(&self, now: u64) -> Result<Option<Mended>, StoreError> {
        let mut opened = self.lock();
        // First: what lies there now may be another, and sound.
        if let Some(mended) = look(&mut opened, &self.path, now)? {
            return Ok(Some(mended));
        }
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

fn look(opened: &mut Opened, path: &Path, now: u64) -> Result<Option<Mended>, StoreError> {
    let found = number(path);
    if found.is_some() && found == opened.file {
        return Ok(None);
    }
    // First: it may be all there is of what hosts have dropped.
    let copied = match write_copy(opened, path) {
        Err(StoreError::Damaged { what, .. }) => Err(what),
        copied => Ok(copied?),
    };
    let (fresh, mended) = match (found, copied) {
        (Some(_), copied) => {
            // What lay beside the one before would be played into this one; what came with it stays.
            let ours = BESIDE.into_iter().zip(opened.beside);
            let ours = ours.filter(|(end, before)| before.is_some() && *before == number(&with(path, end)));
            let ours: Vec<_> = ours.map(|(end, _)| end).collect();
            match copied {
                Ok(()) => remove(path, &ours)?,
                Err(_) => drop(leave(path, &ours)?),
            }
            let (fresh, mended) = open_sound(path, now)?;
            (fresh, mended.unwrap_or(Mended::Replaced))
        }
        (None, Ok(())) => {
            // What lies beside a removed database belongs to none, and would be taken for the new one's.
            remove(path, &BESIDE)?;
            place(&copy_of(path), path)?;
            (open(path)?, Mended::WrittenAgain)
        }
        // Nothing is left of it that could be put aside.
        (None, Err(what)) => (open(path)?, Mended::Lost { what }),
    };
    *opened = fresh;
    Ok(Some(mended))
}

/// Writes what `opened` holds beside `path`; after an error nothing of it lies there.
fn write_copy(opened: &Opened, path: &Path) -> Result<(), StoreError> {
    private_folder(folder_of(path))?;
    let copy = copy_of(path);
    // One that was begun before: this process holds all of it still.
    remove(path, &COPY)?;
    let written = opened.connection.execute("VACUUM INTO ?", [copy.to_string_lossy()]);
    if let Err(source) = written {
        remove(path, &COPY)?;
        return Err(StoreError::of("write", path, source));
    }
    point::behind(Effect::StoreAgain);
    Ok(())
}

#[cfg(test)]
mod tests;
