//! The key pairs of this host, one purpose each: identity signs, sealing opens, overlay is WireGuard's, and the
//! link's lets it into the broker.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use ed25519_dalek::SigningKey;
use nkeys::{KeyPair, KeyPairType};
use replicator_protocol::sealed_box::SealingSecretKey;
use x25519_dalek::{PublicKey, StaticSecret};
use zeroize::Zeroizing;

use super::KeyError;
use crate::durable::{self, FileError};

const IDENTITY: &str = "identity";
const SEALING: &str = "sealing";
const OVERLAY: &str = "overlay";
const LINK: &str = "nats";

/// All of them. It has no `Debug`.
pub struct HostKeys {
    identity: SigningKey,
    sealing: SealingSecretKey,
    overlay: StaticSecret,
    link: Zeroizing<[u8; 32]>,
}

impl HostKeys {
    /// Makes new pairs and keeps them in the folder `keys`, 0600 each.
    ///
    /// Pairs that lie there already are used again, so that an enrolment that was cut off can be repeated.
    ///
    /// # Errors
    ///
    /// See [`KeyError`]; keys that were there are unchanged.
    pub fn make(keys: &Path) -> Result<Self, KeyError> {
        durable::folder(keys)?;
        for name in [IDENTITY, SEALING, OVERLAY, LINK] {
            let path = keys.join(name);
            match load_seed(&path) {
                Ok(_) => {}
                Err(KeyError::Missing(_)) => durable::replace(&path, &new_seed()?[..], 0o600)?,
                Err(error) => return Err(error),
            }
        }
        Self::load(keys)
    }

    /// Puts what lies in the place of a pair and is none aside, as `aside.NAME-N` with the first N that is free: where
    /// the operator wants new ones.
    ///
    /// # Errors
    ///
    /// See [`KeyError`].
    pub fn put_malformed_aside(keys: &Path) -> Result<(), KeyError> {
        for name in [IDENTITY, SEALING, OVERLAY, LINK] {
            let path = keys.join(name);
            match load_seed(&path) {
                Err(KeyError::Malformed(_)) => durable::put_aside(&path)?,
                Ok(_) | Err(KeyError::Missing(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Loads the pairs from the folder `keys`.
    ///
    /// # Errors
    ///
    /// [`KeyError::Missing`] on a host that is not enrolled; [`KeyError::Malformed`].
    pub fn load(keys: &Path) -> Result<Self, KeyError> {
        Ok(Self {
            identity: SigningKey::from_bytes(&*load_seed(&keys.join(IDENTITY))?),
            sealing: SealingSecretKey::derive(&*load_seed(&keys.join(SEALING))?),
            overlay: StaticSecret::from(*load_seed(&keys.join(OVERLAY))?),
            link: load_seed(&keys.join(LINK))?,
        })
    }

    /// Signs what this host says.
    #[must_use]
    pub fn identity(&self) -> &SigningKey {
        &self.identity
    }

    /// Opens what is sealed to this host.
    #[must_use]
    pub fn sealing(&self) -> &SealingSecretKey {
        &self.sealing
    }

    /// WireGuard's public half.
    #[must_use]
    pub fn overlay_public(&self) -> [u8; 32] {
        PublicKey::from(&self.overlay).to_bytes()
    }

    /// What answers the broker's challenge.
    ///
    /// # Errors
    ///
    /// [`KeyError::Random`] where the library cannot build the pair from its seed.
    pub fn link(&self) -> Result<KeyPair, KeyError> {
        KeyPair::new_from_raw(KeyPairType::User, *self.link).map_err(|_| KeyError::Random)
    }
}

/// 32 bytes from the kernel.
pub(super) fn new_seed() -> Result<Zeroizing<[u8; 32]>, KeyError> {
    let mut seed = Zeroizing::new([0; 32]);
    getrandom::fill(&mut seed[..]).map_err(|_| KeyError::Random)?;
    Ok(seed)
}

/// The 32 bytes at `path`, which nobody but its owner may read or write.
pub(super) fn load_seed(path: &Path) -> Result<Zeroizing<[u8; 32]>, KeyError> {
    let bytes = durable::read(path)?.map(Zeroizing::new).ok_or_else(|| KeyError::Missing(path.to_owned()))?;
    let seed = <[u8; 32]>::try_from(&bytes[..]).map_err(|_| KeyError::Malformed(path.to_owned()))?;
    let metadata = std::fs::metadata(path).map_err(|source| FileError::new("look at", path, source))?;
    let mode = metadata.permissions().mode() & 0o7777;
    if mode & 0o077 != 0 {
        return Err(KeyError::Exposed { path: path.to_owned(), mode });
    }
    Ok(Zeroizing::new(seed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_made_once_each_its_own_and_private() {
        let at = tempfile::tempdir().unwrap();
        let keys = at.path().join("keys");
        assert!(matches!(HostKeys::load(&keys), Err(KeyError::Missing(_))));
        let made = HostKeys::make(&keys).unwrap();
        let again = HostKeys::make(&keys).unwrap();
        assert_eq!(made.identity().verifying_key(), again.identity().verifying_key());
        assert_eq!(made.link().unwrap().public_key(), again.link().unwrap().public_key());
        assert_ne!(made.sealing().public().to_bytes(), made.overlay_public());
        for entry in std::fs::read_dir(&keys).unwrap() {
            let metadata = entry.unwrap().metadata().unwrap();
            assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
        }
    }

    #[test]
    fn key_that_others_may_read_is_refused_and_left() {
        let at = tempfile::tempdir().unwrap();
        drop(HostKeys::make(at.path()).unwrap());
        for name in [IDENTITY, SEALING, OVERLAY, LINK] {
            let path = at.path().join(name);
            let chmod = |mode| std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            for mode in [0o644, 0o640, 0o606] {
                chmod(mode);
                let refused = [HostKeys::load(at.path()), HostKeys::make(at.path())].map(Result::err);
                for error in refused {
                    let told = matches!(&error, Some(KeyError::Exposed { path, .. }) if path.ends_with(name));
                    assert!(told, "{name}: {error:?}");
                }
            }
            chmod(0o400);
            assert!(HostKeys::load(at.path()).is_ok(), "the control");
        }
    }

    #[test]
    fn half_written_key_is_named_and_not_replaced() {
        let at = tempfile::tempdir().unwrap();
        std::fs::write(at.path().join(SEALING), b"short").unwrap();
        assert!(matches!(HostKeys::make(at.path()), Err(KeyError::Malformed(path)) if path.ends_with(SEALING)));
        assert_eq!(std::fs::read(at.path().join(SEALING)).unwrap(), b"short");
    }
}
