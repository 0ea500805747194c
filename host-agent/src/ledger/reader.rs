//! Reading a ledger without holding it: for commands that only look, while an agent may be running.

use std::path::Path;

use replicator_protocol::ids::Digest;
use rusqlite::Connection;

use super::checkpoint::{self, Checkpoint};
use super::entry::Entry;
use super::error::{OpenError, ReadError, VerifyError, at};
use super::files::{self, DATABASE, LedgerFile};
use super::rows::{entries_after, hash_of, settled};
use super::schema;
use super::state::State;
use super::verify::Verified;

/// A ledger open for reading, with the files it had when it was opened.
pub struct Reader(Vec<(LedgerFile, Connection)>);

impl Reader {
    /// Opens the ledger in `folder`, the agent's state folder; `None` where there is none.
    ///
    /// # Errors
    ///
    /// [`ReadError`].
    pub fn open(folder: &Path) -> Result<Option<Self>, ReadError> {
        let folder = folder.join(DATABASE);
        let failed = |source| ReadError::Folder { path: folder.clone(), source };
        loop {
            let listed = files::list(&folder).map_err(failed)?;
            let mut open = Vec::new();
            for file in &listed {
                match file.open_to_read() {
                    Ok(connection) => open.push((file.clone(), connection)),
                    // The agent dropped it in between.
                    Err(_) if !file.path.exists() => break,
                    Err(error) => return Err(error.into()),
                }
            }
            if open.len() == listed.len() {
                return Ok((!open.is_empty()).then_some(Self(open)));
            }
        }
    }

    /// Checks the whole chain, from the checkpoint that is kept of what was dropped.
    ///
    /// # Errors
    ///
    /// The first damage, or that a file could not be read.
    pub fn verify(&self) -> Result<Verified, VerifyError> {
        let mut verified = Verified::nothing();
        for (file, connection) in &self.0 {
            // A newer format has all that is read here.
            if let Err(OpenError::Damaged(damage)) = schema::check(connection).map_err(|e| e.behind(verified.number)) {
                return Err(damage.into());
            }
            verified.take(file, connection)?;
        }
        verified.end()
    }

    /// Up to `limit` entries after number `after`, in order.
    ///
    /// # Errors
    ///
    /// [`ReadError`].
    pub fn read_after(&self, after: u64, limit: u32) -> Result<Vec<Entry>, ReadError> {
        let mut entries = Vec::new();
        for (_, connection) in &self.0 {
            let left = limit.saturating_sub(u32::try_from(entries.len()).unwrap_or(u32::MAX));
            if left > 0 {
                entries.extend(entries_after(connection, after, left)?);
            }
        }
        Ok(entries)
    }

    /// The hash of entry `number`, where it is kept, or is the last of those that are not.
    ///
    /// # Errors
    ///
    /// [`ReadError`].
    pub fn hash_of(&self, number: u64) -> Result<Option<Digest>, ReadError> {
        if let Some(kept) = self.checkpoint()?.filter(|kept| kept.number == number) {
            return Ok(Some(kept.hash));
        }
        for (_, connection) in &self.0 {
            if let Some(hash) = hash_of(connection, number).map_err(at::<ReadError>(connection))? {
                return Ok(Some(hash));
            }
        }
        Ok(None)
    }

    /// The last entry that is no longer kept, and what all up to it fold to; 0 and nothing where all are kept.
    ///
    /// # Errors
    ///
    /// [`ReadError`].
    pub fn base(&self) -> Result<(u64, State), ReadError> {
        let Some(kept) = self.checkpoint()? else { return Ok((0, State::default())) };
        let state = checkpoint::decode(&kept.state);
        state.map(|state| (kept.number, state)).ok_or(ReadError::Checkpoint(kept.number))
    }

    fn checkpoint(&self) -> Result<Option<Checkpoint>, ReadError> {
        match self.0.first() {
            Some((file, connection)) if file.first > 1 => {
                Checkpoint::read(connection).map_err(at::<ReadError>(connection))
            }
            Some(_) | None => Ok(None),
        }
    }

    /// The number of the last entry; 0 for an empty ledger.
    ///
    /// # Errors
    ///
    /// [`ReadError`].
    pub fn last(&self) -> Result<u64, ReadError> {
        let Some((_, connection)) = self.0.last() else { return Ok(0) };
        let query = "SELECT coalesce(max(number), 0) FROM events";
        connection.query_row(query, [], |row| row.get(0)).map_err(at(connection))
    }

    /// How far a collector's receipt reaches; 0 before the first.
    ///
    /// # Errors
    ///
    /// [`ReadError`].
    pub fn settled(&self) -> Result<u64, ReadError> {
        let Some((_, connection)) = self.0.last() else { return Ok(0) };
        settled(connection).map_err(at(connection))
    }
}
