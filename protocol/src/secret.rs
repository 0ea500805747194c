//! Bytes that must not be seen.

use zeroize::Zeroizing;

/// A secret value. It has no `Debug`, `Display`, `Clone` or `Serialize`, and is overwritten when dropped.
pub struct SecretBytes(Zeroizing<Vec<u8>>);

impl SecretBytes {
    /// Takes the value over.
    #[must_use]
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// The value, for the one write or comparison that needs it.
    #[must_use]
    pub fn expose(&self) -> &[u8] {
        &self.0
    }
}
