//! Whether a ledger is what was written: every number there once, every hash that of its entry, every entry
//! behind the one it names.

use prost::Message as _;
use replicator_protocol::ids::Digest;
use replicator_protocol::wire::event::Event;
use rusqlite::Connection;

use super::projections::Fold as _;
use super::state::State;

/// The first thing wrong, and how far the ledger is good.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// Numbers are missing.
    #[error("entries {first} to {last} are missing")]
    Missing {
        /// First missing number.
        first: u64,
        /// Last missing number.
        last: u64,
    },
    /// An entry is not what was written: its bytes, its place, its chain or its host.
    #[error("entry {number} is not what was written: {what}")]
    Altered {
        /// Its number.
        number: u64,
        /// What does not fit.
        what: &'static str,
    },
    /// The database file itself is damaged.
    #[error("the database file is damaged: {0}")]
    File(String),
}

impl Damage {
    /// The last number before the damage; 0 where nothing can be relied on.
    #[must_use]
    pub fn last_good(&self) -> u64 {
        match self {
            Self::Missing { first, .. } => first.saturating_sub(1),
            Self::Altered { number, .. } => number.saturating_sub(1),
            Self::File(_) => 0,
        }
    }
}

/// A log that is what was written.
#[derive(Debug)]
pub struct Verified {
    /// Number of the last entry; 0 for an empty log.
    pub number: u64,
    /// Its hash; zeros for an empty log.
    pub hash: Digest,
    /// What its events fold to.
    pub state: State,
}

/// Reads the whole log and checks it, without changing anything.
///
/// # Errors
///
/// The first [`Damage`].
pub fn verify(connection: &Connection) -> Result<Verified, Damage> {
    let file = |error: rusqlite::Error| Damage::File(error.to_string());
    let health: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0)).map_err(file)?;
    if health != "ok" {
        return Err(Damage::File(health));
    }
    let mut statement = connection
        .prepare("SELECT number, kind, payload, previous, hash, wall_time FROM events ORDER BY number")
        .map_err(file)?;
    let mut rows = statement.query([]).map_err(file)?;
    let mut verified = Verified { number: 0, hash: Digest([0; 32]), state: State::default() };
    let mut identity = None;
    while let Some(row) = rows.next().map_err(file)? {
        let row = Row {
            number: row.get(0).map_err(file)?,
            kind: row.get(1).map_err(file)?,
            payload: row.get(2).map_err(file)?,
            previous: row.get(3).map_err(file)?,
            hash: row.get(4).map_err(file)?,
            wall_time: row.get(5).map_err(file)?,
        };
        let event = row.follows((verified.number, verified.hash), &mut identity)?;
        (verified.number, verified.hash) = (row.number, Digest(row.hash));
        verified.state.fold(&event);
    }
    Ok(verified)
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

/// The number by which messages tell the kinds of events apart: the tag of the body.
pub(super) fn kind_of(event: &Event) -> Option<u32> {
    use prost::encoding::{WireType, decode_key};
    let body = Event { body: event.body.clone(), ..Event::default() }.encode_to_vec();
    match decode_key(&mut &body[..]) {
        Ok((tag, WireType::LengthDelimited)) => Some(tag),
        Ok(_) | Err(_) => None,
    }
}
