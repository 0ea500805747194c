//! The primitives this crate stands on, held against published vectors: Wycheproof, and RFC 9180.

#![allow(missing_docs, reason = "a test binary")]

use chacha20poly1305::aead::{Aead as _, KeyInit as _, Payload};
use hpke::Deserializable as _;
use wycheproof::TestResult;

#[test]
fn ed25519_agrees_with_wycheproof() {
    let set = wycheproof::eddsa::TestSet::load(wycheproof::eddsa::TestName::Ed25519).unwrap();
    let mut seen = 0;
    for group in &set.test_groups {
        let key: [u8; 32] = group.key.pk.as_ref().try_into().unwrap();
        let key = ed25519_dalek::VerifyingKey::from_bytes(&key).unwrap();
        for test in &group.tests {
            let signature = ed25519_dalek::Signature::from_slice(&test.sig);
            let accepted = signature.is_ok_and(|signature| key.verify_strict(&test.msg, &signature).is_ok());
            assert_eq!(accepted, test.result == TestResult::Valid, "case {}: {}", test.tc_id, test.comment);
            seen += 1;
        }
    }
    assert!(seen > 100, "only {seen} cases");
}

#[test]
fn x25519_agrees_with_wycheproof() {
    let set = wycheproof::xdh::TestSet::load(wycheproof::xdh::TestName::X25519).unwrap();
    let mut seen = 0;
    for test in set.test_groups.iter().flat_map(|group| &group.tests) {
        let Ok(public) = <[u8; 32]>::try_from(test.public_key.as_ref()) else { continue };
        let private: [u8; 32] = test.private_key.as_ref().try_into().unwrap();
        let shared = x25519_dalek::StaticSecret::from(private).diffie_hellman(&public.into());
        assert_eq!(shared.as_bytes(), test.shared_secret.as_ref(), "case {}: {}", test.tc_id, test.comment);
        seen += 1;
    }
    assert!(seen > 400, "only {seen} cases");
}

#[test]
fn chacha20_poly1305_agrees_with_wycheproof() {
    let set = wycheproof::aead::TestSet::load(wycheproof::aead::TestName::ChaCha20Poly1305).unwrap();
    let mut seen = 0;
    for group in set.test_groups.iter().filter(|group| group.nonce_size == 96) {
        for test in &group.tests {
            let cipher = chacha20poly1305::ChaCha20Poly1305::new_from_slice(&test.key).unwrap();
            let nonce: [u8; 12] = test.nonce.as_ref().try_into().unwrap();
            let sealed = [test.ct.as_ref(), test.tag.as_ref()].concat();
            let opened = cipher.decrypt(&nonce.into(), Payload { msg: &sealed, aad: &test.aad });
            assert_eq!(opened.is_ok(), test.result == TestResult::Valid, "case {}: {}", test.tc_id, test.comment);
            if let Ok(opened) = opened {
                assert_eq!(opened, test.pt.as_ref(), "case {}", test.tc_id);
            }
            seen += 1;
        }
    }
    assert!(seen > 200, "only {seen} cases");
}

#[test]
fn hkdf_sha256_agrees_with_wycheproof() {
    let set = wycheproof::hkdf::TestSet::load(wycheproof::hkdf::TestName::HkdfSha256).unwrap();
    let mut seen = 0;
    for test in set.test_groups.iter().flat_map(|group| &group.tests) {
        let mut out = vec![0; test.size];
        let expanded = hkdf::Hkdf::<sha2::Sha256>::new(Some(&test.salt), &test.ikm).expand(&test.info, &mut out);
        assert_eq!(expanded.is_ok(), test.result == TestResult::Valid, "case {}: {}", test.tc_id, test.comment);
        if expanded.is_ok() {
            assert_eq!(out, test.okm.as_ref(), "case {}", test.tc_id);
        }
        seen += 1;
    }
    assert!(seen > 50, "only {seen} cases");
}

/// RFC 9180, A.2.1 and A.2.1.1 (sequence number 0): our suite, base mode.
#[test]
fn hpke_opens_the_example_of_rfc_9180() {
    type Kem = hpke::kem::X25519HkdfSha256;
    let bytes = |text| hex::decode(text).unwrap();
    let secret = bytes("8057991eef8f1f1af18f4a9491d16a1ce333f695d4db8e38da75975c4478e0fb");
    let encapsulated = bytes("1afa08d3dec047a643885163f1180476fa7ddb54c6a8029ea33f95796bf2ac4a");
    let ciphertext =
        bytes("1c5250d8034ec2b784ba2cfd69dbdb8af406cfe3ff938e131f0def8c8b60b4db21993c62ce81883d2dd1b51a28");
    let opened = hpke::single_shot_open::<hpke::aead::ChaCha20Poly1305, hpke::kdf::HkdfSha256, Kem>(
        &hpke::OpModeR::Base,
        &<Kem as hpke::Kem>::PrivateKey::from_bytes(&secret).unwrap(),
        &<Kem as hpke::Kem>::EncappedKey::from_bytes(&encapsulated).unwrap(),
        &bytes("4f6465206f6e2061204772656369616e2055726e"),
        &ciphertext,
        &bytes("436f756e742d30"),
    );
    assert_eq!(opened.unwrap(), bytes("4265617574792069732074727574682c20747275746820626561757479"));
}
