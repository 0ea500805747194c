//! A fleet of one host for the tests of this crate: keys from fixed seeds.

use bytes::Bytes;
use ed25519_dalek::SigningKey;
use replicator_protocol::envelope::sign;
use replicator_protocol::ids::{Digest, FleetName, HostId, HostUid};
use replicator_protocol::wire::{declaration, keyring};

use crate::keys::Membership;

pub(crate) fn root_key() -> SigningKey {
    SigningKey::from_bytes(&[40; 32])
}

pub(crate) fn declare_key() -> SigningKey {
    SigningKey::from_bytes(&[41; 32])
}

pub(crate) fn collect_key() -> SigningKey {
    SigningKey::from_bytes(&[42; 32])
}

pub(crate) fn enrol_key() -> SigningKey {
    SigningKey::from_bytes(&[43; 32])
}

pub(crate) fn public(key: &SigningKey) -> Bytes {
    Bytes::copy_from_slice(key.verifying_key().as_bytes())
}

/// A keyring of fleet `lab` with one key for each role.
pub(crate) fn keyring_document(version: u64, epoch: u64, root: SigningKey) -> Bytes {
    scoped_keyring_document(version, epoch, root, &[])
}

/// The same, whose keys may speak about `hosts` alone; about all where there are none.
pub(crate) fn scoped_keyring_document(version: u64, epoch: u64, root: SigningKey, hosts: &[&str]) -> Bytes {
    let key = |key: &SigningKey, role: keyring::Role| keyring::Key {
        public_key: public(key),
        role: role.into(),
        not_after: None,
        hosts: hosts.iter().map(ToString::to_string).collect(),
    };
    let keys = vec![
        key(&declare_key(), keyring::Role::Declare),
        key(&collect_key(), keyring::Role::Collect),
        key(&enrol_key(), keyring::Role::Enrol),
    ];
    let document = keyring::Keyring {
        fleet: "lab".into(),
        version,
        epoch,
        root: vec![public(&root)],
        threshold: 1,
        keys,
        revoked: vec![],
    };
    sign(&document, &[&root])
}

pub(crate) fn membership() -> Membership {
    Membership::new(
        FleetName::parse("lab").unwrap(),
        HostId::parse("web-1").unwrap(),
        HostUid::parse(&"a".repeat(32)).unwrap(),
        Digest::of(&keyring_document(1, 1, root_key())),
    )
}

/// An empty declaration for [`membership`].
pub(crate) fn declaration(epoch: u64, sequence: u64) -> declaration::Declaration {
    let me = membership();
    declaration::Declaration {
        fleet: me.fleet.to_string(),
        host: me.host.to_string(),
        uid: me.uid.to_string(),
        epoch,
        sequence,
        mode: declaration::Mode::Converge.into(),
        level: 1,
        ..declaration::Declaration::default()
    }
}

pub(crate) fn signed(declaration: &declaration::Declaration) -> Bytes {
    sign(declaration, &[&declare_key()])
}
