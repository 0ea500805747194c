//! Which fleet this host belongs to, and as whom.

use std::path::Path;

use replicator_protocol::ids::{Digest, FleetName, HostId, HostUid};
use serde::{Deserialize, Serialize};

use crate::durable::{self, FileError};

/// Its file under `trust/`. It is written last at enrolment: a host that has it is enrolled.
const FILE: &str = "membership.json";

/// Who this host is, as its certificate says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Membership {
    /// The fleet.
    pub fleet: FleetName,
    /// The host's name for people.
    pub host: HostId,
    /// The host's number on the wire.
    pub uid: HostUid,
    /// SHA-256 of the pinned root document, 64 hex digits.
    root: String,
}

/// The membership could not be had.
#[derive(Debug, thiserror::Error)]
pub enum MembershipError {
    /// There is none.
    #[error("this host is not enrolled: there is no `{}`", .0.display())]
    NotEnrolled(std::path::PathBuf),
    /// The file could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// The file holds something else.
    #[error("`{}` does not say whose host this is", .0.display())]
    Malformed(std::path::PathBuf),
}

impl Membership {
    /// A host of `fleet` whose root document is `root`.
    #[must_use]
    pub fn new(fleet: FleetName, host: HostId, uid: HostUid, root: Digest) -> Self {
        Self { fleet, host, uid, root: root.to_string() }
    }

    /// Loads it from the folder `trust`.
    ///
    /// # Errors
    ///
    /// See [`MembershipError`].
    pub fn load(trust: &Path) -> Result<Self, MembershipError> {
        let path = trust.join(FILE);
        let bytes = durable::read(&path)?.ok_or_else(|| MembershipError::NotEnrolled(path.clone()))?;
        let membership: Self = serde_json::from_slice(&bytes).map_err(|_| MembershipError::Malformed(path.clone()))?;
        match membership.root() {
            Some(_) => Ok(membership),
            None => Err(MembershipError::Malformed(path)),
        }
    }

    /// Keeps it in the folder `trust`.
    ///
    /// # Errors
    ///
    /// [`MembershipError::File`]; what was there before is there still.
    pub fn keep(&self, trust: &Path) -> Result<(), MembershipError> {
        let path = trust.join(FILE);
        let bytes = serde_json::to_vec_pretty(self).map_err(|_| MembershipError::Malformed(path.clone()))?;
        Ok(durable::replace(&path, &bytes, 0o600)?)
    }

    /// The digest of the pinned root document.
    #[must_use]
    pub fn root(&self) -> Option<Digest> {
        let mut digest = [0; 32];
        hex::decode_to_slice(&self.root, &mut digest).ok().map(|()| Digest(digest))
    }
}
