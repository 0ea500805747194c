//! `events.db`: what hosts said, as they signed it. Append-only, synced at every commit, backed up.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use replicator_protocol::ids::{Digest, HostUid};
use replicator_protocol::strict;
use replicator_protocol::wire::event::{Event, EventBatch};
use rusqlite::{Connection, OptionalExtension as _, Transaction, TransactionBehavior, params};

use super::chain::{self, Fault, Head};
use crate::point::{self, Effect};

mod error;
mod file;
mod fills;

pub use error::StoreError;
pub use file::Mended;
use file::Opened;

/// What every build had.
const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS batches (
        id INTEGER PRIMARY KEY, host TEXT NOT NULL, received INTEGER NOT NULL, envelope BLOB NOT NULL) STRICT;
    CREATE TABLE IF NOT EXISTS events (
        position INTEGER PRIMARY KEY, host TEXT NOT NULL, chain BLOB NOT NULL, number INTEGER NOT NULL,
        hash BLOB NOT NULL, body BLOB NOT NULL, batch INTEGER NOT NULL REFERENCES batches (id),
        UNIQUE (host, chain, number)) STRICT;
    CREATE INDEX IF NOT EXISTS events_of_host ON events (host, position);
    CREATE TABLE IF NOT EXISTS faults (
        id INTEGER PRIMARY KEY, host TEXT NOT NULL, received INTEGER NOT NULL, code TEXT NOT NULL,
        says TEXT NOT NULL, evidence BLOB NOT NULL UNIQUE) STRICT;
    CREATE TABLE IF NOT EXISTS heartbeats (
        host TEXT PRIMARY KEY, received INTEGER NOT NULL, envelope BLOB NOT NULL) STRICT;
    CREATE TRIGGER IF NOT EXISTS events_stay BEFORE UPDATE ON events
        BEGIN SELECT raise(ABORT, 'events are never changed'); END;
    CREATE TRIGGER IF NOT EXISTS events_are_kept BEFORE DELETE ON events
        BEGIN SELECT raise(ABORT, 'events are never deleted'); END;
    CREATE TRIGGER IF NOT EXISTS batches_stay BEFORE UPDATE ON batches
        BEGIN SELECT raise(ABORT, 'batches are never changed'); END;
    CREATE TRIGGER IF NOT EXISTS batches_are_kept BEFORE DELETE ON batches
        BEGIN SELECT raise(ABORT, 'batches are never deleted'); END;
    -- Without these, INSERT OR REPLACE would remove a row and fire no trigger of removal.
    CREATE TRIGGER IF NOT EXISTS events_are_not_replaced BEFORE INSERT ON events
        WHEN EXISTS (SELECT 1 FROM events WHERE position = NEW.position
            OR (host = NEW.host AND chain = NEW.chain AND number = NEW.number))
        BEGIN SELECT raise(ABORT, 'events are never replaced'); END;
    CREATE TRIGGER IF NOT EXISTS batches_are_not_replaced BEFORE INSERT ON batches
        WHEN EXISTS (SELECT 1 FROM batches WHERE id = NEW.id)
        BEGIN SELECT raise(ABORT, 'batches are never replaced'); END;
";

/// A stored event.
#[derive(Debug, Clone, PartialEq)]
pub struct Stored {
    /// Its place among all events of all hosts; grows, without meaning between hosts.
    pub position: u64,
    /// Its hash.
    pub hash: Digest,
    /// When it came in, in milliseconds since the Unix epoch.
    pub received: u64,
    /// What it says.
    pub event: Event,
}

/// A batch to be stored: verified, and with the envelope it came in.
pub struct Incoming {
    /// Whose.
    pub host: HostUid,
    /// What was verified, or why it was not.
    pub batch: Result<EventBatch, Fault>,
    /// The bytes it came in.
    pub envelope: Bytes,
}

/// What became of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// How far its chain is stored now, where it names one.
    pub head: Option<Head>,
    /// Events that were not there before.
    pub new: u64,
    /// Why not all of it was stored.
    pub fault: Option<Fault>,
}

/// The collector's store.
pub struct Store {
    opened: Mutex<Opened>,
    path: PathBuf,
}

impl Store {
    /// Opens `path`, making it where it is absent. One of an earlier build is given what it lacks.
    ///
    /// # Errors
    ///
    /// [`StoreError::Damaged`] where it is no sound database; else [`StoreError::Folder`] or [`StoreError::Sqlite`].
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let opened = file::open(path)?;
        Ok(Self { opened: Mutex::new(opened), path: path.to_owned() })
    }

    /// Opens `path`, which must be there, for reading only. What one of an earlier build lacks is empty.
    ///
    /// # Errors
    ///
    /// [`StoreError::Absent`], [`StoreError::Damaged`] or [`StoreError::Sqlite`].
    pub fn read_only(path: &Path) -> Result<Self, StoreError> {
        let opened = file::open_to_read(path)?;
        Ok(Self { opened: Mutex::new(opened), path: path.to_owned() })
    }

    /// Stores `incoming`, received at `now`, and says of each what became of it. All of it is on disk when this
    /// returns.
    ///
    /// # Errors
    ///
    /// [`StoreError::Sqlite`]; nothing was stored, and nothing may be receipted.
    pub fn append(&self, incoming: &[Incoming], now: u64) -> Result<Vec<Kept>, StoreError> {
        let mut opened = self.lock();
        let connection = &mut opened.connection;
        let mut append = || {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let mut kept = Vec::with_capacity(incoming.len());
            for one in incoming {
                kept.push(keep(&transaction, one, now)?);
            }
            transaction.commit()?;
            Ok(kept)
        };
        let kept = append().map_err(|source| self.failed("write", source))?;
        point::behind(Effect::BatchStore);
        Ok(kept)
    }

    /// The head of the chain each host spoke of last, by host.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    pub fn heads(&self) -> Result<Vec<(HostUid, Head)>, StoreError> {
        let query = "SELECT host, chain, number, hash FROM events
            WHERE position IN (SELECT max(position) FROM events GROUP BY host) ORDER BY host";
        let opened = self.lock();
        let connection = &opened.connection;
        let read = || {
            let mut statement = connection.prepare(query)?;
            let rows = statement.query_map([], |row| {
                let head = Head { chain: row.get(1)?, number: row.get(2)?, hash: Digest(row.get(3)?) };
                Ok((row.get::<_, String>(0)?, head))
            })?;
            rows.collect::<Result<Vec<_>, _>>()
        };
        let rows = read().map_err(|source| self.failed("read", source))?;
        Ok(rows.into_iter().filter_map(|(host, head)| Some((HostUid::parse(&host).ok()?, head))).collect())
    }

    /// The place of event `number` of `chain` of `host`, where it is stored.
    ///
    /// # Errors
    ///
    /// [`StoreError::Sqlite`].
    pub fn position(&self, host: &HostUid, chain: &[u8], number: u64) -> Result<Option<u64>, StoreError> {
        let query = "SELECT position FROM events WHERE host = ? AND chain = ? AND number = ?";
        let opened = self.lock();
        let connection = &opened.connection;
        let read = connection.query_row(query, params![host.as_str(), chain, number], |row| row.get(0)).optional();
        read.map_err(|source| self.failed("read", source))
    }

    /// Up to `limit` events after `position`, of `host` where given, in the order they were stored.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    pub fn events_after(&self, position: u64, host: Option<&HostUid>, limit: u32) -> Result<Vec<Stored>, StoreError> {
        let query = "SELECT events.position, events.hash, batches.received, events.body
            FROM events JOIN batches ON batches.id = events.batch
            WHERE events.position > ?1 AND (?2 IS NULL OR events.host = ?2) ORDER BY events.position LIMIT ?3";
        let opened = self.lock();
        let connection = &opened.connection;
        let read = || {
            let mut statement = connection.prepare_cached(query)?;
            let rows = statement.query_map(params![position, host.map(HostUid::as_str), limit], |row| {
                let body: Vec<u8> = row.get(3)?;
                Ok((row.get(0)?, Digest(row.get(1)?), row.get(2)?, body))
            })?;
            rows.collect::<Result<Vec<_>, _>>()
        };
        let rows = read().map_err(|source| self.failed("read", source))?;
        let stored = |(position, hash, received, body): (u64, Digest, u64, Vec<u8>)| {
            let event = strict::decode(&body).map_err(|_| match Digest::of(&body) == hash {
                // It was stored so: by a build that knew more.
                true => StoreError::Newer { path: self.path.clone(), position },
                false => altered(&self.path, position),
            })?;
            Ok(Stored { position, hash, received, event })
        };
        rows.into_iter().map(stored).collect()
    }

    /// Keeps the heartbeat `envelope` of `host`, in place of the one before.
    ///
    /// # Errors
    ///
    /// [`StoreError::Sqlite`].
    pub fn keep_heartbeat(&self, host: &HostUid, envelope: &Bytes, now: u64) -> Result<(), StoreError> {
        let query = "INSERT INTO heartbeats (host, received, envelope) VALUES (?, ?, ?)
            ON CONFLICT (host) DO UPDATE SET received = excluded.received, envelope = excluded.envelope";
        let kept = self.lock().connection.execute(query, params![host.as_str(), now, &envelope[..]]);
        kept.map_err(|source| self.failed("write", source))?;
        point::behind(Effect::HeartbeatKeep);
        Ok(())
    }

    /// The last heartbeat of each host, with when it came.
    ///
    /// # Errors
    ///
    /// [`StoreError::Sqlite`].
    pub fn heartbeats(&self) -> Result<Vec<(HostUid, u64, Bytes)>, StoreError> {
        let opened = self.lock();
        let connection = &opened.connection;
        let read = || {
            let mut statement = connection.prepare("SELECT host, received, envelope FROM heartbeats ORDER BY host")?;
            let rows = statement.query_map([], |row| {
                Ok((row.get::<_, String>(0)?, row.get::<_, u64>(1)?, Bytes::from(row.get::<_, Vec<u8>>(2)?)))
            })?;
            rows.collect::<Result<Vec<_>, _>>()
        };
        let rows = read().map_err(|source| self.failed("read", source))?;
        Ok(rows.into_iter().filter_map(|(host, at, bytes)| Some((HostUid::parse(&host).ok()?, at, bytes))).collect())
    }

    /// What was not stored, and why: host, when, code, words; oldest first.
    ///
    /// # Errors
    ///
    /// [`StoreError::Sqlite`].
    pub fn faults(&self) -> Result<Vec<(String, u64, String, String)>, StoreError> {
        let opened = self.lock();
        let connection = &opened.connection;
        let read = || {
            let mut statement = connection.prepare("SELECT host, received, code, says FROM faults ORDER BY id")?;
            let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?;
            rows.collect::<Result<Vec<_>, _>>()
        };
        read().map_err(|source| self.failed("read", source))
    }

    fn failed(&self, act: &'static str, source: rusqlite::Error) -> StoreError {
        StoreError::of(act, &self.path, source)
    }

    fn lock(&self) -> MutexGuard<'_, Opened> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The event at `position` of `path` is not the one that was stored.
fn altered(path: &Path, position: u64) -> StoreError {
    StoreError::Damaged { path: path.to_owned(), what: format!("the event at {position} was altered") }
}

fn keep(transaction: &Transaction<'_>, incoming: &Incoming, now: u64) -> rusqlite::Result<Kept> {
    let read = incoming.batch.clone().and_then(|batch| chain::linked(&batch, &incoming.host).map_err(Fault::Refused));
    let (chain, linked) = match read {
        Ok(read) => read,
        Err(fault) => return note(transaction, incoming, None, fault, now),
    };
    let host = incoming.host.as_str();
    let head = head(transaction, host, chain)?;
    for known in linked.iter().take_while(|one| one.event.number <= head.number) {
        let hash: Option<[u8; 32]> = transaction
            .prepare_cached("SELECT hash FROM events WHERE host = ? AND chain = ? AND number = ?")?
            .query_row(params![host, chain, known.event.number], |row| row.get(0))
            .optional()?;
        if hash != Some(known.hash.0) {
            return note(transaction, incoming, Some(head), Fault::Fork { number: known.event.number }, now);
        }
    }
    let new = match chain::after(&head, &linked) {
        Ok(new) => new,
        Err(fault) => return note(transaction, incoming, Some(head), fault, now),
    };
    let Some(last) = new.last() else { return Ok(Kept { head: Some(head), new: 0, fault: None }) };
    transaction.prepare_cached("INSERT INTO batches (host, received, envelope) VALUES (?, ?, ?)")?.execute(params![
        host,
        now,
        &incoming.envelope[..]
    ])?;
    let batch = transaction.last_insert_rowid();
    for one in new {
        transaction
            .prepare_cached("INSERT INTO events (host, chain, number, hash, body, batch) VALUES (?, ?, ?, ?, ?, ?)")?
            .execute(params![host, chain, one.event.number, one.hash.0, &one.bytes[..], batch])?;
    }
    let head = Head { chain, number: last.event.number, hash: last.hash };
    Ok(Kept { head: Some(head), new: new.len() as u64, fault: None })
}

fn head(connection: &Connection, host: &str, chain: [u8; 16]) -> rusqlite::Result<Head> {
    let last = connection
        .prepare_cached("SELECT number, hash FROM events WHERE host = ? AND chain = ? ORDER BY number DESC LIMIT 1")?
        .query_row(params![host, chain], |row| Ok((row.get(0)?, Digest(row.get(1)?))))
        .optional()?;
    Ok(last.map_or(Head::empty(chain), |(number, hash)| Head { chain, number, hash }))
}

/// Notes what was not stored, once; of two histories the second is kept whole, as evidence.
fn note(
    transaction: &Transaction<'_>,
    incoming: &Incoming,
    head: Option<Head>,
    fault: Fault,
    now: u64,
) -> rusqlite::Result<Kept> {
    let digest = Digest::of(&incoming.envelope);
    let evidence = match &fault {
        Fault::Fork { .. } => &incoming.envelope[..],
        Fault::Refused(_) | Fault::Gap { .. } => &digest.0[..],
    };
    transaction
        .prepare_cached("INSERT OR IGNORE INTO faults (host, received, code, says, evidence) VALUES (?, ?, ?, ?, ?)")?
        .execute(params![incoming.host.as_str(), now, fault.code(), fault.says(), evidence])?;
    Ok(Kept { head, new: 0, fault: Some(fault) })
}

#[cfg(test)]
mod tests;
