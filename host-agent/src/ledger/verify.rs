//! Whether a ledger is what was written: every number there once, every hash that of its entry, every entry
//! behind the one it names.

use std::path::Path;

use prost::Message as _;
use replicator_protocol::ids::Digest;
use replicator_protocol::wire::event::Event;
use replicator_protocol::wire::event::event::Body;
use rusqlite::Connection;

use super::checkpoint::{self, Checkpoint};
use super::damage::Damage;
use super::entry::kind_of;
use super::error::{StoreError, VerifyError};
use super::files::LedgerFile;
use super::projections::Fold as _;
use super::state::State;

/// A log that is what was written.
#[derive(Debug)]
pub struct Verified {
    /// Number of the first entry that is kept: those before it were dropped. 1 for a log that lost none.
    pub first: u64,
    /// Number of the last entry; 0 for an empty log.
    pub number: u64,
    /// Its hash; zeros for an empty log.
    pub hash: Digest,
    /// What its events fold to, from the checkpoint that is kept of those before them.
    pub state: State,
    /// Host and chain, the same in every entry; none in an empty log.
    pub identity: Option<(String, Vec<u8>)>,
}

impl Verified {
    /// Nothing read yet.
    pub(super) fn nothing() -> Self {
        Self { first: 1, number: 0, hash: Digest([0; 32]), state: State::default(), identity: None }
    }

    /// Reads the next file and checks it behind those before it, without changing anything.
    ///
    /// # Errors
    ///
    /// The first damage, or that the file could not be read.
    pub(super) fn take(&mut self, file: &LedgerFile, connection: &Connection) -> Result<(), VerifyError> {
        let good = self.number;
        let failed = |source| told(StoreError::new(&file.path, source), good);
        let health: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0)).map_err(failed)?;
        if health != "ok" {
            return Err(damaged(&file.path, health, good));
        }
        let kept = if file.first > 1 { Checkpoint::read(connection).map_err(failed)? } else { None };
        match &kept {
            Some(kept) => self.stand_behind(file, kept)?,
            None if file.first > 1 => return Err(damaged(&file.path, "it has no checkpoint".into(), good)),
            None => {}
        }
        let mut statement = connection
            .prepare("SELECT number, kind, payload, previous, hash, wall_time FROM events ORDER BY number")
            .map_err(failed)?;
        let mut rows = statement.query([]).map_err(failed)?;
        while let Some(row) = rows.next().map_err(|source| told(StoreError::new(&file.path, source), self.number))? {
            let row = Row::of(row).map_err(|source| self.unreadable(StoreError::new(&file.path, source)))?;
            let event = row.follows((self.number, self.hash), &mut self.identity)?;
            if let Some(kept) = kept.as_ref().filter(|_| row.number == file.first) {
                names(&event, kept)?;
            }
            (self.number, self.hash) = (row.number, Digest(row.hash));
            self.state.fold(&event);
        }
        if self.number < file.first && kept.is_some() {
            return Err(Damage::Missing { first: file.first, last: file.first }.into());
        }
        Ok(())
    }

    /// What an entry is whose columns cannot be read.
    fn unreadable(&self, error: StoreError) -> VerifyError {
        if error.is_damage() {
            Damage::Altered { number: self.number + 1, what: "its columns hold what no entry has" }.into()
        } else {
            VerifyError::Store(error)
        }
    }

    /// Checks a file's checkpoint against what was read so far, or begins with it.
    fn stand_behind(&mut self, file: &LedgerFile, kept: &Checkpoint) -> Result<(), VerifyError> {
        let altered = |what| Err(Damage::Altered { number: file.first, what }.into());
        if kept.number + 1 != file.first {
            return altered("its file's checkpoint speaks of another entry");
        }
        if self.number == 0 {
            let Some(state) = checkpoint::decode(&kept.state) else {
                return altered("its file's checkpoint cannot be read");
            };
            (self.first, self.number, self.hash, self.state) = (file.first, kept.number, kept.hash, state);
        }
        if kept.number > self.number {
            return Err(Damage::Missing { first: self.number + 1, last: kept.number }.into());
        }
        if (kept.number, kept.hash) != (self.number, self.hash) {
            return altered("its file's checkpoint does not follow the entry before it");
        }
        Ok(())
    }

    /// Ends the reading: what is no longer there was dropped, and the ledger says so.
    ///
    /// # Errors
    ///
    /// [`Damage::Missing`].
    pub(super) fn end(self) -> Result<Self, VerifyError> {
        let (first, dropped) = (self.first, self.state.dropped);
        if dropped + 1 < first {
            return Err(Damage::Missing { first: dropped + 1, last: first - 1 }.into());
        }
        Ok(self)
    }
}

/// Whether an event, the first of its file, names this checkpoint as the one before it.
fn names(event: &Event, kept: &Checkpoint) -> Result<(), Damage> {
    match &event.body {
        Some(Body::LedgerRotated(rotated)) if rotated.checkpoint[..] == Digest::of(&kept.state).0 => Ok(()),
        Some(_) | None => {
            Err(Damage::Altered { number: kept.number + 1, what: "it does not name its file's checkpoint" })
        }
    }
}

fn told(error: StoreError, last_good: u64) -> VerifyError {
    if error.is_damage() { error.damage(last_good).into() } else { VerifyError::Store(error) }
}

fn damaged(path: &Path, what: String, last_good: u64) -> VerifyError {
    Damage::File { path: path.to_owned(), what, last_good }.into()
}

struct Row {
    number: u64,
    kind: u32,
    payload: Vec<u8>,
    previous: [u8; 32],
    hash: [u8; 32],
    wall_time: u64,
}

impl Row {
    fn of(row: &rusqlite::Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            number: row.get(0)?,
            kind: row.get(1)?,
            payload: row.get(2)?,
            previous: row.get(3)?,
            hash: row.get(4)?,
            wall_time: row.get(5)?,
        })
    }

    /// Checks this row behind `last`; `identity` is the host and chain of the first entry.
    fn follows(
        &self,
        (last, last_hash): (u64, Digest),
        identity: &mut Option<(String, Vec<u8>)>,
    ) -> Result<Event, Damage> {
        let number = self.number;
        let altered = |what| Err(Damage::Altered { number, what });
        if number != last + 1 {
            return Err(Damage::Missing { first: last + 1, last: number.saturating_sub(1) });
        }
        if Digest::of(&self.payload).0 != self.hash {
            return altered("its hash is not that of its bytes");
        }
        let Ok(event) = Event::decode(&self.payload[..]) else {
            return altered("its bytes are no event");
        };
        let place = (event.number, &event.previous[..], event.wall_time, kind_of(&event));
        if place != (number, &self.previous[..], self.wall_time, Some(self.kind)) {
            return altered("its columns are not those of its bytes");
        }
        if self.previous != last_hash.0 {
            return altered("it does not follow the entry before it");
        }
        let own = (event.host.clone(), event.chain.to_vec());
        if *identity.get_or_insert_with(|| own.clone()) != own {
            return altered("it belongs to another host or chain");
        }
        Ok(event)
    }
}
