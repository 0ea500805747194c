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
    /// The kernel gave no random bytes.
    #[error("the kernel gives no random bytes")]
    Random,
}
