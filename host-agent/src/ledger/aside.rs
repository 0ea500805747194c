//! Setting a damaged ledger aside, and beginning a new one.
//!
//! The new one is made whole first, beside the damaged one; then the two change places, by one rename each. Killed in
//! between, the next start does the second. The first ledger of a host is made in the same way, so that what stands in
//! a ledger's place and holds nothing is a ledger that was lost.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use replicator_protocol::ids::{Digest, HostUid};
use replicator_protocol::wire::event::LedgerSetAside;
use replicator_protocol::wire::event::event::Body;

use super::damage::Damage;
use super::entry::Head;
use super::error::OpenError;
use super::files::DATABASE;
use super::lock::Hold;
use super::log::Ledger;
use super::opened::sync_folder;
use super::reader::Reader;
use super::salvage::salvage;
use crate::clock::Clock;
use crate::host::point::{Effect, Side, around, reach};

/// The folder, inside the agent's state folder, of a new ledger that is whole and not yet in its place.
pub const NEXT: &str = "ledger.next";
/// Where it is made.
const UNFINISHED: &str = "ledger.new";
/// The two copies of the position accepted last, beside the ledger. Where one of them is there has been a ledger.
pub const ANCHORS: [&str; 2] = ["anchor.a", "anchor.b"];

/// As [`Ledger::open`]; a damaged ledger is set aside, never overwritten, and a new chain starts whose first event
/// names the last good entry of the old one, and whose next ones tell what is still known of what was applied. Returns what was damaged, if anything was.
///
/// # Errors
///
/// See [`OpenError`]; the damaged files are either all where they were or all set aside.
pub fn open_or_set_aside(
    folder: &Path,
    host: &HostUid,
    clock: Arc<dyn Clock>,
) -> Result<(Ledger, Option<Damage>), OpenError> {
    // Held over both, lest another agent's new ledger be taken for the damaged one.
    let hold = Hold::take(folder)?;
    match Ledger::open_held(folder, (host, Arc::clone(&clock)), hold.clone()) {
        Err(OpenError::Damaged(damage)) => {
            set_aside(folder, (host, Arc::clone(&clock)), &hold, &damage)?;
            Ok((Ledger::open_held(folder, (host, clock), hold)?, Some(damage)))
        }
        opened => Ok((opened?, None)),
    }
}

fn set_aside(folder: &Path, who: (&HostUid, Arc<dyn Clock>), hold: &Hold, damage: &Damage) -> Result<(), OpenError> {
    let head = last_good(folder, damage.last_good());
    let head = head.unwrap_or(Head { chain: [0; 16], number: 0, hash: Digest([0; 32]) });
    let first = Body::LedgerSetAside(LedgerSetAside {
        reason: damage.to_string(),
        last_good_chain: Bytes::copy_from_slice(&head.chain),
        last_good_number: head.number,
        last_good_hash: Bytes::copy_from_slice(&head.hash.0),
    });
    let database = folder.join(DATABASE);
    let recovered = salvage(&database, who.0);
    let first = std::iter::once(first).chain(recovered).collect();
    make(folder, who, hold, first)?;
    if there(&database)? {
        around(Effect::LedgerSetAside, || (1_u32..).find_map(|number| put_away(&database, number)).unwrap_or(Ok(())))
            .map_err(|source| OpenError::file(&database, source))?;
        sync_folder(folder)?;
    }
    finish(folder)
}

/// Whether this host never had a ledger: there is none, and nothing that comes after one.
pub(super) fn is_first(folder: &Path) -> Result<bool, OpenError> {
    for name in [DATABASE].iter().chain(&ANCHORS) {
        if there(&folder.join(name))? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Makes a new ledger that begins with the events `first`, whole, for [`finish`] to put in its place.
pub(super) fn make(
    folder: &Path,
    who: (&HostUid, Arc<dyn Clock>),
    hold: &Hold,
    first: Vec<Body>,
) -> Result<(), OpenError> {
    let (unfinished, next) = (folder.join(UNFINISHED), folder.join(NEXT));
    let failed = |source| OpenError::file(&next, source);
    for left in [&unfinished, &next] {
        match fs::remove_dir_all(left) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            Ok(()) | Err(_) => {}
        }
    }
    reach(Effect::LedgerMake, Side::Before).map_err(failed)?;
    Ledger::begin(&unfinished, who, hold.clone(), first)?;
    fs::rename(&unfinished, &next).map_err(failed)?;
    sync_folder(folder)?;
    reach(Effect::LedgerMake, Side::After).map_err(failed)
}

/// Puts a new ledger in its place, where that is left to do.
pub(super) fn finish(folder: &Path) -> Result<(), OpenError> {
    let (next, database) = (folder.join(NEXT), folder.join(DATABASE));
    if there(&database)? || !there(&next)? {
        return Ok(());
    }
    around(Effect::LedgerSetAside, || fs::rename(&next, &database)).map_err(|source| OpenError::file(&next, source))?;
    sync_folder(folder)
}

/// Renames a damaged ledger; none where something has that name already, for a folder is never renamed over it.
fn put_away(database: &Path, number: u32) -> Option<io::Result<()>> {
    let kept: PathBuf = database.with_file_name(format!("{DATABASE}.damaged-{number}"));
    match fs::rename(database, kept) {
        Err(error) if is_taken(&error) => None,
        renamed => Some(renamed),
    }
}

fn is_taken(error: &io::Error) -> bool {
    use io::ErrorKind::{AlreadyExists, DirectoryNotEmpty, NotADirectory};
    [AlreadyExists, DirectoryNotEmpty, NotADirectory].contains(&error.kind())
}

fn there(path: &Path) -> Result<bool, OpenError> {
    path.try_exists().map_err(|source| OpenError::file(path, source))
}

/// The entry before the damage, where it can be read.
fn last_good(folder: &Path, number: u64) -> Option<Head> {
    let reader = Reader::open(folder).ok()??;
    let hash = reader.hash_of(number).ok()??;
    let event = reader.read_after(0, 1).ok()?.pop()?.event()?;
    Some(Head { chain: event.chain[..].try_into().ok()?, number, hash })
}

#[cfg(test)]
mod tests;
