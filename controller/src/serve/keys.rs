//! What `serve` believes and what it signs with: the fleet's keyrings and the key of its receipts, read again while it
//! runs.

use std::sync::{Arc, PoisonError, RwLock};

use ed25519_dalek::SigningKey;
use replicator_protocol::envelope::{Trust as _, key_id};
use replicator_protocol::ids::KeyId;

use crate::home::FleetFolder;
use crate::keys::signing::{self, Signer};
use crate::keys::{Keyrings, KeysError};
use crate::words::chain_of;

/// The keyrings and the key of the receipts, as they were read last.
pub(super) struct Keys {
    folder: FleetFolder,
    read: RwLock<Read>,
}

struct Read {
    keyrings: Arc<Keyrings>,
    collect: Arc<SigningKey>,
    /// The key that the keyring of that version does not know.
    unknown: Option<(KeyId, u64)>,
}

impl Keys {
    /// Reads them; `now` is in milliseconds since the Unix epoch.
    ///
    /// # Errors
    ///
    /// [`KeysError`].
    pub(super) fn load(folder: &FleetFolder, now: u64) -> Result<Self, KeysError> {
        let (keyrings, collect) =
            (Arc::new(Keyrings::load(folder)?), Arc::new(signing::load(folder, Signer::Collect)?));
        let mut read = Read { keyrings, collect, unknown: None };
        read.look(now);
        Ok(Self { folder: folder.clone(), read: RwLock::new(read) })
    }

    /// The fleet's keyrings.
    pub(super) fn keyrings(&self) -> Arc<Keyrings> {
        Arc::clone(&self.read.read().unwrap_or_else(PoisonError::into_inner).keyrings)
    }

    /// What receipts are signed with; `None` where the keyring in force knows no key that is here: no host would believe
    /// one, and one it does believe may lie there.
    pub(super) fn collect(&self) -> Option<Arc<SigningKey>> {
        let read = self.read.read().unwrap_or_else(PoisonError::into_inner);
        read.unknown.is_none().then(|| Arc::clone(&read.collect))
    }

    /// Reads them again: whoever is trusted no more is so without a restart. What cannot be read stays as it was, and an
    /// earlier keyring takes the place of no later one: it trusts whom that one revoked. A key that the keyring in force
    /// does not know takes the place of none that it knows.
    pub(super) fn reload(&self, now: u64) {
        let (keyrings, key) = (Keyrings::load(&self.folder), signing::load(&self.folder, Signer::Collect));
        let mut read = self.read.write().unwrap_or_else(PoisonError::into_inner);
        match keyrings {
            Ok(keyrings) => {
                let (found, in_force) = (keyrings.current.version(), read.keyrings.current.version());
                if found > in_force {
                    tracing::info!(version = found, "a later keyring is in force");
                    read.keyrings = Arc::new(keyrings);
                } else if found < in_force {
                    tracing::error!(
                        version = found,
                        in_force,
                        "the last keyring in the fleet's folder is an earlier one; the later stays in force until the \
                         next start: put it back"
                    );
                }
            }
            Err(error) => {
                tracing::warn!(error = %chain_of(&error), "the keyrings cannot be read; those before stay in force");
            }
        }
        match key {
            Ok(key) if read.knows(&key, now) || !read.knows(&read.collect, now) => read.collect = Arc::new(key),
            Ok(_) => {}
            Err(error) => {
                tracing::warn!(error = %chain_of(&error), "the key of the receipts cannot be read; the one before stays");
            }
        }
        read.look(now);
    }
}

impl Read {
    fn knows(&self, key: &SigningKey, now: u64) -> bool {
        self.keyrings.current.at(now).keys(Signer::Collect.role()).contains(&key.verifying_key())
    }

    /// Looks whether receipts would be believed, and says it once where they would not.
    fn look(&mut self, now: u64) {
        let (key, version) = (key_id(&self.collect.verifying_key()), self.keyrings.current.version());
        let unknown = (!self.knows(&self.collect, now)).then_some((key, version));
        if unknown.is_some() && unknown != self.unknown {
            tracing::error!(
                %key, version,
                "the keyring in force does not know the key that receipts are signed with: hosts get none and keep what \
                 they reported; put the key it names for `collect` into `keys/collect`, or make a keyring that names this one"
            );
        }
        self.unknown = unknown;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bytes::Bytes;
    use prost::Message as _;
    use replicator_protocol::envelope::sign;
    use replicator_protocol::wire;

    use super::*;
    use crate::home::Home;
    use crate::keys::broker::{Transport, Wanted, init};

    fn fleet() -> (tempfile::TempDir, FleetFolder) {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path().join("home")).unwrap();
        let (listen, transport) = ("127.0.0.1:4222".parse().unwrap(), Transport::InsecureLoopback);
        let wanted = Wanted { fleet: "lab".parse().unwrap(), listen, transport };
        let fleet = init(&home, &wanted, Duration::from_secs(9)).unwrap();
        (folder, fleet)
    }

    /// Puts a second keyring there, which names `key` alone for receipts.
    fn second_keyring(fleet: &FleetFolder, key: &SigningKey) {
        let first = Keyrings::load(fleet).unwrap().envelopes.remove(0);
        let signed = wire::envelope::Envelope::decode(first).unwrap();
        let mut second = wire::keyring::Keyring::decode(signed.payload).unwrap();
        second.version = 2;
        let role = i32::from(wire::keyring::Role::Collect);
        let collect = second.keys.iter_mut().find(|key| key.role == role).unwrap();
        collect.public_key = Bytes::copy_from_slice(key.verifying_key().as_bytes());
        let second = sign(&second, &[&signing::load(fleet, Signer::Root).unwrap()]);
        std::fs::create_dir(fleet.root().join("keyrings")).unwrap();
        std::fs::write(fleet.root().join("keyrings/keyring.2"), second).unwrap();
    }

    #[test]
    fn earlier_keyring_takes_the_place_of_no_later_one() {
        let (_folder, fleet) = fleet();
        let keys = Keys::load(&fleet, 0).unwrap();
        second_keyring(&fleet, &SigningKey::from_bytes(&[2; 32]));
        keys.reload(0);
        assert_eq!(keys.keyrings().current.version(), 2, "the control");
        std::fs::remove_file(fleet.root().join("keyrings/keyring.2")).unwrap();
        assert_eq!(Keyrings::load(&fleet).unwrap().current.version(), 1, "the control");
        keys.reload(0);
        assert_eq!(keys.keyrings().current.version(), 2);
    }

    #[test]
    fn key_of_the_receipts_follows_the_keyring_in_force_and_one_it_does_not_know_signs_nothing() {
        let (_folder, fleet) = fleet();
        let keys = Keys::load(&fleet, 0).unwrap();
        let signs_with = || {
            keys.reload(0);
            keys.collect().map(|key| key.to_bytes())
        };
        let (first, second) = (signing::load(&fleet, Signer::Collect).unwrap(), SigningKey::from_bytes(&[2; 32]));
        let put = |key: &SigningKey| std::fs::write(signing::path(&fleet, Signer::Collect), key.to_bytes()).unwrap();
        assert_eq!(signs_with(), Some(first.to_bytes()));
        put(&second);
        assert_eq!(signs_with(), Some(first.to_bytes()), "it is not known yet");
        put(&first);
        second_keyring(&fleet, &second);
        assert_eq!(signs_with(), None, "it is known no more");
        assert!(Keys::load(&fleet, 0).unwrap().collect().is_none(), "nor after a start");
        put(&second);
        assert_eq!(signs_with(), Some(second.to_bytes()));
        put(&first);
        assert_eq!(signs_with(), Some(second.to_bytes()), "the keyring knows what is in use");
    }
}
