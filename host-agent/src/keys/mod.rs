//! The host's own keys, and the keys it believes.
//!
//! Key pairs are made here, kept here and used here; no private half leaves this machine or is printed.

pub mod digest_key;
pub mod enrolment;
pub mod host_key;
mod membership;
mod opener;
mod spent;
pub mod trusted;

pub use membership::{Membership, MembershipError};
pub use opener::Opener;

use crate::durable::FileError;

/// A key could not be had.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// Its file could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// There is none.
    #[error("there is no key `{}`; this host is not enrolled", .0.display())]
    Missing(std::path::PathBuf),
    /// The file holds something else.
    #[error("`{}` holds no key", .0.display())]
    Malformed(std::path::PathBuf),
    /// Somebody but its owner may have read it, so it proves nothing any more.
    #[error("the key `{}` is not its owner's alone (mode `{mode:04o}`, not `0600`)", path.display())]
    Exposed {
        /// Its file.
        path: std::path::PathBuf,
        /// The permission bits it has.
        mode: u32,
    },
    /// The kernel gave no random bytes.
    #[error("the kernel gives no random bytes")]
    Random,
}

impl KeyError {
    /// One line that names the next action.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Exposed { .. } => {
                "`chmod 600` it, if nobody else has read it; else remove it and enrol the host again"
            }
            Self::File(_) | Self::Missing(_) | Self::Malformed(_) | Self::Random => {
                "enrol it from the controller: `replicator host up`"
            }
        }
    }
}
