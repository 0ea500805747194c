use proptest::prelude::*;

use super::*;

fn recipient(fleet: &str, host: char) -> Recipient {
    Recipient { fleet: FleetName::parse(fleet).unwrap(), host: HostUid::parse(&host.to_string().repeat(32)).unwrap() }
}

fn consumer(resource: &str, field: &str) -> Consumer {
    Consumer { resource: ResourceId::parse(resource).unwrap(), field: field.into() }
}

fn name(text: &str) -> SecretName {
    SecretName::parse(text).unwrap()
}

fn sealed(key: &SealingSecretKey, value: &[u8]) -> Sealed {
    let value = SecretBytes::new(value.to_vec());
    let (to, at) = (recipient("lab", 'a'), consumer("web.env", "sealed"));
    seal(key.public(), &to, (&name("token"), Generation(3)), &at, &value).unwrap()
}

#[test]
fn sealed_secret_opens_where_it_was_sealed_for() {
    let key = SealingSecretKey::derive(&[7; 32]);
    let opened = key.open(&recipient("lab", 'a'), &consumer("web.env", "sealed"), &sealed(&key, b"hunter2")).unwrap();
    assert_eq!(opened.expose(), b"hunter2");
}

#[test]
fn sealed_secret_pasted_anywhere_else_does_not_open() {
    let key = SealingSecretKey::derive(&[7; 32]);
    let (to, at, good) = (recipient("lab", 'a'), consumer("web.env", "sealed"), sealed(&key, b"hunter2"));
    let opens = |to: &Recipient, at: &Consumer, sealed: &Sealed| key.open(to, at, sealed).is_ok();
    assert!(opens(&to, &at, &good), "the control opens");
    assert!(!opens(&recipient("other", 'a'), &at, &good), "another fleet");
    assert!(!opens(&recipient("lab", 'b'), &at, &good), "another host");
    assert!(!opens(&to, &consumer("web.other", "sealed"), &good), "another resource");
    assert!(!opens(&to, &consumer("web.env", "secrets/token"), &good), "another field");
    assert!(!opens(&to, &at, &Sealed { secret: "other".into(), ..good.clone() }), "another name");
    assert!(!opens(&to, &at, &Sealed { generation: 4, ..good.clone() }), "another generation");
    let stranger = SealingSecretKey::derive(&[8; 32]);
    assert!(stranger.open(&to, &at, &good).is_err(), "another key");
}

#[test]
fn every_flipped_bit_of_a_ciphertext_is_refused() {
    let key = SealingSecretKey::derive(&[7; 32]);
    let (to, at, good) = (recipient("lab", 'a'), consumer("web.env", "sealed"), sealed(&key, b"x"));
    for (position, bit) in (0..good.ciphertext.len()).flat_map(|at| (0..8).map(move |bit| (at, bit))) {
        let mut bytes = good.ciphertext.to_vec();
        bytes[position] ^= 1 << bit;
        let flipped = Sealed { ciphertext: bytes.into(), ..good.clone() };
        assert!(key.open(&to, &at, &flipped).is_err(), "byte {position}, bit {bit}");
    }
}

#[test]
fn ciphertexts_of_equal_values_differ_and_short_lengths_are_hidden() {
    let key = SealingSecretKey::derive(&[7; 32]);
    let (first, second) = (sealed(&key, b"same"), sealed(&key, b"same"));
    assert_ne!(first.ciphertext, second.ciphertext);
    assert_ne!(first.encapsulated_key, second.encapsulated_key);
    assert_eq!(first.ciphertext.len(), sealed(&key, &[9; 252]).ciphertext.len());
    assert!(first.ciphertext.len() < sealed(&key, &[9; 253]).ciphertext.len());
}

#[test]
fn secret_above_the_largest_step_is_refused() {
    let key = SealingSecretKey::derive(&[7; 32]);
    let (to, at) = (recipient("lab", 'a'), consumer("web.env", "sealed"));
    let value = SecretBytes::new(vec![0; 64 * 1024 - 3]);
    let refusal = seal(key.public(), &to, (&name("token"), Generation(1)), &at, &value).map(|_| ()).unwrap_err();
    assert_eq!(refusal.code, Code::SecretTooLarge);
}

#[test]
fn low_order_points_are_refused_as_keys() {
    let mut one = [0; 32];
    one[0] = 1;
    for point in [[0; 32], one] {
        assert_eq!(SealingPublicKey::from_bytes(&point).map(|_| ()).unwrap_err().code, Code::WeakKey);
    }
    assert!(SealingPublicKey::from_bytes(&SealingSecretKey::derive(&[7; 32]).public().to_bytes()).is_ok());
}

proptest! {
    #[test]
    fn prop_every_value_up_to_the_limit_opens_as_it_was(value in proptest::collection::vec(any::<u8>(), 0..5000)) {
        let key = SealingSecretKey::derive(&[7; 32]);
        let opened = key.open(&recipient("lab", 'a'), &consumer("web.env", "sealed"), &sealed(&key, &value)).unwrap();
        prop_assert_eq!(opened.expose(), &value[..]);
    }
}

#[test]
fn ciphertext_is_as_long_as_foretold() {
    let key = SealingSecretKey::derive(&[7; 32]);
    for length in [0, 1, 252, 253, 1020, 1021, 65_532] {
        assert_eq!(sealed(&key, &vec![1; length]).ciphertext.len(), ciphertext_len(length).unwrap(), "{length}");
    }
    assert_eq!(ciphertext_len(65_533).unwrap_err().code, Code::SecretTooLarge);
}
