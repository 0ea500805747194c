//! Answers folded from what hosts said: kept so that they need not be folded again, and thrown away at will.
//!
//! Comes in: the collector's stored events, in order. Goes out: where each host stands, and what it applied.
//! Nothing here is truth, and nothing here depends on when it was folded.

pub mod fleet_status;
pub mod fleet_view;
pub mod host_history;

use std::path::{Path, PathBuf};
use std::time::Duration;

use replicator_protocol::ids::Digest;
use rusqlite::{Connection, OptionalExtension as _, Transaction, TransactionBehavior, params};

use crate::home::{HomeError, private_folder};
use crate::point::{self, Effect};
use crate::serve::store::Stored;
use crate::serve::{Store, StoreError};
pub use fleet_status::HostStatus;
pub use host_history::Apply;

/// The form of the tables: with another one found, everything is folded again.
const FORM: u32 = 3;
/// Events folded in one transaction.
const PAGE: u32 = 1000;
/// How long another reader or writer is waited for.
const BUSY: Duration = Duration::from_secs(5);

const SCHEMA: &str = "
    CREATE TABLE folded (one INTEGER PRIMARY KEY CHECK (one = 1), position INTEGER NOT NULL, last TEXT NOT NULL) STRICT;
    INSERT INTO folded (one, position, last) VALUES (1, 0, '');
    CREATE TABLE hosts (host TEXT PRIMARY KEY, status TEXT NOT NULL) STRICT;
";

/// The answers could not be folded or read.
#[derive(Debug, thiserror::Error)]
pub enum ProjectionsError {
    /// The folder could not be made.
    #[error(transparent)]
    Folder(#[from] HomeError),
    /// What they are folded from cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// SQLite refused.
    #[error("cannot use `{}`", path.display())]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// Why.
        source: rusqlite::Error,
    },
    /// An answer that cannot be read.
    #[error("`{}` holds an answer that cannot be read", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Why.
        source: serde_json::Error,
    },
}

impl ProjectionsError {
    /// One line that names the next action.
    pub fn hint(&self) -> String {
        match self {
            Self::Folder(error) => error.hint(),
            Self::Store(error) => error.hint(),
            Self::Sqlite { path, .. } | Self::Damaged { path, .. } => {
                format!("delete `{}`: it is folded again from what is stored", path.display())
            }
        }
    }
}

/// The folded answers.
pub struct Projections {
    connection: Connection,
    path: PathBuf,
}

impl Projections {
    /// Opens `path`, making it where it is absent or of another form.
    ///
    /// # Errors
    ///
    /// [`ProjectionsError`].
    pub fn open(path: &Path) -> Result<Self, ProjectionsError> {
        private_folder(path.parent().unwrap_or(Path::new(".")))?;
        let failed = |source| ProjectionsError::Sqlite { path: path.to_owned(), source };
        let mut connection = Connection::open(path).map_err(failed)?;
        prepare(&mut connection).map_err(failed)?;
        point::behind(Effect::ProjectionsMake);
        Ok(Self { connection, path: path.to_owned() })
    }

    /// Folds every event of `store` that is not folded yet; returns how many. Where `store` is not the one that was
    /// folded, as after a backup was put in its place, everything is folded again.
    ///
    /// # Errors
    ///
    /// [`ProjectionsError`]; those folded before stay.
    pub fn catch_up(&mut self, store: &Store) -> Result<u64, ProjectionsError> {
        let mut count = 0;
        loop {
            let failed = |source| ProjectionsError::Sqlite { path: self.path.clone(), source };
            let begun = self.connection.transaction_with_behavior(TransactionBehavior::Immediate);
            let transaction = begun.map_err(failed)?;
            let folded = "SELECT position, last FROM folded";
            let folded = transaction.query_row(folded, [], |row| Ok((row.get(0)?, row.get(1)?)));
            let (mut position, last): (u64, String) = folded.map_err(failed)?;
            if position > 0
                && store.events_after(position - 1, None, 1)?.first().is_none_or(|found| mark(found) != last)
            {
                forget(&transaction).map_err(failed)?;
                position = 0;
            }
            let page = store.events_after(position, None, PAGE)?;
            let Some(last) = page.last() else {
                transaction.commit().map_err(failed)?;
                return Ok(count);
            };
            for stored in &page {
                fold(&transaction, &self.path, stored)?;
            }
            let to = params![last.position, mark(last)];
            let moved = transaction.execute("UPDATE folded SET position = ?, last = ?", to);
            moved.and_then(|_| transaction.commit()).map_err(failed)?;
            point::behind(Effect::ProjectionsFold);
            count += page.len() as u64;
        }
    }

    /// Where each host stands, by number.
    ///
    /// # Errors
    ///
    /// [`ProjectionsError`].
    pub fn hosts(&self) -> Result<Vec<HostStatus>, ProjectionsError> {
        self.statuses()?.iter().map(|text| self.read(text)).collect()
    }

    /// SHA-256 over every answer: equal where they were folded from equal events.
    ///
    /// # Errors
    ///
    /// [`ProjectionsError`].
    pub fn digest(&self) -> Result<Digest, ProjectionsError> {
        Ok(Digest::of(self.statuses()?.join("\n").as_bytes()))
    }

    fn statuses(&self) -> Result<Vec<String>, ProjectionsError> {
        let read = || {
            let mut statement = self.connection.prepare_cached("SELECT status FROM hosts ORDER BY host")?;
            let rows = statement.query_map([], |row| row.get(0))?;
            rows.collect::<Result<Vec<_>, _>>()
        };
        read().map_err(|source| ProjectionsError::Sqlite { path: self.path.clone(), source })
    }

    fn read<T: serde::de::DeserializeOwned>(&self, text: &str) -> Result<T, ProjectionsError> {
        serde_json::from_str(text).map_err(|source| ProjectionsError::Damaged { path: self.path.clone(), source })
    }
}

fn prepare(connection: &mut Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY)?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let form: u32 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if form != FORM {
        forget(&transaction)?;
        transaction.pragma_update(None, "user_version", FORM)?;
    }
    transaction.commit()
}

/// Nothing is folded any more.
fn forget(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    // Earlier forms had the last one.
    for table in ["folded", "hosts", "applies"] {
        transaction.execute_batch(&format!("DROP TABLE IF EXISTS {table}"))?;
    }
    transaction.execute_batch(SCHEMA)
}

/// What tells an event in its place from every other that could stand there.
fn mark(stored: &Stored) -> String {
    format!("{} {} {}", stored.position, stored.hash, stored.received)
}

fn fold(transaction: &Transaction<'_>, path: &Path, stored: &Stored) -> Result<(), ProjectionsError> {
    let failed = |source| ProjectionsError::Sqlite { path: path.to_owned(), source };
    let damaged = |source| ProjectionsError::Damaged { path: path.to_owned(), source };
    let host = stored.event.host.as_str();
    let before: Option<String> = transaction
        .prepare_cached("SELECT status FROM hosts WHERE host = ?")
        .and_then(|mut query| query.query_row([host], |row| row.get(0)).optional())
        .map_err(failed)?;
    let status = before.map_or_else(|| Ok(HostStatus::new(host)), |text| serde_json::from_str(&text));
    let status = status.map_err(damaged)?.after(stored);
    let text = serde_json::to_string(&status).map_err(damaged)?;
    transaction
        .execute("INSERT OR REPLACE INTO hosts (host, status) VALUES (?, ?)", params![host, text])
        .map_err(failed)?;
    Ok(())
}

#[cfg(test)]
mod tests;
