//! How full the broker's streams were when `serve` looked last: kept for whoever asks without a broker.

use rusqlite::params;

use super::{Store, StoreError};
use crate::point::{self, Effect};
use crate::publisher::streams::Fill;

pub(super) const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS streams (
        stream TEXT PRIMARY KEY, seen INTEGER NOT NULL, bytes INTEGER NOT NULL, room INTEGER NOT NULL) STRICT;
";

impl Store {
    /// Keeps `fills`, seen at `now`, in place of those before.
    ///
    /// # Errors
    ///
    /// [`StoreError::Sqlite`].
    pub fn keep_fills(&self, fills: &[Fill], now: u64) -> Result<(), StoreError> {
        let query = "INSERT OR REPLACE INTO streams (stream, seen, bytes, room) VALUES (?, ?, ?, ?)";
        let opened = self.lock();
        let connection = &opened.connection;
        let kept = fills
            .iter()
            .try_for_each(|fill| connection.execute(query, params![fill.stream, now, fill.bytes, fill.room]).map(drop));
        kept.map_err(|source| self.failed("write", source))?;
        point::behind(Effect::FillKeep);
        Ok(())
    }

    /// How full each stream was, by name, with when that was seen.
    ///
    /// # Errors
    ///
    /// [`StoreError::Sqlite`].
    pub fn fills(&self) -> Result<Vec<(u64, Fill)>, StoreError> {
        let opened = self.lock();
        let connection = &opened.connection;
        let read = || {
            let mut statement = connection.prepare("SELECT seen, stream, bytes, room FROM streams ORDER BY stream")?;
            let rows = statement.query_map([], |row| {
                Ok((row.get(0)?, Fill { stream: row.get(1)?, bytes: row.get(2)?, room: row.get(3)? }))
            })?;
            rows.collect::<Result<Vec<_>, _>>()
        };
        read().map_err(|source| self.failed("read", source))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fill_seen_last_is_kept() {
        let at = tempfile::tempdir().unwrap();
        let store = Store::open(&at.path().join("serve/events.db")).unwrap();
        let fill = |stream: &str, bytes| Fill { stream: stream.into(), bytes, room: 100 };
        store.keep_fills(&[fill("EVT", 1), fill("DECL", 2)], 5).unwrap();
        store.keep_fills(&[fill("EVT", 80)], 6).unwrap();
        assert_eq!(store.fills().unwrap(), [(5, fill("DECL", 2)), (6, fill("EVT", 80))]);
    }
}
