//! The fleet's keyrings: made here, signed by the root key, kept as envelopes, published as they are.

use std::path::PathBuf;

use bytes::Bytes;
use ed25519_dalek::{SigningKey, VerifyingKey};
use replicator_protocol::envelope::sign;
use replicator_protocol::ids::{Digest, FleetName};
use replicator_protocol::keyring::Keyring;
use replicator_protocol::wire::keyring as wire;

use super::KeysError;
use super::files;
use super::signing::Signer;
use crate::home::FleetFolder;

/// The epoch a fleet starts in.
const FIRST_EPOCH: u64 = 1;

/// Makes version 1: the root document of `fleet`, in which `keys` hold their roles without end.
pub fn first(fleet: &FleetName, root: &SigningKey, keys: &[(Signer, VerifyingKey)]) -> Bytes {
    let key = |(signer, key): &(Signer, VerifyingKey)| wire::Key {
        public_key: public(key),
        role: wire_role(*signer).into(),
        not_after: None,
        hosts: Vec::new(),
    };
    let keyring = wire::Keyring {
        fleet: fleet.to_string(),
        version: 1,
        epoch: FIRST_EPOCH,
        root: vec![public(&root.verifying_key())],
        threshold: 1,
        keys: keys.iter().map(key).collect(),
        revoked: Vec::new(),
    };
    sign(&keyring, &[root])
}

fn public(key: &VerifyingKey) -> Bytes {
    Bytes::copy_from_slice(key.as_bytes())
}

fn wire_role(signer: Signer) -> wire::Role {
    match signer {
        Signer::Root => wire::Role::Root,
        Signer::Declare => wire::Role::Declare,
        Signer::Collect => wire::Role::Collect,
        Signer::Enrol => wire::Role::Enrol,
    }
}

/// Every keyring of the fleet: the envelopes from version 1, and the last one as believed.
#[derive(Debug, Clone)]
pub struct Keyrings {
    /// The envelopes; version 1 first.
    pub envelopes: Vec<Bytes>,
    /// The keyring in force.
    pub current: Keyring,
}

impl Keyrings {
    /// Reads and walks them. The root document is believed because it lies in the fleet's own folder.
    ///
    /// # Errors
    ///
    /// [`KeysError::File`], [`KeysError::Absent`], or [`KeysError::Refused`] where one does not follow another.
    pub fn load(fleet: &FleetFolder) -> Result<Self, KeysError> {
        let path = fleet.root_document();
        let root = files::read(&path)?.ok_or_else(|| KeysError::Absent { path: path.clone() })?;
        let root = Bytes::from(root);
        let mut current = Keyring::accept_root(root.clone(), Digest::of(&root))?;
        let mut envelopes = vec![root];
        while let Some(next) = files::read(&later(fleet, current.version() + 1))? {
            let next = Bytes::from(next);
            current = current.accept_next(&next)?;
            envelopes.push(next);
        }
        Ok(Self { envelopes, current })
    }
}

/// Whether a keyring lies in the fleet's folder that follows version `version`.
pub fn has_later(fleet: &FleetFolder, version: u64) -> bool {
    later(fleet, version + 1).exists()
}

fn later(fleet: &FleetFolder, version: u64) -> PathBuf {
    fleet.root().join("keyrings").join(format!("keyring.{version}"))
}

#[cfg(test)]
mod tests {
    use replicator_protocol::envelope::Trust as _;

    use super::*;

    #[test]
    fn root_document_is_accepted_by_its_digest_and_gives_each_key_its_role_alone() {
        let root = SigningKey::from_bytes(&[1; 32]);
        let key = |seed: u8| SigningKey::from_bytes(&[seed; 32]).verifying_key();
        let keys = [(Signer::Declare, key(2)), (Signer::Collect, key(3)), (Signer::Enrol, key(4))];
        let document = first(&FleetName::parse("lab").unwrap(), &root, &keys);
        let keyring = Keyring::accept_root(document.clone(), Digest::of(&document)).unwrap();
        for (signer, key) in keys {
            assert_eq!(keyring.at(0).keys(signer.role()), [key]);
        }
        assert_eq!((keyring.version(), keyring.epoch()), (1, 1));
    }
}
