//! Cutting the ledger into batches.

use bytes::Bytes;
use prost::Message as _;
use replicator_protocol::event_words;
use replicator_protocol::ids::HostUid;
use replicator_protocol::wire::event::{Event, EventBatch};

use crate::ledger::Entry;
use crate::link::Summary;

/// Most events of one batch. With a broker that syncs every message, one event a message would cap a fleet.
pub const EVENTS_MAX: usize = 64;
/// Most bytes of one batch's events: half of what an envelope may be.
const BYTES_MAX: usize = 256 * 1024;

/// The next events to send.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    /// The message; never empty.
    pub message: EventBatch,
    /// The number of its last event.
    pub last: u64,
    /// For its headers.
    pub summary: Summary,
}

/// Cuts the first batch off `entries`, which are in order; `None` where there are none.
///
/// One event larger than a batch may be travels alone.
#[must_use]
pub fn cut(host: &HostUid, chain: [u8; 16], entries: &[Entry]) -> Option<Batch> {
    let mut size = 0;
    let fits = |entry: &&Entry| {
        let first = size == 0;
        size += entry.payload.len();
        first || size <= BYTES_MAX
    };
    let taken: Vec<&Entry> = entries.iter().take(EVENTS_MAX).take_while(fits).collect();
    let last = taken.last()?.number;
    let mut kinds: Vec<&str> = taken.iter().filter_map(|entry| kind(&entry.payload)).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let events = taken.iter().map(|entry| entry.payload.clone()).collect();
    Some(Batch {
        message: EventBatch { host: host.to_string(), chain: Bytes::copy_from_slice(&chain), events },
        last,
        summary: Summary { kinds: kinds.join(","), last },
    })
}

fn kind(payload: &Bytes) -> Option<&'static str> {
    Event::decode(payload.clone()).ok()?.body.as_ref().map(event_words::kind)
}

#[cfg(test)]
mod tests {
    use replicator_protocol::ids::Digest;
    use replicator_protocol::wire::event::DriftFound;
    use replicator_protocol::wire::event::event::Body;

    use super::*;
    use crate::testing::membership;

    fn entry(number: u64, size: usize) -> Entry {
        let body = Body::DriftFound(DriftFound { resource: "x".repeat(size), what: String::new() });
        let payload = Event { number, body: Some(body), ..Event::default() }.encode_to_vec();
        Entry { number, hash: Digest::of(&payload), payload: payload.into() }
    }

    fn lengths(sizes: &[usize]) -> Vec<usize> {
        let entries: Vec<_> = (1..).zip(sizes).map(|(number, size)| entry(number, *size)).collect();
        let (mut rest, mut lengths) = (&entries[..], Vec::new());
        while let Some(batch) = cut(&membership().uid, [0; 16], rest) {
            lengths.push(batch.message.events.len());
            rest = &rest[batch.message.events.len()..];
        }
        lengths
    }

    #[test]
    fn batch_holds_64_events_or_a_quarter_mebibyte_and_is_never_empty() {
        assert_eq!(lengths(&[]), [0; 0]);
        assert_eq!(lengths(&[1; 130]), [64, 64, 2]);
        assert_eq!(lengths(&[100 * 1024; 3]), [2, 1]);
        assert_eq!(lengths(&[300 * 1024, 1]), [1, 1]);
    }

    #[test]
    fn summary_names_kinds_and_the_last_number() {
        let batch = cut(&membership().uid, [0; 16], &[entry(7, 1), entry(8, 1)]).unwrap();
        assert_eq!(batch.summary, Summary { kinds: "drift-found".into(), last: 8 });
    }
}
