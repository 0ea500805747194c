//! One at a time sets up a fleet.

use std::fs::{File, TryLockError};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use super::InitError;

/// How long somebody else who sets up a fleet is waited for: it takes a second, and several on a slow disk.
pub(super) const WITHIN: Duration = Duration::from_secs(10);
/// How often it is looked whether the other one has ended.
const LOOK: Duration = Duration::from_millis(50);

/// Locks the folder of all fleets until it is dropped. Whoever sets one up now is waited for, for as long as `within`.
pub(super) fn lock(fleets: &Path, within: Duration) -> Result<File, InitError> {
    let failed = |source| InitError::Place { path: fleets.to_owned(), source };
    let folder = File::open(fleets).map_err(failed)?;
    let started = Instant::now();
    loop {
        match folder.try_lock() {
            Ok(()) => return Ok(folder),
            Err(TryLockError::WouldBlock) if started.elapsed() < within => std::thread::sleep(LOOK),
            Err(TryLockError::WouldBlock) => {
                let (path, seconds) = (fleets.to_owned(), within.as_secs());
                return Err(InitError::Busy { path, seconds, pid: holder(&folder) });
            }
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
    }
}

/// The process that has `file` locked, where the kernel tells.
fn holder(file: &File) -> Option<u32> {
    let inode = file.metadata().ok()?.ino();
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    // `1: FLOCK  ADVISORY  WRITE 1234 fe:00:5678 0 EOF`; who waits has an arrow behind the number.
    locks.lines().find_map(|line| {
        let mut fields = line.split_whitespace().skip(1);
        let is_flock = fields.next() == Some("FLOCK");
        let (pid, place) = (fields.nth(2)?.parse().ok()?, fields.next()?);
        (is_flock && pid > 0 && place.rsplit(':').next()?.parse() == Ok(inode)).then_some(pid)
    })
}
