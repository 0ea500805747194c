//! What a file of the ledger begins with: what all entries before it fold to, so that they may be dropped.

use std::collections::BTreeMap;
use std::sync::Arc;

use prost::Message as _;
use replicator_protocol::ids::Digest;
use replicator_protocol::wire::event::{DeclarationRef, Failure, PlannedStep, Record};
use rusqlite::{Connection, OptionalExtension as _, params};

use super::projections::resources::{Applied, Reported, Resources};
use super::state::State;

/// A checkpoint as it is kept.
pub(super) struct Checkpoint {
    /// The last entry it speaks of.
    pub(super) number: u64,
    /// The hash of that entry.
    pub(super) hash: Digest,
    /// The encoded [`State`]; the first entry of the file holds the SHA-256 of these bytes.
    pub(super) state: Vec<u8>,
}

impl Checkpoint {
    /// The one this file begins with; none in the file that begins with entry 1.
    pub(super) fn read(connection: &Connection) -> rusqlite::Result<Option<Self>> {
        let row =
            |row: &rusqlite::Row<'_>| Ok(Self { number: row.get(0)?, hash: Digest(row.get(1)?), state: row.get(2)? });
        connection.query_row("SELECT number, hash, state FROM checkpoint", [], row).optional()
    }

    /// Bytes of what is kept in this file's; 0 where it has none.
    pub(super) fn size(connection: &Connection) -> rusqlite::Result<u64> {
        connection.query_row("SELECT coalesce(max(length(state)), 0) FROM checkpoint", [], |row| row.get(0))
    }

    /// Writes it into a file that has none.
    pub(super) fn write(&self, connection: &Connection) -> rusqlite::Result<()> {
        let insert = "INSERT INTO checkpoint (id, number, hash, state) VALUES (1, ?, ?, ?)";
        connection.execute(insert, params![self.number, self.hash.0, self.state]).map(drop)
    }
}

/// The form in which a state is kept. Fields are added and never renumbered: what an older agent kept is read.
#[derive(Clone, PartialEq, prost::Message)]
struct Kept {
    #[prost(btree_map = "string, message", tag = "1")]
    applied: BTreeMap<String, KeptApplied>,
    #[prost(btree_map = "string, message", tag = "2")]
    begun: BTreeMap<String, PlannedStep>,
    #[prost(btree_map = "string, message", tag = "4")]
    given_up: BTreeMap<String, KeptFailure>,
    #[prost(message, optional, tag = "5")]
    reported: Option<KeptReport>,
    /// As in the database of answers: JSON.
    #[prost(bytes = "vec", tag = "6")]
    status: Vec<u8>,
    /// Likewise.
    #[prost(bytes = "vec", tag = "7")]
    applies: Vec<u8>,
    #[prost(uint64, tag = "8")]
    dropped: u64,
    // 3 was used, and is not used again.
    #[prost(btree_map = "string, message", tag = "9")]
    loose: BTreeMap<String, KeptLoose>,
    #[prost(bool, tag = "10")]
    lost: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
struct KeptLoose {
    #[prost(message, repeated, tag = "1")]
    records: Vec<Record>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct KeptApplied {
    #[prost(message, required, tag = "1")]
    record: Record,
    #[prost(uint64, tag = "2")]
    since: u64,
    #[prost(uint64, optional, tag = "3")]
    place: Option<u64>,
    #[prost(message, optional, tag = "4")]
    before: Option<Record>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct KeptFailure {
    #[prost(message, required, tag = "1")]
    declaration: DeclarationRef,
    #[prost(message, required, tag = "2")]
    failure: Failure,
}

#[derive(Clone, PartialEq, prost::Message)]
struct KeptReport {
    #[prost(message, optional, tag = "1")]
    declaration: Option<DeclarationRef>,
    #[prost(bool, tag = "2")]
    complete: bool,
    /// Resource and code by turns.
    #[prost(string, repeated, tag = "3")]
    failures: Vec<String>,
}

/// The bytes to keep of a state.
pub(super) fn encode(state: &State) -> serde_json::Result<Vec<u8>> {
    let Resources { applied, begun, loose, given_up, reported, lost } = &*state.resources;
    let kept = Kept {
        applied: applied.iter().map(|(name, applied)| (name.clone(), keep_applied(applied))).collect(),
        begun: begun.clone(),
        loose: loose.iter().map(|(name, records)| (name.clone(), KeptLoose { records: records.clone() })).collect(),
        given_up: given_up
            .iter()
            .map(|(name, (declaration, failure))| {
                (name.clone(), KeptFailure { declaration: declaration.clone(), failure: failure.clone() })
            })
            .collect(),
        reported: reported.as_ref().map(|reported| KeptReport {
            declaration: reported.declaration.clone(),
            complete: reported.complete,
            failures: reported.failures.iter().flat_map(|(resource, code)| [resource.clone(), code.clone()]).collect(),
        }),
        status: serde_json::to_vec(&*state.status)?,
        applies: serde_json::to_vec(&*state.applies)?,
        dropped: state.dropped,
        lost: *lost,
    };
    Ok(kept.encode_to_vec())
}

/// The state behind `bytes`; `None` where they are those of none.
pub(super) fn decode(bytes: &[u8]) -> Option<State> {
    let Kept { applied, begun, loose, given_up, reported, status, applies, dropped, lost } =
        Kept::decode(bytes).ok()?;
    let resources = Resources {
        applied: applied
            .into_iter()
            .map(|(name, KeptApplied { record, since, place, before })| {
                let place = place.map(usize::try_from).transpose().ok()?;
                Some((name, Applied { record, since, place, before }))
            })
            .collect::<Option<_>>()?,
        begun,
        loose: loose.into_iter().map(|(name, KeptLoose { records })| (name, records)).collect(),
        given_up: given_up
            .into_iter()
            .map(|(name, KeptFailure { declaration, failure })| (name, (declaration, failure)))
            .collect(),
        reported: reported.map(|KeptReport { declaration, complete, failures }| Reported {
            declaration,
            complete,
            failures: failures.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect(),
        }),
        lost,
    };
    Some(State {
        resources: Arc::new(resources),
        status: Arc::new(serde_json::from_slice(&status).ok()?),
        applies: Arc::new(serde_json::from_slice(&applies).ok()?),
        dropped,
    })
}

fn keep_applied(applied: &Applied) -> KeptApplied {
    let Applied { record, since, place, before } = applied;
    let place = place.map(|place| u64::try_from(place).unwrap_or(u64::MAX));
    KeptApplied { record: record.clone(), since: *since, place, before: before.clone() }
}

#[cfg(test)]
mod tests {
    use replicator_protocol::wire::event::event::Body;
    use replicator_protocol::wire::event::{ApplyReported, Event};

    use super::super::projections::Fold as _;
    use super::*;

    #[test]
    fn state_comes_back_whole() {
        let record = Record { target: "/a".into(), digest: vec![1].into(), ..Record::default() };
        let of = DeclarationRef { epoch: 1, sequence: 2, hash: vec![3].into() };
        let failure = Failure { code: "exited".into(), ..Failure::default() };
        let applied = Applied { record: record.clone(), since: 3, place: Some(4), before: Some(record.clone()) };
        let resources = Resources {
            applied: [("m.a".to_owned(), applied)].into(),
            begun: [("m.b".to_owned(), PlannedStep { resource: "m.b".into(), ..PlannedStep::default() })].into(),
            loose: [("m.c".to_owned(), vec![record.clone(), record])].into(),
            given_up: [("m.d".to_owned(), (of.clone(), failure))].into(),
            reported: Some(Reported {
                declaration: Some(of),
                complete: true,
                failures: vec![("m.d".to_owned(), "exited".to_owned())],
            }),
            lost: true,
        };
        let mut state = State { dropped: 9, ..State::default() };
        let report = ApplyReported { complete: true, ..ApplyReported::default() };
        state.fold(&Event { number: 12, body: Some(Body::ApplyReported(report)), ..Event::default() });
        state.resources = Arc::new(resources);
        assert_eq!(state.applies.iter().count(), 1, "the control");
        let bytes = encode(&state).unwrap();
        assert_eq!(decode(&bytes), Some(state));
        assert_eq!(decode(&bytes[..bytes.len() - 1]), None);
    }
}
