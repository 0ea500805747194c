//! Decoding that accepts one form only.
//!
//! Protobuf decoders drop unknown fields and accept many encodings of one message. A signed message must
//! mean the same to everyone who reads it, so a body is accepted only if encoding it again gives the same
//! bytes. The encoding is a check: signatures and hashes are over the bytes received.

use prost::Message as _;

use crate::envelope::ENVELOPE_MAX;
use crate::refusal::{Code, Refusal};
use crate::wire::envelope::Envelope;

/// Decodes `bytes`, which must be the canonical encoding of an `M` that holds no unknown field.
///
/// # Errors
///
/// [`Code::NotCanonical`] otherwise.
pub fn decode<M: prost::Message + Default>(bytes: &[u8]) -> Result<M, Refusal> {
    let message = M::decode(bytes).map_err(|_| Refusal::new(Code::NotCanonical))?;
    if message.encode_to_vec() == bytes { Ok(message) } else { Err(Refusal::new(Code::NotCanonical)) }
}

/// Decodes the payload of an envelope whose signatures nobody has checked.
///
/// Only for a document that names its own signers: what this returns is a claim, to be verified with it.
///
/// # Errors
///
/// [`Code::MalformedEnvelope`] or [`Code::NotCanonical`].
pub(crate) fn decode_unsigned_payload<M: prost::Message + Default>(envelope: &[u8]) -> Result<M, Refusal> {
    if envelope.len() > ENVELOPE_MAX {
        return Err(Refusal::new(Code::TooLarge).with("got", envelope.len()).with("have", ENVELOPE_MAX));
    }
    let envelope = Envelope::decode(envelope).map_err(|_| Refusal::new(Code::MalformedEnvelope))?;
    decode(&envelope.payload)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::declaration::{File, Network};

    #[test]
    fn unknown_field_is_refused() {
        let mut bytes = Network { name: "net".into() }.encode_to_vec();
        assert_eq!(decode::<Network>(&bytes).unwrap().name, "net");
        bytes.extend([0x78, 1]);
        assert_eq!(decode::<Network>(&bytes).unwrap_err().code, Code::NotCanonical);
    }

    #[test]
    fn repeated_scalar_and_explicit_default_are_refused() {
        assert!(decode::<Network>(b"\x0a\x01a\x0a\x01b").is_err());
        assert!(decode::<File>(&[0x48, 0]).is_err());
        assert!(decode::<File>(&[0x48, 0x81, 0]).is_err(), "an overlong number");
    }
}
