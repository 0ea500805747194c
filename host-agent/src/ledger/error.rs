//! What can go wrong with a ledger. In every case what was recorded before stays as it was.

use std::error::Error as _;
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use super::damage::Damage;
use super::sized;

const NO_ROOM: &str = "make room on the disk that holds it; the ledger is left as it is";
const NOT_ALLOWED: &str = "run the agent as root, and see that its folder can be written; the ledger is left as it is";

/// SQLite gave no answer; this says nothing about what is in the file.
#[derive(Debug, thiserror::Error)]
#[error("could not use the database `{}`", path.display())]
pub struct StoreError {
    /// Which.
    pub path: PathBuf,
    /// Why: busy, no room, not allowed.
    pub source: rusqlite::Error,
}

impl StoreError {
    pub(super) fn new(path: &Path, source: rusqlite::Error) -> Self {
        Self { path: path.to_owned(), source }
    }

    /// The next thing to do.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        use rusqlite::ErrorCode::{
            CannotOpen, DatabaseBusy, DatabaseLocked, DiskFull, FileLockingProtocolFailed, PermissionDenied, ReadOnly,
        };
        if self.is_damage() {
            return "the next start of the agent sets it aside and begins a new one";
        }
        #[allow(clippy::wildcard_enum_match_arm, reason = "whatever else SQLite says, the disk is the place to look")]
        match self.source.sqlite_error_code() {
            Some(DatabaseBusy | DatabaseLocked | FileLockingProtocolFailed) => {
                "another program has that file open: end it, then start the agent again"
            }
            Some(DiskFull) => NO_ROOM,
            Some(PermissionDenied | ReadOnly | CannotOpen) => NOT_ALLOWED,
            _ => "look at the disk and at the kernel's log; the ledger is left as it is",
        }
    }

    /// Whether the file itself is no sound database, or holds what was never written into it: every statement is known
    /// to be right, and so is every value that it reads back.
    pub(super) fn is_damage(&self) -> bool {
        use rusqlite::Error::{
            FromSqlConversionFailure, IntegralValueOutOfRange, InvalidColumnType, SqlInputError, SqliteFailure,
            Utf8Error,
        };
        #[allow(clippy::wildcard_enum_match_arm, reason = "whatever else SQLite says, it says nothing of the content")]
        match &self.source {
            FromSqlConversionFailure(..) | IntegralValueOutOfRange(..) | InvalidColumnType(..) | Utf8Error(..) => true,
            SqliteFailure(error, _) | SqlInputError { error, .. } => {
                matches!(error.code, rusqlite::ErrorCode::NotADatabase | rusqlite::ErrorCode::DatabaseCorrupt)
                    || error.extended_code == rusqlite::ffi::SQLITE_ERROR
            }
            _ => false,
        }
    }

    /// The damage that this error is, where it [is one](Self::is_damage).
    pub(super) fn damage(&self, last_good: u64) -> Damage {
        let what = self.source().map(ToString::to_string).unwrap_or_default();
        Damage::File { path: self.path.clone(), what, last_good }
    }
}

/// What an error of `connection` becomes: one that names its file.
pub(super) fn at<E: From<StoreError>>(connection: &Connection) -> impl Fn(rusqlite::Error) -> E + use<E> {
    let path = PathBuf::from(connection.path().unwrap_or_default());
    move |source| StoreError::new(&path, source).into()
}

/// The ledger could not be opened; nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process writes it.
    #[error("another agent holds the ledger (lock file `{}`)", .0.display())]
    Locked(PathBuf),
    /// Its chain or its file is damaged. It is left as it is: see [`super::open_or_set_aside`].
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
        source: io::Error,
    },
    /// SQLite gave no answer.
    #[error(transparent)]
    Store(StoreError),
    /// A new ledger's first entry could not be appended.
    #[error("could not begin a new ledger")]
    First(#[source] AppendError),
}

impl OpenError {
    /// The same, where the entries up to `last_good` are known to be well.
    pub(super) fn behind(self, last_good: u64) -> Self {
        match self {
            Self::Damaged(Damage::File { path, what, .. }) => Self::Damaged(Damage::File { path, what, last_good }),
            other @ (Self::Damaged(_)
            | Self::Locked(_)
            | Self::OtherHost { .. }
            | Self::Newer { .. }
            | Self::File { .. }
            | Self::Store(_)
            | Self::First(_)) => other,
        }
    }

    /// The next thing to do.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Locked(_) => Some("see what runs: `replicator-host-agent status`"),
            Self::Damaged(_) => Some("the next start of the agent sets it aside and begins a new one"),
            Self::OtherHost { .. } => Some("put this host's own ledger back, or enrol the host again"),
            Self::Newer { .. } => Some("run the agent that wrote it, or a newer one"),
            Self::File { source, .. } if source.kind() == io::ErrorKind::StorageFull => Some(NO_ROOM),
            Self::File { .. } => Some(NOT_ALLOWED),
            Self::Store(error) => Some(error.hint()),
            Self::First(error) => Some(error.hint()),
        }
    }

    pub(super) fn file(path: &Path, source: io::Error) -> Self {
        Self::File { path: path.to_owned(), source }
    }
}

impl From<StoreError> for OpenError {
    /// Tells a file that is no sound database from a database that could not answer.
    fn from(error: StoreError) -> Self {
        if error.is_damage() { Self::Damaged(error.damage(0)) } else { Self::Store(error) }
    }
}

impl From<VerifyError> for OpenError {
    fn from(error: VerifyError) -> Self {
        match error {
            VerifyError::Damaged(damage) => Self::Damaged(damage),
            VerifyError::Store(error) => Self::Store(error),
        }
    }
}

/// Whether the ledger is sound was not found out, or it is not.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// It is not what was written.
    #[error("the ledger is damaged")]
    Damaged(#[source] Damage),
    /// It could not be read.
    #[error(transparent)]
    Store(StoreError),
}

impl From<Damage> for VerifyError {
    fn from(damage: Damage) -> Self {
        Self::Damaged(damage)
    }
}

/// Nothing of the batch was recorded. Stop applying: a change that is not recorded cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// SQLite gave no answer.
    #[error("could not append to the ledger")]
    Store(#[from] StoreError),
    /// The file that is appended to could not be opened, or put back in its place.
    #[error("could not append to the ledger")]
    NotOpen(#[source] Box<OpenError>),
    /// No message could carry it to a collector, nor anything behind it.
    #[error("an event `{kind}` is too large for a message (got {size} bytes, have {})", sized::BODY_MAX)]
    TooLarge {
        /// Its kind.
        kind: &'static str,
        /// Bytes of its body.
        size: usize,
    },
}

impl AppendError {
    /// The next thing to do.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Store(error) => error.hint(),
            Self::NotOpen(error) => error.hint().unwrap_or(NOT_ALLOWED),
            Self::TooLarge { .. } => "declare less in one resource: what is applied of it has to fit into one message",
        }
    }
}

/// The ledger could not be read; it is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// SQLite gave no answer.
    #[error("could not read the ledger")]
    Store(#[from] StoreError),
    /// A checkpoint is that of no state.
    #[error("cannot read what the entries up to {0} fold to")]
    Checkpoint(u64),
    /// Its files could not be listed.
    #[error("could not list the ledger's files in `{}`", path.display())]
    Folder {
        /// Where they are.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl ReadError {
    /// The next thing to do.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Store(error) => error.hint(),
            Self::Checkpoint(_) => "run `replicator-host-agent ledger verify`",
            Self::Folder { .. } => NOT_ALLOWED,
        }
    }
}

/// The ledger could not be kept within its limits; it is larger than it should be, and whole.
#[derive(Debug, thiserror::Error)]
pub enum KeepError {
    /// A file could not be made, renamed, measured or removed.
    #[error("could not {what} `{}`", path.display())]
    File {
        /// What was attempted.
        what: &'static str,
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// SQLite gave no answer.
    #[error("could not begin a further file of the ledger")]
    Store(#[from] StoreError),
    /// The further file could not be brought to its format.
    #[error("could not begin a further file of the ledger")]
    Open(#[from] OpenError),
    /// How far it is receipted could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// What happened could not be recorded.
    #[error(transparent)]
    Append(#[from] AppendError),
    /// What all entries fold to could not be put into bytes.
    #[error("could not keep what the ledger's entries fold to")]
    Checkpoint(#[source] serde_json::Error),
}
