//! The key under which digests of what was written are kept.
//!
//! The ledger travels, so a plain digest in it would let a reader guess a short secret. A digest under a key
//! that never leaves the host tells the agent alone whether two values are equal.

use std::path::Path;

use hmac::{Hmac, KeyInit as _, Mac as _};
use replicator_protocol::ids::Digest;
use sha2::Sha256;
use zeroize::Zeroizing;

use super::KeyError;
use super::host_key::{load_seed, new_seed};
use crate::durable;

/// Its file under `keys/`.
const FILE: &str = "digest";

/// 32 random bytes, made on this host and never sent. It has no `Debug`.
pub struct DigestKey(Zeroizing<[u8; 32]>);

impl DigestKey {
    /// Loads the key from the folder `keys`, or makes one there. `needed`: digests were recorded under one, and
    /// without it each of them differs from what is declared; then it says what that costs.
    ///
    /// # Errors
    ///
    /// [`KeyError::File`], [`KeyError::Malformed`], [`KeyError::Exposed`] or [`KeyError::Random`]; nothing was
    /// replaced.
    pub fn load_or_make(keys: &Path, needed: bool) -> Result<Self, KeyError> {
        let path = keys.join(FILE);
        match load_seed(&path) {
            Ok(seed) => Ok(Self(seed)),
            Err(KeyError::Missing(_)) => {
                if needed {
                    let path = path.display();
                    tracing::warn!(%path, "the key of recorded digests is gone and is made anew: all that was applied counts as changed, once");
                }
                let seed = new_seed()?;
                durable::replace(&path, &seed[..], 0o600)?;
                Ok(Self(seed))
            }
            Err(error) => Err(error),
        }
    }

    /// A key of these bytes.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// HMAC-SHA256 over `domain` and `parts`, each behind its length, so that no two lists give one digest.
    #[must_use]
    pub fn digest(&self, domain: &str, parts: &[&[u8]]) -> Digest {
        // A key of one block, filled with zeros: the same MAC as the shorter key (RFC 2104), with no error to handle.
        let mut block = Zeroizing::new([0_u8; 64]);
        block[..32].copy_from_slice(&self.0[..]);
        let mut mac = Hmac::<Sha256>::new((&*block).into());
        for part in std::iter::once(domain.as_bytes()).chain(parts.iter().copied()) {
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part);
        }
        Digest(mac.finalize().into_bytes().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digest_tells_domains_and_boundaries_apart() {
        let key = DigestKey::from_bytes([7; 32]);
        assert_eq!(key.digest("file", &[b"ab", b"c"]), key.digest("file", &[b"ab", b"c"]), "the control");
        assert_ne!(key.digest("file", &[b"ab", b"c"]), key.digest("file", &[b"a", b"bc"]));
        assert_ne!(key.digest("file", &[b"ab"]), key.digest("container", &[b"ab"]));
        assert_ne!(key.digest("file", &[b"ab"]), DigestKey::from_bytes([8; 32]).digest("file", &[b"ab"]));
    }

    #[test]
    fn key_that_others_may_read_is_refused() {
        use std::os::unix::fs::PermissionsExt as _;
        let at = tempfile::tempdir().unwrap();
        drop(DigestKey::load_or_make(at.path(), false).unwrap());
        std::fs::set_permissions(at.path().join(FILE), std::fs::Permissions::from_mode(0o644)).unwrap();
        let refused = DigestKey::load_or_make(at.path(), false).err();
        assert!(matches!(refused, Some(KeyError::Exposed { mode: 0o644, .. })), "{refused:?}");
    }

    #[test]
    fn key_is_made_once_and_found_again() {
        let at = tempfile::tempdir().unwrap();
        let first = DigestKey::load_or_make(at.path(), false).unwrap().digest("d", &[]);
        assert_eq!(DigestKey::load_or_make(at.path(), true).unwrap().digest("d", &[]), first);
    }
}
