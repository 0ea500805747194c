//! The fleet's signing keys: one Ed25519 seed of 32 bytes for each role, in a file of its own.

use std::path::PathBuf;

use ed25519_dalek::SigningKey;
use replicator_protocol::envelope::Role;
use zeroize::Zeroizing;

use super::KeysError;
use super::files;
use crate::home::FleetFolder;

/// What the controller signs with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signer {
    /// The keyring; may be kept offline.
    Root,
    /// Declarations.
    Declare,
    /// Receipts.
    Collect,
    /// Challenges, grants and certificates.
    Enrol,
}

impl Signer {
    /// The roles a running controller needs.
    pub const ONLINE: [Self; 3] = [Self::Declare, Self::Collect, Self::Enrol];

    /// The role its messages are verified for.
    pub fn role(self) -> Role {
        match self {
            Self::Root => Role::Root,
            Self::Declare => Role::Declare,
            Self::Collect => Role::Collect,
            Self::Enrol => Role::Enrol,
        }
    }

    /// Its file's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Root => "root",
            Self::Declare => "declare",
            Self::Collect => "collect",
            Self::Enrol => "enrol",
        }
    }
}

/// Where the key of `signer` lies.
pub fn path(fleet: &FleetFolder, signer: Signer) -> PathBuf {
    fleet.keys().join(signer.name())
}

/// Makes the key of `signer`, which must not be there yet.
///
/// # Errors
///
/// [`KeysError::File`] or [`KeysError::NoRandomness`]; a key that was there is as it was.
pub fn make(fleet: &FleetFolder, signer: Signer) -> Result<SigningKey, KeysError> {
    let mut seed = Zeroizing::new([0_u8; 32]);
    getrandom::fill(&mut seed[..]).map_err(KeysError::NoRandomness)?;
    files::create(&path(fleet, signer), &seed[..])?;
    Ok(SigningKey::from_bytes(&seed))
}

/// Loads the key of `signer`.
///
/// # Errors
///
/// [`KeysError::File`] where it is absent or others can read it, [`KeysError::Malformed`].
pub fn load(fleet: &FleetFolder, signer: Signer) -> Result<SigningKey, KeysError> {
    let path = path(fleet, signer);
    let bytes = files::read_private(&path)?;
    let seed = <&[u8; 32]>::try_from(&bytes[..]).map_err(|_| KeysError::Malformed { path, want: "32 bytes" })?;
    Ok(SigningKey::from_bytes(seed))
}
