//! The statements on one file of the ledger. One of them writes a fact, and there is no other.

use bytes::Bytes;
use prost::Message as _;
use replicator_protocol::ids::Digest;
use replicator_protocol::wire::event::Event;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::entry::{Entry, Head, kind_of};
use super::error::{StoreError, at};

/// Writes one event behind `head`, and returns the head it makes.
pub(super) fn insert(connection: &Connection, head: Head, event: &Event) -> rusqlite::Result<Head> {
    let payload = event.encode_to_vec();
    let hash = Digest::of(&payload);
    let kind = kind_of(event).unwrap_or_default();
    connection
        .prepare_cached(
            "INSERT INTO events (number, wall_time, kind, payload, previous, hash) VALUES (?, ?, ?, ?, ?, ?)",
        )?
        .execute(params![event.number, event.wall_time, kind, payload, head.hash.0, hash.0])?;
    Ok(Head { number: event.number, hash, ..head })
}

/// Records how far a collector's receipt reaches.
pub(super) fn put_settled(connection: &Connection, chain: &[u8; 16], number: u64) -> rusqlite::Result<()> {
    let update = "INSERT INTO settled (chain, number) VALUES (?, ?)
        ON CONFLICT (chain) DO UPDATE SET number = excluded.number";
    connection.execute(update, params![chain, number]).map(drop)
}

/// How far a collector's receipt reaches, as this file says.
pub(super) fn settled(connection: &Connection) -> rusqlite::Result<u64> {
    connection.query_row("SELECT coalesce(max(number), 0) FROM settled", [], |row| row.get(0))
}

/// Up to `limit` entries of this file after number `after`, in order.
pub(super) fn entries_after(connection: &Connection, after: u64, limit: u32) -> Result<Vec<Entry>, StoreError> {
    let read = || {
        let query = "SELECT number, hash, payload FROM events WHERE number > ? ORDER BY number LIMIT ?";
        let mut statement = connection.prepare_cached(query)?;
        let entry = |row: &rusqlite::Row<'_>| {
            let payload = Bytes::from(row.get::<_, Vec<u8>>(2)?);
            Ok(Entry { number: row.get(0)?, hash: Digest(row.get(1)?), payload })
        };
        let rows = statement.query_map(params![after, limit], entry)?;
        rows.collect::<rusqlite::Result<_>>()
    };
    read().map_err(at(connection))
}

/// The hash of entry `number`, where this file has it.
pub(super) fn hash_of(connection: &Connection, number: u64) -> rusqlite::Result<Option<Digest>> {
    let query = "SELECT hash FROM events WHERE number = ?";
    connection.query_row(query, [number], |row| row.get(0).map(Digest)).optional()
}
