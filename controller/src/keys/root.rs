//! The root key: signs keyrings and nothing else, and is needed only when one is made.

use ed25519_dalek::SigningKey;

use super::KeysError;
use super::signing::{self, Signer};
use crate::home::FleetFolder;

/// Makes the fleet's root key.
///
/// # Errors
///
/// As [`signing::make`].
pub fn make(fleet: &FleetFolder) -> Result<SigningKey, KeysError> {
    signing::make(fleet, Signer::Root)
}

/// Loads the root key, where it is kept on this machine.
///
/// # Errors
///
/// As [`signing::load`].
pub fn load(fleet: &FleetFolder) -> Result<SigningKey, KeysError> {
    signing::load(fleet, Signer::Root)
}
