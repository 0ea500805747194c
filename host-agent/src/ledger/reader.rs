//! Reading a ledger without holding it: for commands that only look, while an agent may be running.

use std::path::Path;

use bytes::Bytes;
use replicator_protocol::ids::Digest;
use rusqlite::{Connection, OpenFlags, OptionalExtension as _};

use super::error::ReadError;
use super::log::Entry;
use super::verify::{Damage, verify};

/// A ledger open for reading.
pub struct Reader(Connection);

impl Reader {
    /// Opens the database at `path`; `None` where there is none.
    ///
    /// # Errors
    ///
    /// [`ReadError`].
    pub fn open(path: &Path) -> Result<Option<Self>, ReadError> {
        if !path.exists() {
            return Ok(None);
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        Connection::open_with_flags(path, flags).map(Self).map(Some).map_err(ReadError)
    }

    /// Checks the whole chain; returns number and hash of the last entry.
    ///
    /// # Errors
    ///
    /// The first [`Damage`].
    pub fn verify(&self) -> Result<(u64, Digest), Damage> {
        verify(&self.0)
    }

    /// Up to `limit` entries after number `after`, in order.
    ///
    /// # Errors
    ///
    /// [`ReadError`].
    pub fn read_after(&self, after: u64, limit: u32) -> Result<Vec<Entry>, ReadError> {
        let query = "SELECT number, hash, payload FROM events WHERE number > ? ORDER BY number LIMIT ?";
        let mut statement = self.0.prepare_cached(query).map_err(ReadError)?;
        let entry = |row: &rusqlite::Row<'_>| {
            let payload = Bytes::from(row.get::<_, Vec<u8>>(2)?);
            Ok(Entry { number: row.get(0)?, hash: Digest(row.get(1)?), payload })
        };
        let rows = statement.query_map(rusqlite::params![after, limit], entry).map_err(ReadError)?;
        rows.collect::<Result<_, _>>().map_err(ReadError)
    }

    /// The hash of entry `number`, where there is one.
    ///
    /// # Errors
    ///
    /// [`ReadError`].
    pub fn hash_of(&self, number: u64) -> Result<Option<Digest>, ReadError> {
        let query = "SELECT hash FROM events WHERE number = ?";
        self.0.query_row(query, [number], |row| row.get(0).map(Digest)).optional().map_err(ReadError)
    }

    /// The number of the last entry; 0 for an empty ledger.
    ///
    /// # Errors
    ///
    /// [`ReadError`].
    pub fn last(&self) -> Result<u64, ReadError> {
        let query = "SELECT coalesce(max(number), 0) FROM events";
        self.0.query_row(query, [], |row| row.get(0)).map_err(ReadError)
    }

    /// How far a collector's receipt reaches; 0 before the first.
    ///
    /// # Errors
    ///
    /// [`ReadError`].
    pub fn settled(&self) -> Result<u64, ReadError> {
        let query = "SELECT coalesce(max(number), 0) FROM settled";
        self.0.query_row(query, [], |row| row.get(0)).map_err(ReadError)
    }
}
