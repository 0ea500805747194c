//! Keeping a ledger within its limits: beginning a further file, and dropping the oldest.
//!
//! Killed between any two steps, it leaves a ledger that opens. See `docs/decisions/0007-ledger-files.md`.

use std::fs;
use std::io;
use std::path::Path;

use bytes::Bytes;
use replicator_protocol::ids::Digest;
use replicator_protocol::wire::event::event::Body;
use replicator_protocol::wire::event::{Event, LedgerDropped, LedgerRotated};
use rusqlite::Connection;

use super::Ledger;
use crate::host::point::{Effect, Side, around, reach};
use crate::ledger::checkpoint::{self, Checkpoint};
use crate::ledger::entry::Head;
use crate::ledger::error::{KeepError, StoreError, at};
use crate::ledger::files::{self, LedgerFile};
use crate::ledger::opened::{connect, sync_folder};
use crate::ledger::projections::Fold as _;
use crate::ledger::rows::{insert, put_settled, settled};
use crate::ledger::schema;

/// Bytes of a file that holds nothing yet: one page for each table, and what they are made of.
const NOTHING: u64 = 5 * 4096;

/// Pause before it is tried again to keep a ledger within its limits, in milliseconds: each attempt writes and syncs all
/// that its entries fold to, which helps nobody where the disk is full.
const AGAIN: u64 = 60_000;

impl Ledger {
    /// Begins a further file where the present one is full, and drops the oldest ones while the ledger is above
    /// its budget and they are receipted to their end. Appends an event for each.
    ///
    /// After an error nothing is done, and no error told, for a minute.
    ///
    /// # Errors
    ///
    /// [`KeepError`]: every entry is still there, and the next append goes where it should.
    pub fn keep_within_limits(&mut self) -> Result<(), KeepError> {
        let now = self.clock.monotonic_time();
        if self.unkept.is_some_and(|at| now.saturating_sub(at) < AGAIN) {
            return Ok(());
        }
        let kept = self.rotate_and_drop();
        self.unkept = kept.is_err().then_some(now);
        kept
    }

    fn rotate_and_drop(&mut self) -> Result<(), KeepError> {
        self.look()?;
        let rotated = if self.is_full()? { self.rotate() } else { Ok(()) };
        // What is dropped may be the room that a further file lacks.
        while self.drop_oldest()? {}
        rotated
    }

    /// Whether a further file is due. One that began with a large checkpoint would be full from its beginning: the entry
    /// that tells of it, and the receipt for that entry, would each bring on the next, without end.
    fn is_full(&self) -> Result<bool, StoreError> {
        let connection = self.connection()?;
        let began_with = NOTHING + Checkpoint::size(connection).map_err(at::<StoreError>(connection))?;
        Ok(self.size()? >= self.limits.file.max(2 * began_with))
    }

    /// Bytes of the file that is appended to, as they will be on disk.
    fn size(&self) -> Result<u64, StoreError> {
        let connection = self.connection()?;
        let pragma = |name| connection.pragma_query_value::<u64, _>(None, name, |row| row.get(0));
        let size = || Ok(pragma("page_count")? * pragma("page_size")?);
        size().map_err(at(connection))
    }

    /// Goes over to a further file: made whole under another name, and ours once it has its own.
    pub(in crate::ledger) fn rotate(&mut self) -> Result<(), KeepError> {
        let file = LedgerFile::beginning_with(&self.folder, self.head.number + 1);
        let unfinished = file.unfinished();
        let (head, event) = match self.make_next(&unfinished) {
            Ok(made) => made,
            Err(error) => {
                // It takes room that what is appended may need.
                let _left = files::remove(&unfinished);
                return Err(error);
            }
        };
        reach(Effect::LedgerRotate, Side::Before).map_err(failed("rename", &unfinished))?;
        fs::rename(&unfinished, &file.path).map_err(failed("rename", &unfinished))?;
        // From here on no entry may go into the file before.
        self.opened = None;
        self.closed.push(std::mem::replace(&mut self.current, file));
        self.head = head;
        self.state.fold(&event);
        reach(Effect::LedgerRotate, Side::After).map_err(failed("rename", &unfinished))?;
        self.opened = Some(connect(&self.current)?);
        Ok(())
    }

    /// A file that begins with what all entries so far fold to, and the entry that says so.
    fn make_next(&self, path: &Path) -> Result<(Head, Event), KeepError> {
        reach(Effect::LedgerMake, Side::Before).map_err(failed("make", path))?;
        files::remove(path).map_err(failed("remove", path))?;
        let state = checkpoint::encode(&self.state).map_err(KeepError::Checkpoint)?;
        let rotated = LedgerRotated { checkpoint: Bytes::copy_from_slice(&Digest::of(&state).0) };
        let event = self.stamp(None).event(self.head, Body::LedgerRotated(rotated));
        let kept = Checkpoint { number: self.head.number, hash: self.head.hash, state };
        let settled = settled(self.connection()?).map_err(at::<KeepError>(self.connection()?))?;
        let mut connection = Connection::open(path).map_err(|source| StoreError::new(path, source))?;
        schema::migrate(&mut connection)?;
        let fill = |connection: &mut Connection| {
            connection.pragma_update(None, "synchronous", "full")?;
            let transaction = connection.transaction()?;
            kept.write(&transaction)?;
            put_settled(&transaction, &self.head.chain, settled)?;
            let head = insert(&transaction, self.head, &event)?;
            transaction.commit()?;
            Ok(head)
        };
        let head = fill(&mut connection).map_err(|source| StoreError::new(path, source))?;
        connection.close().map_err(|(_, source)| StoreError::new(path, source))?;
        reach(Effect::LedgerMake, Side::After).map_err(failed("make", path))?;
        Ok((head, event))
    }

    /// Drops the oldest file where the ledger is above its budget and that file is receipted to its end. Returns
    /// whether it did.
    fn drop_oldest(&mut self) -> Result<bool, KeepError> {
        let Some((file, last)) = self.closed_with_last().next() else { return Ok(false) };
        let file = file.clone();
        let told = self.state.dropped >= last;
        if !told {
            let mut whole = self.size()?;
            for file in &self.closed {
                whole += file.size().map_err(failed("measure", &file.path))?;
            }
            if whole <= self.limits.budget || self.settled().map_err(KeepError::Read)? < last {
                return Ok(false);
            }
            let size = file.size().map_err(failed("measure", &file.path))?;
            // Told before it is done: a file that is missing and that no entry speaks of is damage.
            self.append(None, vec![Body::LedgerDropped(LedgerDropped { first: file.first, last, size })])?;
        }
        around(Effect::LedgerDrop, || file.remove()).map_err(failed("remove", &file.path))?;
        sync_folder(&self.folder)?;
        self.closed.remove(0);
        Ok(true)
    }
}

fn failed(what: &'static str, path: &Path) -> impl Fn(io::Error) -> KeepError + use<> {
    let path = path.to_owned();
    move |source| KeepError::File { what, path: path.clone(), source }
}

#[cfg(test)]
mod tests;
