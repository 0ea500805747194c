//! A collector's word that it has stored a chain up to a number.

use bytes::Bytes;
use replicator_protocol::envelope::{Role, Unverified, Verified, verify};
use replicator_protocol::ids::{Digest, HostUid};
use replicator_protocol::keyring::Keyring;
use replicator_protocol::refusal::{Code, Refusal};
use replicator_protocol::wire::event::Receipt;

use crate::ledger::{AppendError, ReadError, SharedLedger};

/// A receipt settled nothing.
#[derive(Debug, thiserror::Error)]
pub enum ReceiptError {
    /// It is not a collector's, or not for this host.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The ledger could not be written.
    #[error(transparent)]
    Append(#[from] AppendError),
    /// The ledger could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// Settles `ledger` as the receipt says, and returns how far it is settled now.
///
/// A receipt for another chain, or for an entry this ledger does not hold, settles nothing.
///
/// # Errors
///
/// See [`ReceiptError`].
pub fn settle(
    envelope: &Bytes,
    (host, ledger): (&HostUid, &SharedLedger),
    keyring: &Keyring,
    now: u64,
) -> Result<u64, ReceiptError> {
    let receipt: Verified<Receipt> = verify(&Unverified::new(envelope.clone()), &keyring.at(now))?;
    if receipt.host != host.as_str() {
        return Err(Refusal::new(Code::WrongHost).with("have", host).into());
    }
    if !keyring.scope_allows(Role::Collect, receipt.signers(), host) {
        return Err(Refusal::new(Code::OutOfScope).into());
    }
    let settled = ledger.settled()?;
    let Ok(hash) = <[u8; 32]>::try_from(&receipt.hash[..]) else { return Ok(settled) };
    if receipt.chain != ledger.head().chain[..] || receipt.number == settled {
        return Ok(settled);
    }
    if ledger.settle(receipt.number, Digest(hash))? {
        return Ok(receipt.number);
    }
    tracing::warn!(number = receipt.number, "a receipt speaks of an entry this ledger does not hold");
    Ok(settled)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use replicator_protocol::envelope::sign;

    use super::*;
    use crate::clock::SystemClock;
    use crate::ledger::Ledger;
    use crate::testing;

    fn keyring() -> Keyring {
        let document = testing::keyring_document(1, 1, testing::root_key());
        Keyring::accept_root(document.clone(), Digest::of(&document)).unwrap()
    }

    #[test]
    fn receipt_settles_its_own_chain_and_entry_only() {
        let at = tempfile::tempdir().unwrap();
        let host = testing::membership().uid;
        let ledger = SharedLedger::new(Ledger::open(at.path(), &host, Arc::new(SystemClock)).unwrap());
        let head = ledger.head();
        let receipt = Receipt {
            host: host.to_string(),
            chain: Bytes::copy_from_slice(&head.chain),
            number: head.number,
            hash: Bytes::copy_from_slice(&head.hash.0),
        };
        let settled = |receipt: &Receipt, key| settle(&sign(receipt, &[&key]), (&host, &ledger), &keyring(), 0);
        assert!(settled(&receipt, testing::declare_key()).is_err(), "another role");
        assert!(settled(&Receipt { host: "b".repeat(32), ..receipt.clone() }, testing::collect_key()).is_err());
        let other_chain = Receipt { chain: Bytes::from_static(&[9; 16]), ..receipt.clone() };
        assert_eq!(settled(&other_chain, testing::collect_key()).unwrap(), 0);
        let other_hash = Receipt { hash: Bytes::from_static(&[9; 32]), ..receipt.clone() };
        assert_eq!(settled(&other_hash, testing::collect_key()).unwrap(), 0);
        assert_eq!(settled(&receipt, testing::collect_key()).unwrap(), 1, "the control");
    }
}
