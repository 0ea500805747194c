//! Files others may not read, written whole or not at all.

use std::fs::File;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use crate::beside::Beside;
use crate::home::private_folder;
use crate::point::{self, Effect};

/// A file of the fleet's folder could not be used.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The file system refused.
    #[error("cannot {act} `{}`", path.display())]
    System {
        /// `read`, `write`, `make`, `remove`.
        act: &'static str,
        /// What it was about.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Others may read what must stay private.
    #[error("`{}` may be read by others (mode {mode:04o}, want 0600)", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// The folder around it could not be made.
    #[error(transparent)]
    Folder(#[from] crate::home::HomeError),
}

impl FileError {
    fn system(act: &'static str, path: &Path, source: std::io::Error) -> Self {
        Self::System { act, path: path.to_owned(), source }
    }

    /// One line that names the next action.
    pub fn hint(&self) -> String {
        match self {
            Self::System { path, .. } => {
                format!("check that `{}` is there, who owns it, and whether the disk is full", path.display())
            }
            Self::Open { path, .. } => format!("run `chmod 600 {}`; others may have read it", path.display()),
            Self::Folder(error) => error.hint(),
        }
    }
}

/// Makes the file `path`, 0600, which must not be there yet. It is on disk when this returns.
///
/// # Errors
///
/// [`FileError`]; a file that was there is as it was.
pub(super) fn create(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    // Whole or not at all: half a key could be neither read nor made again.
    place("make", path, bytes, |file| file.place(path))?;
    point::behind(Effect::FileMake);
    Ok(())
}

/// Puts `bytes` into the file `path`, 0600: beside it, synced, renamed over it.
///
/// # Errors
///
/// [`FileError`]; what was there is as it was.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    place("write", path, bytes, |file| file.replace(path))?;
    point::behind(Effect::FileReplace);
    Ok(())
}

/// Writes `bytes` beside `path`, 0600 and synced, and has `put` put them there.
fn place(
    act: &'static str,
    path: &Path,
    bytes: &[u8],
    put: impl FnOnce(Beside) -> std::io::Result<()>,
) -> Result<(), FileError> {
    private_folder(path.parent().unwrap_or(Path::new(".")))?;
    Beside::write(path, bytes).and_then(put).map_err(|source| FileError::system(act, path, source))
}

/// Removes the file `path`, where it is there.
///
/// # Errors
///
/// [`FileError::System`].
pub(super) fn remove(path: &Path) -> Result<(), FileError> {
    match std::fs::remove_file(path) {
        Ok(()) => {
            point::behind(Effect::FileRemove);
            Ok(())
        }
        Err(source) if source.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(source) => Err(FileError::system("remove", path, source)),
    }
}

/// Makes names in `folder` survive a power cut.
pub(super) fn sync_folder(folder: &Path) -> std::io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Reads a file that only its owner may read; the bytes are overwritten when dropped.
///
/// # Errors
///
/// [`FileError::System`], or [`FileError::Open`] where its mode lets others in.
pub(super) fn read_private(path: &Path) -> Result<Zeroizing<Vec<u8>>, FileError> {
    let failed = |source| FileError::system("read", path, source);
    let mode = std::fs::metadata(path).map_err(failed)?.permissions().mode() & 0o7777;
    if mode & 0o077 != 0 {
        return Err(FileError::Open { path: path.to_owned(), mode });
    }
    std::fs::read(path).map(Zeroizing::new).map_err(failed)
}

/// Reads a file that holds nothing private; `None` where there is none.
///
/// # Errors
///
/// [`FileError::System`].
pub(super) fn read(path: &Path) -> Result<Option<Vec<u8>>, FileError> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(FileError::system("read", path, source)),
    }
}

/// Whether the file `path` is there.
///
/// # Errors
///
/// [`FileError::System`].
pub(super) fn exists(path: &Path) -> Result<bool, FileError> {
    path.try_exists().map_err(|source| FileError::system("read", path, source))
}

/// The names in `folder` that end in `.extension`, without it, sorted; none where there is no folder.
///
/// # Errors
///
/// [`FileError::System`].
pub(super) fn names(folder: &Path, extension: &str) -> Result<Vec<String>, FileError> {
    let failed = |source| FileError::system("read", folder, source);
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(failed(source)),
    };
    let mut names = Vec::new();
    for entry in entries {
        let name = entry.map_err(failed)?.file_name();
        let stem = name.to_str().and_then(|name| name.strip_suffix(extension)).and_then(|name| name.strip_suffix('.'));
        names.extend(stem.map(str::to_owned));
    }
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_file_is_made_once_and_0600() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys/declare");
        create(&path, b"one").unwrap();
        assert!(create(&path, b"two").is_err());
        assert_eq!(&**read_private(&path).unwrap(), b"one");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn key_that_others_can_read_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        create(&path, b"one").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        assert!(matches!(read_private(&path), Err(FileError::Open { mode: 0o640, .. })));
    }
}
