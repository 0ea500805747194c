//! Appending and reading. One statement writes a fact; there is no other.

mod keeping;
mod opening;
mod place;

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use replicator_protocol::event_words;
use replicator_protocol::ids::{Digest, HostUid};
use replicator_protocol::wire::event::event::Body;
use replicator_protocol::wire::event::{DeclarationRef, Event};
use rusqlite::Connection;

use super::checkpoint::Checkpoint;
use super::entry::{Entry, Head};
use super::error::{AppendError, ReadError, StoreError, at};
use super::files::LedgerFile;
use super::lock::Hold;
use super::opened::Opened;
use super::projections::Fold as _;
use super::rows::{entries_after, hash_of, insert, put_settled, settled};
use super::sized;
use super::state::State;
use crate::clock::Clock;

/// How large a ledger and its files grow, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// From here on a further file is begun, unless more than half of this one is what it began with: then when it has
    /// grown by as much again. What one append adds may go beyond it.
    pub file: u64,
    /// Above this, oldest files are dropped, as far as they are receipted.
    pub budget: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { file: 64 << 20, budget: 1 << 30 }
    }
}

/// The log of one host, open for writing by this process alone.
pub struct Ledger {
    folder: PathBuf,
    /// Files that are appended to no longer, oldest first.
    closed: Vec<LedgerFile>,
    /// The one that is appended to.
    current: LedgerFile,
    /// `current`; none where it could not be opened when it was begun: the next append tries again.
    opened: Option<Opened>,
    host: HostUid,
    head: Head,
    state: State,
    clock: Arc<dyn Clock>,
    limits: Limits,
    /// When the ledger could not be kept within its limits, where it was not since; on the monotonic clock.
    unkept: Option<u64>,
    /// Released when the ledger is dropped, or when the process dies.
    _hold: Hold,
}

impl Ledger {
    /// The same ledger with other limits; they hold from the next [`Ledger::keep_within_limits`] on.
    #[must_use]
    pub fn within(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// Appends `bodies`, all or none, and returns the new head.
    ///
    /// They are on disk when this returns. `declaration` is the one they belong to, where they belong to one. A body that
    /// is larger than an event may be is told by several, or without what others say already.
    ///
    /// # Errors
    ///
    /// [`AppendError`]: nothing of the batch was recorded, and the head is as before.
    pub fn append(&mut self, declaration: Option<&DeclarationRef>, bodies: Vec<Body>) -> Result<Head, AppendError> {
        let bodies: Vec<_> = bodies.into_iter().flat_map(sized::fit).collect();
        if let Some(body) = bodies.iter().find(|body| sized::size(body) > sized::BODY_MAX) {
            return Err(AppendError::TooLarge { kind: event_words::kind(body), size: sized::size(body) });
        }
        self.look()?;
        let (mut head, mut events) = (self.head, Vec::with_capacity(bodies.len()));
        let stamp = self.stamp(declaration);
        let connection = self.connection_mut()?;
        let failed = at::<AppendError>(connection);
        let transaction = connection.transaction().map_err(&failed)?;
        for body in bodies {
            let event = stamp.event(head, body);
            head = insert(&transaction, head, &event).map_err(&failed)?;
            events.push(event);
        }
        transaction.commit().map_err(&failed)?;
        self.head = head;
        events.iter().for_each(|event| self.state.fold(event));
        Ok(head)
    }

    fn stamp(&self, declaration: Option<&DeclarationRef>) -> Stamp {
        Stamp {
            host: self.host.to_string(),
            wall_time: self.clock.wall_time(),
            monotonic_time: self.clock.monotonic_time(),
            boot_id: self.clock.boot_id(),
            declaration: declaration.cloned(),
        }
    }

    /// The last entry.
    #[must_use]
    pub fn head(&self) -> Head {
        self.head
    }

    /// What all entries fold to.
    #[must_use]
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Up to `limit` entries after number `after`, in order, as far as they are kept.
    ///
    /// # Errors
    ///
    /// [`ReadError`].
    pub fn read_after(&self, after: u64, limit: u32) -> Result<Vec<Entry>, ReadError> {
        let mut entries = Vec::new();
        let left = |entries: &Vec<Entry>| limit.saturating_sub(u32::try_from(entries.len()).unwrap_or(u32::MAX));
        for (file, last) in self.closed_with_last() {
            if last > after && left(&entries) > 0 {
                entries.extend(entries_after(&file.open()?, after, left(&entries))?);
            }
        }
        if left(&entries) > 0 {
            entries.extend(entries_after(self.connection()?, after, left(&entries))?);
        }
        Ok(entries)
    }

    /// How far a collector's receipt reaches; 0 before the first.
    ///
    /// # Errors
    ///
    /// [`ReadError`].
    pub fn settled(&self) -> Result<u64, ReadError> {
        let connection = self.connection()?;
        settled(connection).map_err(at(connection))
    }

    /// Records a receipt for `number`, whose entry must have `hash`.
    ///
    /// A receipt lower than the one before counts: the collector was restored, and is sent what it lost. Number 0
    /// with a hash of zeros says that it has nothing.
    /// Returns whether the receipt speaks of an entry of this chain; if not, nothing was recorded. Of entries that
    /// were dropped, only the last is known still.
    ///
    /// # Errors
    ///
    /// [`AppendError`]: nothing was recorded.
    pub fn settle(&mut self, number: u64, hash: Digest) -> Result<bool, AppendError> {
        self.look()?;
        let nothing = number == 0 && hash.0 == [0; 32];
        if !nothing && self.hash_of(number)? != Some(hash) {
            return Ok(false);
        }
        let connection = self.connection()?;
        put_settled(connection, &self.head.chain, number).map_err(at::<AppendError>(connection))?;
        Ok(true)
    }

    fn hash_of(&self, number: u64) -> Result<Option<Digest>, StoreError> {
        let oldest = self.closed.first().unwrap_or(&self.current);
        let holder = self.closed_with_last().find(|(_, last)| number <= *last);
        let opened = holder.map(|(file, _)| file.open()).transpose()?;
        let connection = match &opened {
            Some(connection) => connection,
            None => self.connection()?,
        };
        if oldest.first > 1 && number + 1 == oldest.first {
            let kept = Checkpoint::read(connection).map_err(at::<StoreError>(connection))?;
            return Ok(kept.map(|kept| kept.hash));
        }
        hash_of(connection, number).map_err(at(connection))
    }

    /// Closed files with the number of their last entry.
    fn closed_with_last(&self) -> impl Iterator<Item = (&LedgerFile, u64)> {
        let next = self.closed.iter().skip(1).chain([&self.current]);
        self.closed.iter().zip(next).map(|(file, next)| (file, next.first - 1))
    }

    fn connection(&self) -> Result<&Connection, StoreError> {
        self.opened.as_ref().map(|opened| &opened.connection).ok_or_else(|| not_open(&self.current))
    }

    fn connection_mut(&mut self) -> Result<&mut Connection, StoreError> {
        self.opened.as_mut().map(|opened| &mut opened.connection).ok_or_else(|| not_open(&self.current))
    }
}

fn not_open(file: &LedgerFile) -> StoreError {
    let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CANTOPEN);
    let why = "it could not be opened when it was begun".to_owned();
    StoreError::new(&file.path, rusqlite::Error::SqliteFailure(code, Some(why)))
}

/// What every event of one batch says.
struct Stamp {
    host: String,
    wall_time: u64,
    monotonic_time: u64,
    boot_id: String,
    declaration: Option<DeclarationRef>,
}

impl Stamp {
    /// The event with this body that follows `head`.
    fn event(&self, head: Head, body: Body) -> Event {
        Event {
            host: self.host.clone(),
            chain: Bytes::copy_from_slice(&head.chain),
            number: head.number + 1,
            previous: Bytes::copy_from_slice(&head.hash.0),
            wall_time: self.wall_time,
            monotonic_time: self.monotonic_time,
            boot_id: self.boot_id.clone(),
            declaration: self.declaration.clone(),
            body: Some(body),
        }
    }
}

#[cfg(test)]
mod tests;
