//! Whether a batch continues what is stored of a host: pure, over hashes and numbers.

use bytes::Bytes;
use prost::Message as _;
use replicator_protocol::ids::{Digest, HostUid};
use replicator_protocol::refusal::{Code, Refusal};
use replicator_protocol::strict;
use replicator_protocol::wire::event::{Event, EventBatch};

/// Where a chain stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// The chain.
    pub chain: [u8; 16],
    /// Its last number; 0 for none.
    pub number: u64,
    /// The hash of that event; zeros for none.
    pub hash: Digest,
}

impl Head {
    /// The head of a chain of which nothing is stored.
    pub fn empty(chain: [u8; 16]) -> Self {
        Self { chain, number: 0, hash: Digest([0; 32]) }
    }
}

/// An event that stands where its host says it does.
#[derive(Debug, Clone, PartialEq)]
pub struct Linked {
    /// Its bytes: what is hashed.
    pub bytes: Bytes,
    /// SHA-256 of them.
    pub hash: Digest,
    /// What they say.
    pub event: Event,
}

/// Why a batch was not stored, or not all of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// It is not the host's, or not in the form that is accepted.
    Refused(Refusal),
    /// Events between what is stored and this batch have not come.
    Gap {
        /// The last number stored.
        have: u64,
        /// The first of the batch.
        got: u64,
    },
    /// An event that is stored already has other content here: two histories under one key.
    Fork {
        /// Its number.
        number: u64,
    },
}

impl Fault {
    /// Its stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Refused(refusal) => refusal.code.as_str(),
            Self::Gap { .. } => "chain-gap",
            Self::Fork { .. } => "chain-fork",
        }
    }

    /// The numbers that explain it.
    pub fn says(&self) -> String {
        match self {
            Self::Refused(refusal) => refusal.to_string(),
            Self::Gap { have, got } => format!("events between {have} and {got} are missing"),
            Self::Fork { number } => format!("event {number} is stored with other content"),
        }
    }
}

/// Reads the events of a verified `batch` of `host`: all of one chain, without gaps, each naming the one before.
///
/// # Errors
///
/// A [`Refusal`]: [`Code::WrongHost`], [`Code::NotCanonical`].
pub fn linked(batch: &EventBatch, host: &HostUid) -> Result<([u8; 16], Vec<Linked>), Refusal> {
    let malformed = |what: &str| Refusal::new(Code::NotCanonical).with("field", what);
    if batch.host != host.as_str() {
        return Err(Refusal::new(Code::WrongHost).with("got", &batch.host).with("have", host));
    }
    let chain = <[u8; 16]>::try_from(&batch.chain[..]).map_err(|_| malformed("chain"))?;
    if batch.events.is_empty() {
        return Err(malformed("events"));
    }
    let mut linked: Vec<Linked> = Vec::with_capacity(batch.events.len());
    for bytes in &batch.events {
        let event: Event = strict::decode(bytes)?;
        if event.host != host.as_str() || event.chain != batch.chain {
            return Err(Refusal::new(Code::WrongHost).with("got", &event.host).with("have", host));
        }
        let follows = match linked.last() {
            Some(before) => {
                before.event.number.checked_add(1) == Some(event.number) && event.previous == before.hash.0[..]
            }
            None => event.number > 0 && (event.number > 1 || event.previous == [0; 32][..]),
        };
        if !follows || event.body.is_none() {
            return Err(malformed("number, previous or body"));
        }
        linked.push(Linked { bytes: bytes.clone(), hash: Digest::of(bytes), event });
    }
    Ok((chain, linked))
}

/// The events of `linked` that come after `head`, which must be where they start or before it.
///
/// Those up to `head` must be compared with what is stored by the caller.
///
/// # Errors
///
/// [`Fault::Gap`], or [`Fault::Fork`] where the first new one names another event before it.
pub fn after<'l>(head: &Head, linked: &'l [Linked]) -> Result<&'l [Linked], Fault> {
    let first = linked.first().map_or(0, |first| first.event.number);
    if first > head.number + 1 {
        return Err(Fault::Gap { have: head.number, got: first });
    }
    let known = usize::try_from(head.number + 1 - first).unwrap_or(usize::MAX).min(linked.len());
    let new = &linked[known..];
    match new.first() {
        Some(next) if next.event.previous != head.hash.0[..] => Err(Fault::Fork { number: head.number }),
        Some(_) | None => Ok(new),
    }
}

/// The bytes of `event`, as it is hashed and travels.
pub fn bytes_of(event: &Event) -> Bytes {
    event.encode_to_vec().into()
}

#[cfg(test)]
pub(super) mod tests {
    use replicator_protocol::wire::event::event::Body;
    use replicator_protocol::wire::event::{AgentStarted, KeyringAccepted};

    use super::*;

    pub(crate) fn host() -> HostUid {
        HostUid::parse(&"a".repeat(32)).unwrap()
    }

    /// `count` events of chain `chain`, numbers from 1; `salt` changes their content.
    pub(crate) fn history(chain: u8, count: u64, salt: u64) -> Vec<Bytes> {
        let mut previous = Digest([0; 32]);
        let mut events = Vec::new();
        for number in 1..=count {
            let body = if number == 1 {
                Body::AgentStarted(AgentStarted::default())
            } else {
                Body::KeyringAccepted(KeyringAccepted { version: salt, hash: Bytes::new() })
            };
            let event = Event {
                host: host().to_string(),
                chain: vec![chain; 16].into(),
                number,
                previous: previous.0.to_vec().into(),
                body: Some(body),
                ..Event::default()
            };
            let bytes = bytes_of(&event);
            previous = Digest::of(&bytes);
            events.push(bytes);
        }
        events
    }

    pub(crate) fn batch(chain: u8, events: &[Bytes]) -> EventBatch {
        EventBatch { host: host().to_string(), chain: vec![chain; 16].into(), events: events.to_vec() }
    }

    #[test]
    fn batch_continues_what_is_stored_and_may_overlap_it() {
        let history = history(1, 5, 0);
        let (chain, all) = linked(&batch(1, &history), &host()).unwrap();
        let empty = Head::empty(chain);
        assert_eq!(after(&empty, &all).unwrap().len(), 5);
        let head = Head { number: 3, hash: all[2].hash, ..empty };
        assert_eq!(after(&head, &all).unwrap().len(), 2);
        assert_eq!(after(&head, &all[4..]), Err(Fault::Gap { have: 3, got: 5 }));
        let other = Head { hash: Digest([9; 32]), ..head };
        assert_eq!(after(&other, &all[3..]), Err(Fault::Fork { number: 3 }));
    }

    #[test]
    fn broken_batch_is_refused() {
        let good = history(1, 3, 0);
        let code = |batch: &EventBatch| linked(batch, &host()).unwrap_err().code;
        assert_eq!(code(&batch(1, &[])), Code::NotCanonical);
        assert_eq!(code(&batch(1, &[good[0].clone(), good[2].clone()])), Code::NotCanonical);
        assert_eq!(code(&batch(2, &good)), Code::WrongHost);
        assert_eq!(code(&EventBatch { host: "b".repeat(32), ..batch(1, &good) }), Code::WrongHost);
        let other = history(1, 3, 7);
        assert_eq!(code(&batch(1, &[good[0].clone(), good[1].clone(), other[2].clone()])), Code::NotCanonical);
    }
}
