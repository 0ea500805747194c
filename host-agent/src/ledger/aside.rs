//! Setting a damaged ledger aside.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use replicator_protocol::ids::{Digest, HostUid};
use replicator_protocol::wire::event::LedgerSetAside;
use replicator_protocol::wire::event::event::Body;

use super::error::OpenError;
use super::lock::Hold;
use super::log::{DATABASE, Head, Ledger, sync_folder};
use super::reader::Reader;
use super::verify::Damage;
use crate::clock::Clock;

/// Sets a damaged ledger aside, never overwriting it, and starts a new chain whose first event names the last
/// good entry of the old one.
///
/// # Errors
///
/// See [`OpenError`]; the damaged files are either all where they were or all set aside.
pub fn set_aside(folder: &Path, host: &HostUid, clock: Arc<dyn Clock>, damage: &Damage) -> Result<Ledger, OpenError> {
    let hold = Hold::take(folder)?;
    let database = folder.join(DATABASE);
    let head = last_good(folder, damage.last_good());
    let kept = (1_u32..)
        .map(|attempt| folder.join(format!("{DATABASE}.damaged-{attempt}")))
        .find(|path| !path.exists())
        .unwrap_or_else(|| folder.join(format!("{DATABASE}.damaged")));
    fs::rename(&database, &kept).map_err(|source| OpenError::file(&database, source))?;
    sync_folder(folder)?;
    let head = head.unwrap_or(Head { chain: [0; 16], number: 0, hash: Digest([0; 32]) });
    let first = Body::LedgerSetAside(LedgerSetAside {
        reason: damage.to_string(),
        last_good_chain: Bytes::copy_from_slice(&head.chain),
        last_good_number: head.number,
        last_good_hash: Bytes::copy_from_slice(&head.hash.0),
    });
    Ledger::open_with(folder, (host, clock), hold, first)
}

/// The entry before the damage, where it can be read.
fn last_good(folder: &Path, number: u64) -> Option<Head> {
    let reader = Reader::open(folder).ok()??;
    let hash = reader.hash_of(number).ok()??;
    let event = reader.read_after(0, 1).ok()?.pop()?.event()?;
    Some(Head { chain: event.chain[..].try_into().ok()?, number, hash })
}
