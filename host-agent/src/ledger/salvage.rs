//! What a damaged ledger still says of the machine: which things on it are ours.
//!
//! Believed as far as it can be read, entry by entry: each one's hash is over its bytes. What happened last may be
//! lost, so nothing is taken for true that is not looked at again; but a thing that was made here is not taken for
//! one that was found. See `docs/decisions/0008-after-a-damaged-ledger.md`.

use std::collections::BTreeMap;
use std::path::Path;

use prost::Message as _;
use replicator_protocol::ids::{Digest, HostUid};
use replicator_protocol::wire::event::event::Body;
use replicator_protocol::wire::event::{Event, RecordRecovered, StepsPlanned};
use rusqlite::Connection;

use super::checkpoint::{self, Checkpoint};
use super::files;
use super::projections::Fold as _;
use super::projections::resources::{Applied, Resources};
use super::sized;

/// What of `host` can still be read in the files in `database`, as the events that tell it to a new ledger.
pub(super) fn salvage(database: &Path, host: &HostUid) -> Vec<Body> {
    let mut resources = Resources::default();
    let mut last = 0;
    for file in files::list(database).unwrap_or_default() {
        let Ok(connection) = file.open_to_read() else { continue };
        // It covers whatever could not be read before it.
        if let Ok(Some(kept)) = Checkpoint::read(&connection)
            && kept.number > last
            && let Some(state) = checkpoint::decode(&kept.state)
        {
            (last, resources) = (kept.number, (*state.resources).clone());
        }
        for event in events(&connection, last).into_iter().filter(|event| event.host == host.as_str()) {
            last = event.number;
            resources.fold(&event);
        }
    }
    told(resources)
}

/// Events of one file after number `after`, in order, without those that cannot be read.
fn events(connection: &Connection, after: u64) -> Vec<Event> {
    let mut events = BTreeMap::new();
    // A page that cannot be read ends a walk: what lies behind it is come to from the other end.
    for order in ["ASC", "DESC"] {
        let query = format!("SELECT hash, payload FROM events WHERE number > ? ORDER BY number {order}");
        let Ok(mut statement) = connection.prepare(&query) else { continue };
        let Ok(mut rows) = statement.query([after]) else { continue };
        while let Ok(Some(row)) = rows.next() {
            let (Ok(hash), Ok(payload)) = (row.get::<_, [u8; 32]>(0), row.get::<_, Vec<u8>>(1)) else { continue };
            if Digest::of(&payload).0 != hash {
                continue;
            }
            let Ok(event) = Event::decode(&payload[..]) else { continue };
            if events.insert(event.number, event).is_some() {
                break;
            }
        }
    }
    events.into_values().collect()
}

fn told(resources: Resources) -> Vec<Body> {
    let Resources { applied, begun, loose, given_up, reported: _, lost: _ } = resources;
    // What was begun may be half done: it is gone on with, as after a kill.
    let planned = begun.into_values().map(|step| {
        let module = step.resource.rsplit_once('.').map(|(module, _)| module.to_owned()).unwrap_or_default();
        Body::StepsPlanned(StepsPlanned { module, steps: vec![step] })
    });
    let mut recovered = BTreeMap::<String, RecordRecovered>::new();
    for (resource, Applied { record, since: _, place, before }) in applied {
        let one = recovered.entry(resource).or_default();
        (one.record, one.before) = (Some(record), before);
        one.place = place.and_then(|place| u32::try_from(place).ok());
    }
    for (resource, loose) in loose {
        recovered.entry(resource).or_default().loose = loose;
    }
    for (resource, (declaration, failure)) in given_up {
        let one = recovered.entry(resource).or_default();
        (one.given_up, one.given_up_for) = (Some(failure), Some(declaration));
    }
    let recovered =
        recovered.into_iter().map(|(resource, one)| Body::RecordRecovered(RecordRecovered { resource, ..one }));
    // What no event can hold would keep the new ledger from beginning; the rest of what is known goes over.
    let told = planned.chain(recovered).flat_map(sized::fit);
    told.filter(|body| sized::size(body) <= sized::BODY_MAX).collect()
}

#[cfg(test)]
mod tests;
