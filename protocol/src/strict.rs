//! Decoding that accepts one form only.
//!
//! Protobuf decoders drop unknown fields and accept many encodings of one message. A signed message must
//! mean the same to everyone who reads it, so a body is accepted only if encoding it again gives the same
//! bytes. The encoding is a check: signatures and hashes are over the bytes received.

use crate::refusal::{Code, Refusal};

/// Decodes `bytes`, which must be the canonical encoding of an `M` that holds no unknown field.
///
/// # Errors
///
/// [`Code::NotCanonical`] otherwise.
pub fn decode<M: prost::Message + Default>(bytes: &[u8]) -> Result<M, Refusal> {
    let message = M::decode(bytes).map_err(|_| Refusal::new(Code::NotCanonical))?;
    if message.encode_to_vec() == bytes { Ok(message) } else { Err(Refusal::new(Code::NotCanonical)) }
}

#[cfg(test)]
mod tests {
    use prost::Message as _;

    use super::*;
    use crate::descriptors;
    use crate::wire::declaration::{File, Network};

    /// What the protocol promises to every reader of a body.
    const DEPTH_MAX: usize = 64;
    /// Bytes: as much as an envelope can hold.
    const LONG: usize = 512 * 1024;

    #[test]
    fn unknown_field_is_refused() {
        let mut bytes = Network { name: "net".into() }.encode_to_vec();
        assert_eq!(decode::<Network>(&bytes).unwrap().name, "net");
        bytes.extend([0x78, 1]);
        assert_eq!(decode::<Network>(&bytes).unwrap_err().code, Code::NotCanonical);
    }

    #[test]
    fn no_message_nests_deeper_than_a_reader_must_follow() {
        let depths = descriptors::depths();
        assert!(depths[".replicator.declaration.v1.Declaration"] > 3, "{depths:?}");
        assert!(depths.values().all(|depth| *depth <= DEPTH_MAX), "{depths:?}");
    }

    #[test]
    fn what_is_nested_too_deep_is_refused_before_it_fills_the_stack() {
        const START_GROUP: u8 = 0x7b;
        const END_GROUP: u8 = 0x7c;
        for depth in [1, DEPTH_MAX, DEPTH_MAX + 1, LONG / 2] {
            let bytes = [vec![START_GROUP; depth], vec![END_GROUP; depth]].concat();
            assert_eq!(decode::<Network>(&bytes).unwrap_err().code, Code::NotCanonical, "{depth}");
        }
    }

    #[test]
    fn repeated_scalar_and_explicit_default_are_refused() {
        assert!(decode::<Network>(b"\x0a\x01a\x0a\x01b").is_err());
        assert!(decode::<File>(&[0x48, 0]).is_err());
        assert!(decode::<File>(&[0x48, 0x81, 0]).is_err(), "an overlong number");
    }
}
