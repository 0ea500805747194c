//! One entry of a ledger, the last one of a chain, and what an entry is found by.

use bytes::Bytes;
use prost::Message as _;
use replicator_protocol::ids::Digest;
use replicator_protocol::wire::event::Event;

/// One recorded event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// From 1, no gaps.
    pub number: u64,
    /// SHA-256 of `payload`.
    pub hash: Digest,
    /// The encoded event: what is hashed, and what travels.
    pub payload: Bytes,
}

impl Entry {
    /// The event; `None` where the bytes are none.
    #[must_use]
    pub fn event(&self) -> Option<Event> {
        Event::decode(self.payload.clone()).ok()
    }
}

/// The last entry of a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// 128 random bits.
    pub chain: [u8; 16],
    /// Its number; 0 for an empty chain.
    pub number: u64,
    /// Its hash; zeros for an empty chain.
    pub hash: Digest,
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
