use super::*;
use crate::wire::declaration::Declaration;
use crate::wire::event::Receipt;

struct Keys(Vec<VerifyingKey>, usize);

impl Trust for Keys {
    fn keys(&self, _role: Role) -> Vec<VerifyingKey> {
        self.0.clone()
    }
    fn threshold(&self, _role: Role) -> usize {
        self.1
    }
}

fn key(seed: u8) -> SigningKey {
    SigningKey::from_bytes(&[seed; 32])
}

fn trusting(seeds: &[u8], threshold: usize) -> Keys {
    Keys(seeds.iter().map(|seed| key(*seed).verifying_key()).collect(), threshold)
}

fn declaration() -> Declaration {
    Declaration { fleet: "lab".into(), host: "one".into(), sequence: 41, ..Declaration::default() }
}

fn code<T: Payload>(bytes: Bytes, trust: &Keys) -> Option<Code> {
    verify::<T>(&Unverified::new(bytes), trust).map(|_| ()).err().map(|refusal| refusal.code)
}

fn edited(edit: impl FnOnce(&mut wire::Envelope)) -> Bytes {
    let mut envelope = wire::Envelope::decode(sign(&declaration(), &[&key(1)])).unwrap();
    edit(&mut envelope);
    envelope.encode_to_vec().into()
}

#[test]
fn pre_authentication_matches_the_published_example() {
    // From DSSE's protocol.md: type `http://example.com/HelloWorld`, body `hello world`.
    let expected = b"DSSEv1 29 http://example.com/HelloWorld 11 hello world";
    assert_eq!(pre_authentication("http://example.com/HelloWorld", b"hello world"), expected);
}

#[test]
fn signed_message_verifies_and_names_its_signer() {
    let verified = verify::<Declaration>(&Unverified::new(sign(&declaration(), &[&key(1)])), &trusting(&[1, 2], 1));
    let verified = verified.unwrap();
    assert_eq!(*verified, declaration());
    assert_eq!(verified.payload_hash(), Digest::of(&declaration().encode_to_vec()));
    assert!(verified.signers().contains(&key_id(&key(1).verifying_key())));
}

#[test]
fn message_by_a_stranger_is_refused() {
    let bytes = sign(&declaration(), &[&key(9)]);
    assert_eq!(code::<Declaration>(bytes.clone(), &trusting(&[9], 1)), None, "the control is accepted");
    assert_eq!(code::<Declaration>(bytes, &trusting(&[1], 1)), Some(Code::UntrustedKey));
}

#[test]
fn message_of_another_type_is_refused_though_its_signature_holds() {
    let bytes = sign(&Receipt::default(), &[&key(1)]);
    assert_eq!(code::<Receipt>(bytes.clone(), &trusting(&[1], 1)), None, "the control is accepted");
    assert_eq!(code::<Declaration>(bytes, &trusting(&[1], 1)), Some(Code::WrongType));
}

#[test]
fn one_key_signing_twice_counts_once() {
    let twice = sign(&declaration(), &[&key(1), &key(1)]);
    assert_eq!(code::<Declaration>(twice, &trusting(&[1, 2], 2)), Some(Code::UntrustedKey));
    let both = sign(&declaration(), &[&key(1), &key(2)]);
    assert_eq!(code::<Declaration>(both, &trusting(&[1, 2], 2)), None);
}

#[test]
fn key_id_of_another_key_is_refused() {
    let other = key_id(&key(2).verifying_key()).to_string();
    let bytes = edited(|envelope| envelope.signatures[0].keyid = other);
    assert_eq!(code::<Declaration>(bytes, &trusting(&[1, 2], 1)), Some(Code::WrongKeyId));
}

#[test]
fn every_flipped_bit_is_refused() {
    let good = sign(&declaration(), &[&key(1)]);
    for (position, bit) in (0..good.len()).flat_map(|at| (0..8).map(move |bit| (at, bit))) {
        let mut bytes = good.to_vec();
        bytes[position] ^= 1 << bit;
        assert!(code::<Declaration>(bytes.into(), &trusting(&[1], 1)).is_some(), "byte {position}, bit {bit}");
    }
}

#[test]
fn unknown_field_in_a_signed_body_is_refused() {
    let mut payload = declaration().encode_to_vec();
    payload.extend([0xf8, 0x07, 1]);
    let signature = key(1).sign(&pre_authentication(Declaration::TYPE, &payload));
    let bytes = edited(|envelope| {
        envelope.payload = payload.into();
        envelope.signatures[0].sig = Bytes::copy_from_slice(&signature.to_bytes());
    });
    assert_eq!(code::<Declaration>(bytes, &trusting(&[1], 1)), Some(Code::NotCanonical));
}

#[test]
fn oversized_and_overloaded_envelopes_are_refused_before_any_signature() {
    let large = Bytes::from(vec![0; ENVELOPE_MAX + 1]);
    assert_eq!(code::<Declaration>(large, &trusting(&[1], 1)), Some(Code::TooLarge));
    let many = edited(|envelope| envelope.signatures = vec![envelope.signatures[0].clone(); SIGNATURES_MAX + 1]);
    assert_eq!(code::<Declaration>(many, &trusting(&[1], 1)), Some(Code::TooManySignatures));
}

#[test]
fn bytes_that_are_no_envelope_are_refused() {
    for bytes in [&b"\xff"[..], b"hello", b"{}"] {
        let code = code::<Declaration>(Bytes::from_static(bytes), &trusting(&[1], 1));
        assert_eq!(code, Some(Code::MalformedEnvelope), "{bytes:?}");
    }
    // No bytes are an envelope without a signature.
    assert_eq!(code::<Declaration>(Bytes::new(), &trusting(&[1], 1)), Some(Code::UntrustedKey));
}

#[test]
fn weak_key_vouches_for_nothing() {
    // The neutral element: verifies chosen signatures over any message under a lax check.
    let mut neutral = [0; 32];
    neutral[0] = 1;
    let weak = VerifyingKey::from_bytes(&neutral).unwrap();
    let bytes = edited(|envelope| {
        let mut sig = [0; 64];
        sig[0] = 1;
        envelope.signatures[0] =
            wire::Signature { sig: Bytes::copy_from_slice(&sig), keyid: key_id(&weak).to_string() };
    });
    assert_eq!(code::<Declaration>(bytes, &Keys(vec![weak], 1)), Some(Code::UntrustedKey));
}
