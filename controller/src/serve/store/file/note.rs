//! Which database the log beside it belongs to. A log outlives a process that was killed, and SQLite would play it into
//! whatever database is put there meanwhile.

use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use super::{BESIDE, StoreError, with};
use crate::beside::Beside;
use crate::point::{self, Effect};

/// Where it is kept.
pub(super) fn path_of(path: &Path) -> PathBuf {
    with(path, ".belongs")
}

/// Notes that the log beside `path` is that of the database there.
pub(super) fn write(path: &Path) -> Result<(), StoreError> {
    let (Some(database), Some(log)) = (identity(path), identity(&with(path, BESIDE[0]))) else { return Ok(()) };
    let note = path_of(path);
    let written = Beside::write(path, format!("{database}\n{log}\n").as_bytes()).and_then(|file| file.replace(&note));
    written.map_err(|source| StoreError::Note { path: note, source })?;
    point::behind(Effect::FileReplace);
    Ok(())
}

/// Whether the log beside `path` is that of another database than the one there. One that came with its database, or
/// was made since, is not.
pub(super) fn is_of_another(path: &Path) -> bool {
    let Ok(note) = std::fs::read_to_string(path_of(path)) else { return false };
    let mut noted = note.lines();
    let (database, log) = (noted.next(), noted.next());
    let is_noted_log = log.is_some() && identity(&with(path, BESIDE[0])).as_deref() == log;
    is_noted_log && identity(path).is_some_and(|found| Some(&*found) != database)
}

/// A file apart from its name. Without the device, whose number another start of the machine may change, and with the
/// time it was made: the number of a removed file is soon that of another.
fn identity(path: &Path) -> Option<String> {
    use std::os::unix::fs::MetadataExt as _;

    let found = std::fs::metadata(path).ok()?;
    let made = found.created().ok().and_then(|made| made.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
    Some(format!("{} {}", found.ino(), made.as_nanos()))
}
