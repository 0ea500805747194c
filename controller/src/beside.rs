//! A file on its way into its place: written beside it, synced, then renamed or linked there.
//!
//! What a writer that was cut off left may hold a key: the next one in that folder removes it.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;

use tempfile::NamedTempFile;

use crate::point::{self, Effect};

/// What such a file is called until it has its place; six letters or digits follow.
const NAME: &str = ".new-";
/// How many of them.
const RANDOM: usize = 6;

/// A written file that has no place yet; gone when dropped, but not when the process dies.
pub struct Beside {
    file: NamedTempFile,
    /// The folder, locked and shared by all who write there: none of them is taken for one that was cut off.
    folder: File,
}

impl Beside {
    /// Writes `bytes` beside `path`, 0600 and synced.
    ///
    /// # Errors
    ///
    /// The file system's; nothing is left.
    pub fn write(path: &Path, bytes: &[u8]) -> io::Result<Self> {
        let path = path.parent().unwrap_or(Path::new("."));
        let folder = File::open(path)?;
        if folder.try_lock().is_ok() {
            sweep(path)?;
            folder.unlock()?;
        }
        folder.lock_shared()?;
        let mut file = tempfile::Builder::new().prefix(NAME).rand_bytes(RANDOM).tempfile_in(path)?;
        file.write_all(bytes)?;
        file.as_file().sync_all()?;
        Ok(Self { file, folder })
    }

    /// Puts it at `path`, over what is there. Its name is on disk when this returns.
    ///
    /// # Errors
    ///
    /// The file system's; what was there is as it was.
    pub fn replace(self, path: &Path) -> io::Result<()> {
        self.file.persist(path)?;
        self.folder.sync_all()
    }

    /// Puts it at `path`, where nothing may be yet.
    ///
    /// # Errors
    ///
    /// The file system's, with `AlreadyExists` where something is there, which is as it was.
    pub fn place(self, path: &Path) -> io::Result<()> {
        self.file.persist_noclobber(path)?;
        self.folder.sync_all()
    }
}

/// Removes from `folder` what writers that were cut off left. For whoever holds it alone.
fn sweep(folder: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let random = name.to_str().and_then(|name| name.strip_prefix(NAME)).unwrap_or_default();
        let is_left = random.len() == RANDOM && random.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if is_left && entry.file_type()?.is_file() {
            std::fs::remove_file(entry.path())?;
            point::behind(Effect::FileRemove);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_writer_that_was_cut_off_left_goes_with_the_next_one_and_nothing_else() {
        let at = tempfile::tempdir().unwrap();
        let path = at.path().join("key");
        // Cut off: the file stays, and nobody holds the folder.
        let Beside { file, folder } = Beside::write(&path, b"half a key").unwrap();
        let (_, left) = file.keep().unwrap();
        drop(folder);
        let (others, under_way) = (at.path().join(".new-notes.txt"), Beside::write(&at.path().join("b"), b"").unwrap());
        std::fs::write(&others, "").unwrap();
        assert!(!left.exists());

        let written = Beside::write(&path, b"whole").unwrap();
        assert!(under_way.file.path().exists(), "somebody writes it at this moment");
        written.place(&path).unwrap();
        let clash = Beside::write(&path, b"other").unwrap().place(&path).unwrap_err();
        assert_eq!(clash.kind(), io::ErrorKind::AlreadyExists);
        under_way.replace(&path).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"");
        let mut names: Vec<_> = std::fs::read_dir(at.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        names.sort();
        assert_eq!(names, [others, path]);
    }
}
