//! Keys, and what they make: keyrings, the broker's accounts and credentials, certificates of hosts.
//!
//! Private keys lie in the fleet's folder, one file each, 0600. Nothing here decides what a host should be.

pub mod accounts;
pub mod admission;
pub mod broker;
pub mod certificates;
mod files;
mod jwt;
pub mod keyring;
pub mod renewal;
pub mod root;
pub mod settings;
pub mod signing;
mod tls;

use std::path::PathBuf;

use replicator_protocol::refusal::Refusal;

pub use files::FileError;
pub use keyring::Keyrings;
pub use settings::Settings;

/// Why a key could not be made or used.
#[derive(Debug, thiserror::Error)]
pub enum KeysError {
    /// A file refused.
    #[error(transparent)]
    File(#[from] FileError),
    /// What every fleet has is not there.
    #[error("there is no `{}`", path.display())]
    Absent {
        /// The file.
        path: PathBuf,
    },
    /// A file that is not what its name says.
    #[error("`{}` is not {want}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What it should be.
        want: &'static str,
    },
    /// `fleet.toml` cannot be read.
    #[error("cannot read `{}`", path.display())]
    Settings {
        /// The file.
        path: PathBuf,
        /// Where and why.
        source: Box<toml::de::Error>,
    },
    /// Settings that have no written form.
    #[error("cannot write `{}`", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: Box<toml::ser::Error>,
    },
    /// The system gives no random bytes.
    #[error("cannot get random bytes")]
    NoRandomness(#[source] getrandom::Error),
    /// A NATS key is none.
    #[error("cannot use a key of the broker")]
    Nkey(#[source] nkeys::error::Error),
    /// A certificate could not be made.
    #[error("cannot make a certificate for the broker")]
    Certificate(#[source] rcgen::Error),
    /// A keyring or certificate is not believed.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

impl KeysError {
    /// One line that names the next action.
    pub fn hint(&self) -> String {
        match self {
            Self::File(error) => error.hint(),
            Self::Absent { .. } | Self::Malformed { .. } | Self::Nkey(_) => {
                "restore the fleet's folder from a backup".into()
            }
            Self::Settings { path, .. } => format!("correct `{}`", path.display()),
            Self::Unwritable { .. } | Self::NoRandomness(_) => "try again; if it stays, see the cause above".into(),
            Self::Certificate(_) => "give each `--name` as a host name or an address".into(),
            Self::Refused(refusal) => refusal.code.hint().into(),
        }
    }
}
