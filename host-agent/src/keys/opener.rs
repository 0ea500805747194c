//! Opening what is sealed to this host, for the one write that needs it.

use std::sync::Arc;

use replicator_protocol::refusal::Refusal;
use replicator_protocol::sealed_box::{Consumer, Recipient};
use replicator_protocol::secret::SecretBytes;
use replicator_protocol::wire::declaration::Sealed;

use super::host_key::HostKeys;

/// The sealing key together with the identity it opens for. It has no `Debug`.
pub struct Opener {
    recipient: Recipient,
    keys: Arc<HostKeys>,
}

impl Opener {
    /// Opens for `recipient` with the sealing key of `keys`.
    #[must_use]
    pub fn new(recipient: Recipient, keys: Arc<HostKeys>) -> Self {
        Self { recipient, keys }
    }

    /// Opens `sealed`, which stands at `consumer`.
    ///
    /// # Errors
    ///
    /// [`replicator_protocol::refusal::Code::CannotOpen`] where it was sealed for another host, key or place.
    pub fn open(&self, consumer: &Consumer, sealed: &Sealed) -> Result<SecretBytes, Refusal> {
        self.keys.sealing().open(&self.recipient, consumer, sealed)
    }
}
