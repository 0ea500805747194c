//! Small files of the agent's own that must survive a power cut: written beside, synced, renamed.
//!
//! Bytes come in; a file that holds either the old bytes or the new ones, never a mixture, comes out. It knows
//! nothing of what is declared: files of a declaration are the appliers' business.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use crate::host::point::{Effect, around};
use crate::host::unfinished::Unfinished;

/// One of the agent's own files could not be read or written.
#[derive(Debug, thiserror::Error)]
#[error("could not {what} `{}`", path.display())]
pub struct FileError {
    /// What was attempted.
    pub what: &'static str,
    /// The file or folder.
    pub path: PathBuf,
    /// Why.
    pub source: io::Error,
}

impl FileError {
    /// An error of `what` at `path`.
    #[must_use]
    pub fn new(what: &'static str, path: &Path, source: io::Error) -> Self {
        Self { what, path: path.to_owned(), source }
    }
}

/// What a file is called until it is in its place.
const NEW: Unfinished = Unfinished { begins: ".new-", random: 6, ends: "" };

/// Puts `bytes` at `path` with `mode`, replacing what stood there in one step.
///
/// Bytes and name are on disk when this returns.
///
/// # Errors
///
/// [`FileError`]: what stood there before stands there still.
pub fn replace(path: &Path, bytes: &[u8], mode: u32) -> Result<(), FileError> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    let write = || -> io::Result<()> {
        let mut beside = NEW.builder().tempfile_in(folder)?;
        beside.write_all(bytes)?;
        beside.as_file().set_permissions(fs::Permissions::from_mode(mode))?;
        beside.as_file().sync_all()?;
        beside.persist(path).map_err(|error| error.error)?;
        File::open(folder)?.sync_all()
    };
    around(Effect::OwnWrite, write).map_err(|source| FileError::new("write", path, source))
}

/// Removes from `folder` what writes that were cut off left: it may hold a key. Only for the one process that writes
/// there, before it does.
///
/// # Errors
///
/// [`FileError`]; some may be left.
pub fn sweep(folder: &Path) -> Result<(), FileError> {
    let entries = fs::read_dir(folder).map_err(|source| FileError::new("read the folder", folder, source))?;
    // A folder so called is somebody else's.
    let is_left =
        |entry: &fs::DirEntry| NEW.is(&entry.file_name()) && entry.file_type().is_ok_and(|kind| kind.is_file());
    for entry in entries.flatten().filter(is_left) {
        let path = entry.path();
        around(Effect::FileRemove, || fs::remove_file(&path))
            .map_err(|source| FileError::new("remove", &path, source))?;
    }
    Ok(())
}

/// Gives the file at `path` the name `aside.NAME-N` in the same folder, with the first N that is free: what was put aside
/// before stays.
///
/// # Errors
///
/// [`FileError`]; it may have both names.
pub fn put_aside(path: &Path) -> Result<(), FileError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let linked =
        (1_u32..).find_map(|number| match fs::hard_link(path, path.with_file_name(format!("aside.{name}-{number}"))) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => None,
            linked => Some(linked),
        });
    let put = linked.unwrap_or(Ok(())).and_then(|()| fs::remove_file(path));
    put.map_err(|source| FileError::new("put aside", path, source))
}

/// Reads `path`; `None` where there is no such file.
///
/// # Errors
///
/// [`FileError`] for every other failure.
pub fn read(path: &Path) -> Result<Option<Vec<u8>>, FileError> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(FileError::new("read", path, source)),
    }
}

/// Makes `folder` and those above it, readable by root alone, unless it is there.
///
/// # Errors
///
/// [`FileError`] where it could not be made.
pub fn folder(folder: &Path) -> Result<(), FileError> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(|source| FileError::new("make the folder", folder, source))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaced_file_has_the_new_bytes_and_mode_and_leaves_nothing_beside() {
        let at = tempfile::tempdir().unwrap();
        let path = at.path().join("key");
        assert!(read(&path).unwrap().is_none());
        replace(&path, b"old", 0o644).unwrap();
        replace(&path, b"new", 0o600).unwrap();
        assert_eq!(read(&path).unwrap().unwrap(), b"new");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(at.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_a_cut_off_write_left_is_swept_and_nothing_else() {
        let at = tempfile::tempdir().unwrap();
        for name in [".new-aB3xYz", ".new-notes.txt", "key"] {
            fs::write(at.path().join(name), "").unwrap();
        }
        fs::create_dir(at.path().join(".new-foLder")).unwrap();
        sweep(at.path()).unwrap();
        let mut left: Vec<_> = fs::read_dir(at.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, [".new-foLder", ".new-notes.txt", "key"]);
    }

    #[test]
    fn what_was_put_aside_is_not_overwritten_by_what_is_put_aside_next() {
        let at = tempfile::tempdir().unwrap();
        let path = at.path().join("key");
        for content in ["first", "second"] {
            fs::write(&path, content).unwrap();
            put_aside(&path).unwrap();
            assert!(!path.exists());
        }
        let kept = [1, 2].map(|number| fs::read(at.path().join(format!("aside.key-{number}"))).unwrap());
        assert_eq!(kept, [b"first".to_vec(), b"second".to_vec()]);
        assert!(put_aside(&path).is_err(), "there is nothing");
        assert_eq!(fs::read_dir(at.path()).unwrap().count(), 2);
    }

    #[test]
    fn error_names_the_file() {
        let error = replace(Path::new("/nowhere/at/all"), b"", 0o600).unwrap_err();
        assert_eq!(error.to_string(), "could not write `/nowhere/at/all`");
    }
}
