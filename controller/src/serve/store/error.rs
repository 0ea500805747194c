//! Why `events.db` could not be used.

use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

use crate::home::HomeError;

/// `events.db` could not be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Its folder could not be made.
    #[error(transparent)]
    Folder(#[from] HomeError),
    /// There is none.
    #[error("there is no `{}`", path.display())]
    Absent {
        /// Where it would be.
        path: PathBuf,
    },
    /// SQLite refused.
    #[error("cannot {act} `{}`", path.display())]
    Sqlite {
        /// `open`, `make`, `write`, `read`.
        act: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: rusqlite::Error,
    },
    /// The file is no sound database.
    #[error("`{}` is damaged: {what}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// An event in it is of a kind this build does not know.
    #[error("the event at {position} of `{}` is of a kind this build does not know", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// The place of the event.
        position: u64,
    },
    /// It could not be noted which database the log belongs to.
    #[error("cannot write `{}`", path.display())]
    Note {
        /// The note.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It could not be put aside.
    #[error("cannot put `{}` aside", path.display())]
    Aside {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

impl StoreError {
    /// One line that names the next action.
    pub fn hint(&self) -> String {
        match self {
            Self::Folder(error) => error.hint(),
            Self::Absent { .. } => "collect with `replicator serve`; it is made there".into(),
            Self::Sqlite { path, .. } | Self::Note { path, .. } | Self::Aside { path, .. } => {
                format!("check who owns `{}` and whether the disk is full", path.display())
            }
            Self::Newer { .. } => "use the `replicator` that collected it, or a later one".into(),
            Self::Damaged { path, .. } => format!(
                "restore `{0}` from a backup: stop `replicator serve`, remove `{0}-wal` and `{0}-shm`, and rename the \
                 backup to it; or start `replicator serve` again: it puts it aside, and hosts send again what they hold",
                path.display()
            ),
        }
    }

    /// What SQLite said when it was to `act` on `path`.
    pub(super) fn of(act: &'static str, path: &Path, source: rusqlite::Error) -> Self {
        match source.sqlite_error_code() {
            Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
                Self::Damaged { path: path.to_owned(), what: source.to_string() }
            }
            _ => Self::Sqlite { act, path: path.to_owned(), source },
        }
    }
}
