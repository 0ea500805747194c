//! Files of the store that go out of the way or into their place, each of them whole and none written over.

use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use super::{BESIDE, COPY, StoreError};
use crate::point::{self, Effect};

/// A file apart from its name: device and inode.
pub(super) type FileNumber = (u64, u64);

pub(super) fn number(path: &Path) -> Option<FileNumber> {
    std::fs::metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

/// The path with `end` behind its name.
pub(super) fn with(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}

pub(super) fn folder_of(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("."))
}

/// The copy of a removed database while it is written.
pub(super) fn copy_of(path: &Path) -> PathBuf {
    with(path, COPY[0])
}

/// Puts the database `path` aside, with what lies beside it, in a folder of its own; `now` is part of that one's name.
///
/// The database goes first: cut off after it, no later start can take what is left for sound, and one that opens it finds
/// what lay beside it.
pub(super) fn put_aside(path: &Path, now: u64) -> Result<PathBuf, StoreError> {
    let aside = new_folder(path, &format!(".damaged-{now}"))?;
    move_into(&aside, path, &["", BESIDE[0], BESIDE[1]])?;
    Ok(aside)
}

/// Puts what is there of `path` with each of `ends` into a folder of its own; says which.
pub(super) fn leave(path: &Path, ends: &[&str]) -> Result<Option<PathBuf>, StoreError> {
    if ends.iter().all(|end| number(&with(path, end)).is_none()) {
        return Ok(None);
    }
    let left = new_folder(path, ".left")?;
    move_into(&left, path, ends)?;
    Ok(Some(left))
}

/// Makes the first folder `path` + `end` + `.N` that nobody has.
fn new_folder(path: &Path, end: &str) -> Result<PathBuf, StoreError> {
    let mut nth = 0_u32;
    loop {
        let folder = with(path, &format!("{end}.{nth}"));
        match std::fs::DirBuilder::new().mode(0o700).create(&folder) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => nth += 1,
            Err(source) => return Err(StoreError::Aside { path: folder, source }),
            Ok(()) => {
                point::behind(Effect::FolderMake);
                return Ok(folder);
            }
        }
    }
}

/// Renames `path` with each of `ends` into `folder`, in that order, where it is there.
fn move_into(folder: &Path, path: &Path, ends: &[&str]) -> Result<(), StoreError> {
    let failed = |source| StoreError::Aside { path: path.to_owned(), source };
    for end in ends {
        let from = with(path, end);
        let Some(name) = from.file_name() else { continue };
        match std::fs::rename(&from, folder.join(name)) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            renamed => {
                renamed.map_err(failed)?;
                point::behind(Effect::StoreAside);
            }
        }
    }
    sync(folder).and_then(|()| sync(folder_of(path))).map_err(failed)
}

/// Removes `path` with each of `ends`, where it is there.
pub(super) fn remove(path: &Path, ends: &[&str]) -> Result<(), StoreError> {
    for end in ends {
        let path = with(path, end);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            removed => {
                removed.map_err(|source| StoreError::Aside { path, source })?;
                point::behind(Effect::StoreAgain);
            }
        }
    }
    Ok(())
}

/// Renames `copy`, which is whole, to `path`.
pub(super) fn place(copy: &Path, path: &Path) -> Result<(), StoreError> {
    let failed = |source| StoreError::Aside { path: copy.to_owned(), source };
    std::fs::File::open(copy).and_then(|file| file.sync_all()).map_err(failed)?;
    std::fs::rename(copy, path).map_err(failed)?;
    point::behind(Effect::StoreAgain);
    sync(folder_of(path)).map_err(failed)
}

/// Makes the names in `folder` survive a power cut.
fn sync(folder: &Path) -> std::io::Result<()> {
    std::fs::File::open(folder)?.sync_all()
}
