//! Appending and reading. One statement writes a fact; there is no other.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use prost::Message as _;
use replicator_protocol::ids::{Digest, HostUid};
use replicator_protocol::wire::event::event::Body;
use replicator_protocol::wire::event::{ChainStarted, DeclarationRef, Event, LedgerSetAside};
use rusqlite::{Connection, OptionalExtension as _, params};

use super::error::{AppendError, OpenError, ReadError};
use super::projections::Fold as _;
use super::schema;
use super::state::State;
use super::verify::{Damage, Verified, kind_of, verify};
use crate::clock::Clock;
use crate::config::Layout;

/// The folder of the database and its side files, inside the agent's state folder. They stand in a folder of
/// their own so that one rename sets all of them aside: see `docs/decisions/0003-ledger-in-a-folder.md`.
const DATABASE: &str = "ledger";
/// The database inside that folder.
const FILE: &str = "ledger.db";
/// Held locked by the one process that writes.
const LOCK: &str = "ledger.lock";

/// One recorded event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// From 1, no gaps.
    pub number: u64,
    /// SHA-256 of `payload`.
    pub hash: Digest,
    /// The encoded event: what is hashed, and what travels.
    pub payload: Bytes,
}

/// The last entry of a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// 128 random bits.
    pub chain: [u8; 16],
    /// Its number; 0 for an empty chain.
    pub number: u64,
    /// Its hash; zeros for an empty chain.
    pub hash: Digest,
}

/// The log of one host, open for writing by this process alone.
pub struct Ledger {
    connection: Connection,
    host: HostUid,
    head: Head,
    state: State,
    clock: Arc<dyn Clock>,
    /// Released when the ledger is dropped, or when the process dies.
    _lock: File,
}

impl Ledger {
    /// Opens the ledger in `folder`, or starts one whose first event is [`ChainStarted`].
    ///
    /// The whole chain is checked first.
    ///
    /// # Errors
    ///
    /// See [`OpenError`]; an existing ledger is unchanged, apart from tables added by a newer format.
    pub fn open(folder: &Path, host: &HostUid, clock: Arc<dyn Clock>) -> Result<Self, OpenError> {
        Self::open_with(folder, host, clock, Body::ChainStarted(ChainStarted { agent_version: version() }))
    }

    fn open_with(folder: &Path, host: &HostUid, clock: Arc<dyn Clock>, first: Body) -> Result<Self, OpenError> {
        let lock = lock(&folder.join(LOCK))?;
        let connection = connect(&folder.join(DATABASE))?;
        sync_folder(folder)?;
        let Verified { number, hash, state } = verify(&connection).map_err(OpenError::Damaged)?;
        let identity = identity(&connection)?;
        let head = match identity {
            Some((found, _)) if found != host.as_str() => {
                return Err(OpenError::OtherHost { found, wanted: host.to_string() });
            }
            Some((_, chain)) => Head { chain, number, hash },
            None => Head { chain: new_chain()?, number, hash },
        };
        let mut ledger = Self { connection, host: host.clone(), head, state, clock, _lock: lock };
        if number == 0 {
            ledger.append(None, vec![first]).map_err(|AppendError(error)| error)?;
        }
        Ok(ledger)
    }

    /// Appends `bodies`, all or none, and returns the new head.
    ///
    /// They are on disk when this returns. `declaration` is the one they belong to, where they belong to one.
    ///
    /// # Errors
    ///
    /// [`AppendError`]: nothing of the batch was recorded, and the head is as before.
    pub fn append(&mut self, declaration: Option<&DeclarationRef>, bodies: Vec<Body>) -> Result<Head, AppendError> {
        let (wall_time, monotonic_time) = (self.clock.wall_time(), self.clock.monotonic_time());
        let boot_id = self.clock.boot_id();
        let (mut head, mut events) = (self.head, Vec::with_capacity(bodies.len()));
        let transaction = self.connection.transaction().map_err(AppendError)?;
        for body in bodies {
            let event = Event {
                host: self.host.to_string(),
                chain: Bytes::copy_from_slice(&head.chain),
                number: head.number + 1,
                previous: Bytes::copy_from_slice(&head.hash.0),
                wall_time,
                monotonic_time,
                boot_id: boot_id.clone(),
                declaration: declaration.cloned(),
                body: Some(body),
            };
            let payload = event.encode_to_vec();
            let hash = Digest::of(&payload);
            transaction
                .prepare_cached(
                    "INSERT INTO events (number, wall_time, kind, payload, previous, hash) VALUES (?, ?, ?, ?, ?, ?)",
                )
                .and_then(|mut insert| {
                    let kind = kind_of(&event).unwrap_or_default();
                    insert.execute(params![event.number, wall_time, kind, payload, head.hash.0, hash.0])
                })
                .map_err(AppendError)?;
            head = Head { number: event.number, hash, ..head };
            events.push(event);
        }
        transaction.commit().map_err(AppendError)?;
        self.head = head;
        events.iter().for_each(|event| self.state.fold(event));
        Ok(head)
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

    /// Up to `limit` entries after number `after`, in order.
    ///
    /// # Errors
    ///
    /// [`ReadError`].
    pub fn read_after(&self, after: u64, limit: u32) -> Result<Vec<Entry>, ReadError> {
        entries_after(&self.connection, after, limit)
    }

    /// How far a collector's receipt reaches; 0 before the first.
    ///
    /// # Errors
    ///
    /// [`ReadError`].
    pub fn settled(&self) -> Result<u64, ReadError> {
        self.connection
            .query_row("SELECT number FROM settled WHERE chain = ?", [self.head.chain], |row| row.get(0))
            .optional()
            .map(Option::unwrap_or_default)
            .map_err(ReadError)
    }

    /// Records a receipt for `number`, whose entry must have `hash`.
    ///
    /// A receipt lower than the one before counts: the collector was restored, and is sent what it lost. Number 0
    /// with a hash of zeros says that it has nothing.
    /// Returns whether the receipt speaks of an entry of this chain; if not, nothing was recorded.
    ///
    /// # Errors
    ///
    /// [`AppendError`]: nothing was recorded.
    pub fn settle(&mut self, number: u64, hash: Digest) -> Result<bool, AppendError> {
        let known = hash_of(&self.connection, number).map_err(AppendError)?;
        let nothing = number == 0 && hash.0 == [0; 32];
        if known != Some(hash) && !nothing {
            return Ok(false);
        }
        let update = "INSERT INTO settled (chain, number) VALUES (?, ?)
            ON CONFLICT (chain) DO UPDATE SET number = excluded.number";
        self.connection.execute(update, params![self.head.chain, number]).map_err(AppendError)?;
        Ok(true)
    }
}

/// Up to `limit` entries after number `after`, in order.
pub(super) fn entries_after(connection: &Connection, after: u64, limit: u32) -> Result<Vec<Entry>, ReadError> {
    let query = "SELECT number, hash, payload FROM events WHERE number > ? ORDER BY number LIMIT ?";
    let mut statement = connection.prepare_cached(query).map_err(ReadError)?;
    let entry = |row: &rusqlite::Row<'_>| {
        let payload = Bytes::from(row.get::<_, Vec<u8>>(2)?);
        Ok(Entry { number: row.get(0)?, hash: Digest(row.get(1)?), payload })
    };
    let rows = statement.query_map(params![after, limit], entry).map_err(ReadError)?;
    rows.collect::<Result<_, _>>().map_err(ReadError)
}

/// The hash of entry `number`, where there is one.
pub(super) fn hash_of(connection: &Connection, number: u64) -> rusqlite::Result<Option<Digest>> {
    let query = "SELECT hash FROM events WHERE number = ?";
    connection.query_row(query, [number], |row| row.get(0).map(Digest)).optional()
}

/// Sets a damaged ledger aside, never overwriting it, and starts a new chain whose first event names the last
/// good entry of the old one.
///
/// # Errors
///
/// See [`OpenError`]; the damaged files are either all where they were or all set aside.
pub fn set_aside(folder: &Path, host: &HostUid, clock: Arc<dyn Clock>, damage: &Damage) -> Result<Ledger, OpenError> {
    let held = lock(&folder.join(LOCK))?;
    let database = folder.join(DATABASE);
    let last_good = last_good(&database.join(FILE), damage.last_good());
    let kept = (1_u32..)
        .map(|attempt| folder.join(format!("{DATABASE}.damaged-{attempt}")))
        .find(|path| !path.exists())
        .unwrap_or_else(|| folder.join(format!("{DATABASE}.damaged")));
    fs::rename(&database, &kept).map_err(|source| OpenError::File { path: database, source })?;
    sync_folder(folder)?;
    drop(held);
    let head = last_good.unwrap_or(Head { chain: [0; 16], number: 0, hash: Digest([0; 32]) });
    let first = Body::LedgerSetAside(LedgerSetAside {
        reason: damage.to_string(),
        last_good_chain: Bytes::copy_from_slice(&head.chain),
        last_good_number: head.number,
        last_good_hash: Bytes::copy_from_slice(&head.hash.0),
    });
    Ledger::open_with(folder, host, clock, first)
}

/// Whether another process writes the ledger: an agent runs here.
///
/// # Errors
///
/// [`OpenError::File`] where the lock cannot be looked at.
pub fn is_held(layout: &Layout) -> Result<bool, OpenError> {
    let path = layout.ledger_lock();
    if !path.exists() {
        return Ok(false);
    }
    match lock(&path) {
        Ok(_released) => Ok(false),
        Err(OpenError::Locked(_)) => Ok(true),
        Err(error) => Err(error),
    }
}

fn version() -> String {
    env!("CARGO_PKG_VERSION").to_owned()
}

fn lock(path: &Path) -> Result<File, OpenError> {
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)
        .map_err(|source| OpenError::File { path: path.to_owned(), source })?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(fs::TryLockError::WouldBlock) => Err(OpenError::Locked(path.to_owned())),
        Err(fs::TryLockError::Error(source)) => Err(OpenError::File { path: path.to_owned(), source }),
    }
}

fn connect(folder: &Path) -> Result<Connection, OpenError> {
    match fs::DirBuilder::new().mode(0o700).create(folder) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(source) => return Err(OpenError::File { path: folder.to_owned(), source }),
    }
    let mut connection = Connection::open(folder.join(FILE))?;
    // `FULL` syncs the write-ahead log at every commit: what is appended survives a power cut.
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", "full")?;
    schema::migrate(&mut connection)?;
    Ok(connection)
}

/// Host and chain of the first entry, which [`verify`] has found to be those of every entry.
fn identity(connection: &Connection) -> rusqlite::Result<Option<(String, [u8; 16])>> {
    let payload: Option<Vec<u8>> =
        connection.query_row("SELECT payload FROM events ORDER BY number LIMIT 1", [], |row| row.get(0)).optional()?;
    let event = payload.and_then(|payload| Event::decode(&payload[..]).ok());
    Ok(event.and_then(|event| Some((event.host, event.chain[..].try_into().ok()?))))
}

fn last_good(path: &Path, number: u64) -> Option<Head> {
    let connection = Connection::open(path).ok()?;
    let (_, chain) = identity(&connection).ok()??;
    let hash = hash_of(&connection, number).ok()??;
    Some(Head { chain, number, hash })
}

fn new_chain() -> Result<[u8; 16], OpenError> {
    let mut chain = [0; 16];
    getrandom::fill(&mut chain).map_err(|_| OpenError::File {
        path: PathBuf::from("/dev/urandom"),
        source: io::Error::other("the kernel gives no random bytes"),
    })?;
    Ok(chain)
}

fn sync_folder(folder: &Path) -> Result<(), OpenError> {
    let synced = File::open(folder).and_then(|file| file.sync_all());
    synced.map_err(|source| OpenError::File { path: folder.to_owned(), source })
}

#[cfg(test)]
mod tests;
