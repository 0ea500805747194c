//! The controller's keys this host believes: every keyring since the pinned root, each on disk.
//!
//! Keyring envelopes come in one by one; the newest keyring goes out. A version is on disk before it counts.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use replicator_protocol::ids::Digest;
use replicator_protocol::keyring::Keyring;
use replicator_protocol::refusal::Refusal;

use crate::durable::{self, FileError};

/// A keyring was not taken up; the one before stays in force.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// It is none of this fleet's, or not the next.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// It could not be read or kept.
    #[error(transparent)]
    File(#[from] FileError),
    /// There is no root document on this host.
    #[error("this host has no root document in `{}`", .0.display())]
    NoRoot(PathBuf),
}

/// The keyring in force, with those it was reached by.
#[derive(Debug)]
pub struct Trusted {
    folder: PathBuf,
    keyring: Keyring,
}

impl Trusted {
    /// Walks the keyrings kept in the folder `trust`, from the root document whose digest is `pinned`.
    ///
    /// # Errors
    ///
    /// See [`TrustError`]; a kept keyring that does not follow ends the walk with its refusal.
    pub fn load(trust: &Path, pinned: Digest) -> Result<Self, TrustError> {
        let first = read(trust, 1)?.ok_or_else(|| TrustError::NoRoot(trust.to_owned()))?;
        let mut keyring = Keyring::accept_root(first, pinned)?;
        while let Some(next) = read(trust, keyring.version() + 1)? {
            keyring = keyring.accept_next(&next)?;
        }
        Ok(Self { folder: trust.to_owned(), keyring })
    }

    /// Keeps `envelopes`, from version 1, in the folder `trust`: at enrolment, once they are believed.
    ///
    /// # Errors
    ///
    /// [`FileError`]; those before it are kept.
    pub fn keep_all(trust: &Path, envelopes: &[Bytes]) -> Result<(), FileError> {
        durable::folder(trust)?;
        (1..)
            .zip(envelopes)
            .try_for_each(|(version, envelope)| durable::replace(&path(trust, version), envelope, 0o600))
    }

    /// The newest keyring.
    #[must_use]
    pub fn keyring(&self) -> &Keyring {
        &self.keyring
    }

    /// Takes up the version after the newest.
    ///
    /// # Errors
    ///
    /// See [`TrustError`]; the keyring in force is as before.
    pub fn accept_next(&mut self, envelope: &Bytes) -> Result<&Keyring, TrustError> {
        let next = self.keyring.accept_next(envelope)?;
        durable::replace(&path(&self.folder, next.version()), envelope, 0o600)?;
        self.keyring = next;
        Ok(&self.keyring)
    }
}

fn path(trust: &Path, version: u64) -> PathBuf {
    trust.join(format!("keyring.{version}"))
}

fn read(trust: &Path, version: u64) -> Result<Option<Bytes>, FileError> {
    Ok(durable::read(&path(trust, version))?.map(Bytes::from))
}

#[cfg(test)]
mod tests {
    use replicator_protocol::refusal::Code;

    use super::*;
    use crate::testing::{keyring_document, root_key};

    #[test]
    fn accepted_keyring_is_found_again_after_a_restart() {
        let at = tempfile::tempdir().unwrap();
        let first = keyring_document(1, 1, root_key());
        Trusted::keep_all(at.path(), std::slice::from_ref(&first)).unwrap();
        let mut trusted = Trusted::load(at.path(), Digest::of(&first)).unwrap();
        trusted.accept_next(&keyring_document(2, 1, root_key())).unwrap();
        assert_eq!(Trusted::load(at.path(), Digest::of(&first)).unwrap().keyring().version(), 2);
    }

    #[test]
    fn keyring_out_of_order_is_refused_and_not_kept() {
        let at = tempfile::tempdir().unwrap();
        let first = keyring_document(1, 1, root_key());
        Trusted::keep_all(at.path(), std::slice::from_ref(&first)).unwrap();
        let mut trusted = Trusted::load(at.path(), Digest::of(&first)).unwrap();
        let refused = trusted.accept_next(&keyring_document(3, 1, root_key())).map(|_| ());
        assert!(matches!(refused, Err(TrustError::Refused(Refusal { code: Code::KeyringOutOfOrder, .. }))));
        assert_eq!(std::fs::read_dir(at.path()).unwrap().count(), 1);
    }

    #[test]
    fn another_root_than_the_pinned_one_is_refused() {
        let at = tempfile::tempdir().unwrap();
        Trusted::keep_all(at.path(), &[keyring_document(1, 1, root_key())]).unwrap();
        assert!(matches!(Trusted::load(at.path(), Digest([0; 32])), Err(TrustError::Refused(_))));
    }
}
