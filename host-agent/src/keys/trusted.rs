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

    /// The keyrings kept in the folder `trust` that follow `keyring`, oldest first, and the last one of all.
    ///
    /// What a newer keyring revoked stays revoked, whoever brings an older one: a controller that was put back from a
    /// backup, or somebody who took that backup.
    ///
    /// # Errors
    ///
    /// [`FileError`] where one cannot be read.
    pub fn following(trust: &Path, mut keyring: Keyring) -> Result<(Keyring, Vec<Bytes>), FileError> {
        let mut envelopes = Vec::new();
        while let Some(envelope) = read(trust, keyring.version() + 1)? {
            // One of another root, or none at all, is no reason to distrust the keyring it does not follow.
            let Ok(next) = keyring.accept_next(&envelope) else { break };
            envelopes.push(envelope);
            keyring = next;
        }
        Ok((keyring, envelopes))
    }

    /// Keeps `envelopes`, from version 1, in the folder `trust`: at enrolment, once they are believed. A keyring that
    /// lies there beyond them follows none of them, and is put aside: left, it would end every later walk.
    ///
    /// # Errors
    ///
    /// [`FileError`]; those before it are kept.
    pub fn keep_all(trust: &Path, envelopes: &[Bytes]) -> Result<(), FileError> {
        durable::folder(trust)?;
        let beyond = |version: u64| usize::try_from(version).is_ok_and(|version| version > envelopes.len());
        for version in versions(trust)?.into_iter().filter(|version| beyond(*version)) {
            durable::put_aside(&path(trust, version))?;
        }
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

/// Every version that lies in the folder.
fn versions(trust: &Path) -> Result<Vec<u64>, FileError> {
    let entries = std::fs::read_dir(trust).map_err(|source| FileError::new("read", trust, source))?;
    let version = |name: std::ffi::OsString| name.to_str()?.strip_prefix("keyring.")?.parse().ok();
    Ok(entries.flatten().filter_map(|entry| version(entry.file_name())).collect())
}

fn read(trust: &Path, version: u64) -> Result<Option<Bytes>, FileError> {
    Ok(durable::read(&path(trust, version))?.map(Bytes::from))
}

#[cfg(test)]
mod tests {
    use replicator_protocol::refusal::Code;

    use super::*;
    use crate::testing::{keyring_document, root_key};

    /// A folder with the root document alone, that document, and who is believed by it.
    fn pinned() -> (tempfile::TempDir, Bytes, Trusted) {
        let at = tempfile::tempdir().unwrap();
        let first = keyring_document(1, 1, root_key());
        Trusted::keep_all(at.path(), std::slice::from_ref(&first)).unwrap();
        let trusted = Trusted::load(at.path(), Digest::of(&first)).unwrap();
        (at, first, trusted)
    }

    #[test]
    fn accepted_keyring_is_found_again_after_a_restart() {
        let (at, first, mut trusted) = pinned();
        trusted.accept_next(&keyring_document(2, 1, root_key())).unwrap();
        assert_eq!(Trusted::load(at.path(), Digest::of(&first)).unwrap().keyring().version(), 2);
    }

    #[test]
    fn keyring_out_of_order_is_refused_and_not_kept() {
        let (at, _, mut trusted) = pinned();
        let refused = trusted.accept_next(&keyring_document(3, 1, root_key())).map(|_| ());
        assert!(matches!(refused, Err(TrustError::Refused(Refusal { code: Code::KeyringOutOfOrder, .. }))));
        assert_eq!(std::fs::read_dir(at.path()).unwrap().count(), 1);
    }

    #[test]
    fn newer_keyrings_that_follow_count_and_others_are_put_aside() {
        let (at, first, mut trusted) = pinned();
        trusted.accept_next(&keyring_document(2, 1, root_key())).unwrap();
        // Of no fleet, and beyond a gap: each would end a later walk.
        std::fs::write(at.path().join("keyring.3"), "none").unwrap();
        std::fs::write(at.path().join("keyring.9"), keyring_document(9, 1, root_key())).unwrap();

        let bundle = Keyring::accept_root(first.clone(), Digest::of(&first)).unwrap();
        let (newest, following) = Trusted::following(at.path(), bundle).unwrap();
        assert_eq!((newest.version(), following.len()), (2, 1));
        let all: Vec<_> = std::iter::once(first.clone()).chain(following).collect();
        Trusted::keep_all(at.path(), &all).unwrap();
        let mut trusted = Trusted::load(at.path(), Digest::of(&first)).unwrap();
        trusted.accept_next(&keyring_document(3, 1, root_key())).unwrap();
        assert_eq!(Trusted::load(at.path(), Digest::of(&first)).unwrap().keyring().version(), 3);
        assert!(at.path().join("aside.keyring.3-1").exists() && at.path().join("aside.keyring.9-1").exists());
    }

    #[test]
    fn another_root_than_the_pinned_one_is_refused() {
        let at = tempfile::tempdir().unwrap();
        Trusted::keep_all(at.path(), &[keyring_document(1, 1, root_key())]).unwrap();
        assert!(matches!(Trusted::load(at.path(), Digest([0; 32])), Err(TrustError::Refused(_))));
    }
}
