use ed25519_dalek::SigningKey;

use super::*;
use crate::envelope::sign;

fn key(seed: u8) -> SigningKey {
    SigningKey::from_bytes(&[seed; 32])
}

fn public(seed: u8) -> Bytes {
    Bytes::copy_from_slice(key(seed).verifying_key().as_bytes())
}

fn uid(digit: char) -> HostUid {
    HostUid::parse(&digit.to_string().repeat(32)).unwrap()
}

/// Version `version` with these root keys and one declare key, seed 20.
fn document(version: u64, root: &[u8], threshold: u32) -> wire::Keyring {
    let mut root: Vec<_> = root.iter().map(|seed| public(*seed)).collect();
    root.sort();
    let declare =
        wire::Key { public_key: public(20), role: wire::Role::Declare.into(), not_after: None, hosts: vec![] };
    wire::Keyring { fleet: "lab".into(), version, epoch: 1, root, threshold, keys: vec![declare], revoked: vec![] }
}

fn signed(document: &wire::Keyring, seeds: &[u8]) -> Bytes {
    let keys: Vec<_> = seeds.iter().map(|seed| key(*seed)).collect();
    sign(document, &keys.iter().collect::<Vec<_>>())
}

fn accepted(envelope: Bytes) -> Result<Keyring, Refusal> {
    let pinned = Digest::of(&envelope);
    Keyring::accept_root(envelope, pinned)
}

fn first() -> Keyring {
    accepted(signed(&document(1, &[1, 2, 3], 2), &[1, 2])).unwrap()
}

fn refused(result: Result<Keyring, Refusal>) -> Code {
    result.map(|_| ()).unwrap_err().code
}

#[test]
fn root_document_is_the_pinned_one_or_none() {
    let envelope = signed(&document(1, &[1], 1), &[1]);
    assert_eq!(accepted(envelope.clone()).unwrap().version(), 1, "the control is accepted");
    assert_eq!(refused(Keyring::accept_root(envelope, Digest([0; 32]))), Code::WrongRoot);
}

#[test]
fn root_document_needs_its_own_threshold() {
    assert_eq!(refused(accepted(signed(&document(1, &[1, 2], 2), &[1]))), Code::UntrustedKey);
    assert_eq!(refused(accepted(signed(&document(1, &[1], 0), &[1]))), Code::InvalidKeyring);
    assert_eq!(refused(accepted(signed(&document(1, &[1], 2), &[1]))), Code::InvalidKeyring);
}

#[test]
fn next_version_needs_the_threshold_of_both() {
    let new_roots = document(2, &[4, 5], 2);
    assert_eq!(first().accept_next(&signed(&new_roots, &[1, 2, 4, 5])).unwrap().version(), 2, "the control");
    assert_eq!(refused(first().accept_next(&signed(&new_roots, &[4, 5]))), Code::UntrustedKey);
    assert_eq!(refused(first().accept_next(&signed(&new_roots, &[1, 2, 4]))), Code::UntrustedKey);
    assert_eq!(refused(first().accept_next(&signed(&new_roots, &[1, 4, 5]))), Code::UntrustedKey);
}

#[test]
fn versions_are_walked_one_by_one() {
    for version in [1, 3] {
        let envelope = signed(&document(version, &[1, 2, 3], 2), &[1, 2]);
        assert_eq!(refused(first().accept_next(&envelope)), Code::KeyringOutOfOrder, "{version}");
    }
}

#[test]
fn another_fleet_and_a_lower_epoch_are_refused() {
    for edit in [|d: &mut wire::Keyring| d.fleet = "other".into(), |d: &mut wire::Keyring| d.epoch = 0] {
        let mut next = document(2, &[1, 2, 3], 2);
        edit(&mut next);
        assert_eq!(refused(first().accept_next(&signed(&next, &[1, 2]))), Code::InvalidKeyring);
    }
}

#[test]
fn revoked_and_expired_keys_are_trusted_for_nothing() {
    let mut dated = document(1, &[1], 1);
    dated.keys[0].not_after = Some(1000);
    let dated = accepted(signed(&dated, &[1])).unwrap();
    assert_eq!((dated.at(1000).keys(Role::Declare).len(), dated.at(1001).keys(Role::Declare).len()), (1, 0));
    let mut revoked = document(1, &[1], 1);
    revoked.revoked = vec![Bytes::copy_from_slice(&key_id(&key(20).verifying_key()).0)];
    assert!(accepted(signed(&revoked, &[1])).unwrap().at(0).keys(Role::Declare).is_empty());
}

#[test]
fn key_speaks_in_its_role_and_about_its_hosts_only() {
    let mut scoped = document(1, &[1], 1);
    scoped.keys[0].hosts = vec![uid('a').to_string()];
    let scoped = accepted(signed(&scoped, &[1])).unwrap();
    let signers = BTreeSet::from([key_id(&key(20).verifying_key())]);
    assert!(scoped.scope_allows(Role::Declare, &signers, &uid('a')));
    assert!(!scoped.scope_allows(Role::Declare, &signers, &uid('b')));
    assert!(!scoped.scope_allows(Role::Collect, &signers, &uid('a')));
    assert!(scoped.at(0).keys(Role::Collect).is_empty());
    assert!(scoped.at(0).keys(Role::Root).is_empty());
}

#[test]
fn root_role_cannot_be_given_to_an_ordinary_key() {
    let mut forged = document(1, &[1], 1);
    forged.keys[0].role = wire::Role::Root.into();
    assert_eq!(refused(accepted(signed(&forged, &[1]))), Code::InvalidKeyring);
}
