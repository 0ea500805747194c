//! Reading a ledger without holding it: for commands that only look, while an agent may be running.

use std::path::Path;

use replicator_protocol::ids::Digest;
use rusqlite::{Connection, OpenFlags};

use super::error::ReadError;
use super::log::{Entry, entries_after, hash_of};
use super::verify::{Damage, Verified, verify};

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

    /// Checks the whole chain.
    ///
    /// # Errors
    ///
    /// The first [`Damage`].
    pub fn verify(&self) -> Result<Verified, Damage> {
        verify(&self.0)
    }

    /// Up to `limit` entries after number `after`, in order.
    ///
    /// # Errors
    ///
    /// [`ReadError`].
    pub fn read_after(&self, after: u64, limit: u32) -> Result<Vec<Entry>, ReadError> {
        entries_after(&self.0, after, limit)
    }

    /// The hash of entry `number`, where there is one.
    ///
    /// # Errors
    ///
    /// [`ReadError`].
    pub fn hash_of(&self, number: u64) -> Result<Option<Digest>, ReadError> {
        hash_of(&self.0, number).map_err(ReadError)
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
