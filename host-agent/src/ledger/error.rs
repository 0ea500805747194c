//! What can go wrong with a ledger. In every case what was recorded before stays as it was.

use std::path::PathBuf;

use super::verify::Damage;

/// The ledger could not be opened; nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process writes it.
    #[error("another agent holds the ledger (lock file `{}`)", .0.display())]
    Locked(PathBuf),
    /// Its chain or its file is damaged. It is left as it is: see [`super::set_aside`].
    #[error("the ledger is damaged")]
    Damaged(#[source] Damage),
    /// It belongs to another host.
    #[error("the ledger belongs to host `{found}`, and this is host `{wanted}`")]
    OtherHost {
        /// The uid in its first entry.
        found: String,
        /// This host's uid.
        wanted: String,
    },
    /// A newer agent wrote it.
    #[error("the ledger has format {found}, and this agent knows formats up to {known}")]
    Newer {
        /// The format found.
        found: u32,
        /// The newest known.
        known: u32,
    },
    /// A file could not be made, opened or locked.
    #[error("could not open `{}`", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// SQLite refused.
    #[error("could not open the ledger's database")]
    Store(#[source] rusqlite::Error),
}

impl From<rusqlite::Error> for OpenError {
    /// Tells a file that is no sound database from a database that could not answer.
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::NotADatabase | rusqlite::ErrorCode::DatabaseCorrupt) => {
                Self::Damaged(Damage::File(error.to_string()))
            }
            Some(_) | None => Self::Store(error),
        }
    }
}

/// Nothing of the batch was recorded. Stop applying: a change that is not recorded cannot be replayed.
#[derive(Debug, thiserror::Error)]
#[error("could not append to the ledger")]
pub struct AppendError(#[source] pub(super) rusqlite::Error);

/// The ledger could not be read; it is unchanged.
#[derive(Debug, thiserror::Error)]
#[error("could not read the ledger")]
pub struct ReadError(#[source] pub(super) rusqlite::Error);
