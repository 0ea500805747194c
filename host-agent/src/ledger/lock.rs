//! One process writes a ledger.

use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::error::OpenError;

/// Held locked by the one process that writes, beside the ledger's folder: it holds across a rename of that.
const LOCK: &str = "ledger.lock";
/// Longest that a writer waits for others to let go: whoever only asks whether a ledger is held has it for a moment.
const WITHIN: Duration = Duration::from_millis(500);
/// Between two attempts.
const AGAIN: Duration = Duration::from_millis(5);

/// The lock of a ledger; released when the last copy is dropped, or when the process dies.
#[derive(Debug, Clone)]
pub struct Hold {
    _file: Arc<File>,
}

impl Hold {
    /// Takes the lock of the ledger in `folder`.
    ///
    /// # Errors
    ///
    /// [`OpenError::Locked`] where another process has it, [`OpenError::File`] where it cannot be asked for.
    pub fn take(folder: &Path) -> Result<Self, OpenError> {
        let path = folder.join(LOCK);
        let file = open(&path)?;
        let asked = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self { _file: Arc::new(file) }),
                Err(fs::TryLockError::WouldBlock) if asked.elapsed() < WITHIN => std::thread::sleep(AGAIN),
                Err(fs::TryLockError::WouldBlock) => return Err(OpenError::Locked(path)),
                Err(fs::TryLockError::Error(source)) => return Err(OpenError::file(&path, source)),
            }
        }
    }
}

/// Whether another process writes the ledger in `folder`: an agent runs here.
///
/// # Errors
///
/// [`OpenError::File`] where the lock cannot be looked at.
pub fn is_held(folder: &Path) -> Result<bool, OpenError> {
    let path: PathBuf = folder.join(LOCK);
    if !path.exists() {
        return Ok(false);
    }
    // Shared: two that ask do not take each other for a writer, and a writer waits longer than this is held.
    match open(&path)?.try_lock_shared() {
        Ok(()) => Ok(false),
        Err(fs::TryLockError::WouldBlock) => Ok(true),
        Err(fs::TryLockError::Error(source)) => Err(OpenError::file(&path, source)),
    }
}

fn open(path: &Path) -> Result<File, OpenError> {
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(path);
    file.map_err(|source| OpenError::file(path, source))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_asks_keeps_no_writer_from_starting_and_takes_no_other_for_one() {
        let at = tempfile::tempdir().unwrap();
        assert!(!is_held(at.path()).unwrap(), "there is no ledger yet");
        assert!(!at.path().join(LOCK).exists(), "and asking makes none");
        let asks = |times: usize| (0..times).filter(|_| is_held(at.path()).unwrap()).count();
        drop(Hold::take(at.path()).unwrap());
        std::thread::scope(|scope| {
            let others: Vec<_> = (0..2).map(|_| scope.spawn(|| asks(500))).collect();
            assert_eq!(others.into_iter().map(|other| other.join().unwrap()).sum::<usize>(), 0);
            scope.spawn(|| asks(500));
            (0..500).for_each(|_| drop(Hold::take(at.path()).unwrap()));
        });
        let hold = Hold::take(at.path()).unwrap();
        let copy = hold.clone();
        drop(hold);
        assert!(is_held(at.path()).unwrap());
        assert!(matches!(Hold::take(at.path()), Err(OpenError::Locked(_))));
        drop(copy);
        assert!(!is_held(at.path()).unwrap());
    }
}
