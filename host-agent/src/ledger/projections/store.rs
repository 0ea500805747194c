//! Where folded answers are kept between commands: a database of its own, which may be deleted at any time.

use std::fs;
use std::path::Path;

use prost::Message as _;
use replicator_protocol::ids::Digest;
use replicator_protocol::wire::event::Event;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::applies::KEPT;
use super::{Applies, Apply, Fold, ResourceStatus, Status};
use crate::ledger::{ReadError, Reader};

/// Entries folded at once.
const PAGE: u32 = 1000;

/// The form of the tables, and how they are folded. Another number found: they are dropped and folded anew, for
/// nothing in them is a fact.
const FORMAT: u32 = 2;

const TABLES: &str = "
    CREATE TABLE folded   (number INTEGER NOT NULL, hash BLOB NOT NULL) STRICT;
    CREATE TABLE applies  (number INTEGER PRIMARY KEY, line TEXT NOT NULL) STRICT;
    CREATE TABLE status   (id INTEGER PRIMARY KEY CHECK (id = 1), head TEXT NOT NULL) STRICT;
    CREATE TABLE resources (resource TEXT PRIMARY KEY, status TEXT NOT NULL) STRICT;
";

/// An answer could not be had; the ledger is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum ProjectionError {
    /// The ledger could not be read.
    #[error(transparent)]
    Ledger(#[from] ReadError),
    /// The database of answers could not be used.
    #[error("could not keep what was folded from the ledger")]
    Store(#[source] rusqlite::Error),
    /// A row holds something else.
    #[error("a folded answer cannot be read; delete the projections and fold them again")]
    Row(#[source] serde_json::Error),
}

impl From<rusqlite::Error> for ProjectionError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Store(error)
    }
}

impl From<serde_json::Error> for ProjectionError {
    fn from(error: serde_json::Error) -> Self {
        Self::Row(error)
    }
}

/// The status at the moment entry `number` was appended, folded from what is kept of the entries before.
///
/// # Errors
///
/// [`ReadError`].
pub fn status_at(reader: &Reader, number: u64) -> Result<Status, ReadError> {
    let (base, state) = reader.base()?;
    let mut status = Status::clone(&state.status);
    each(reader, base, |event| {
        if event.number <= number {
            status.fold(event);
        }
        event.number < number
    })?;
    Ok(status)
}

/// Hands every event after `after` to `take`, until it wants no more. Returns number and hash of the last entry.
fn each(reader: &Reader, after: u64, mut take: impl FnMut(&Event) -> bool) -> Result<Option<(u64, Digest)>, ReadError> {
    let (mut after, mut last) = (after, None);
    loop {
        let page = reader.read_after(after, PAGE)?;
        if page.is_empty() {
            return Ok(last);
        }
        for entry in page {
            after = entry.number;
            last = Some((entry.number, entry.hash));
            let Ok(event) = Event::decode(entry.payload) else { continue };
            if !take(&event) {
                return Ok(last);
            }
        }
    }
}

/// The kept answers.
pub struct Projections(Connection);

impl Projections {
    /// Opens the database at `path`, or makes one.
    ///
    /// # Errors
    ///
    /// [`ProjectionError::Store`].
    pub fn open(path: &Path) -> Result<Self, ProjectionError> {
        match Self::opened(path) {
            Ok(projections) => Ok(projections),
            Err(_unusable) => {
                // Nothing in it is a fact: what cannot be used is folded anew.
                for suffix in ["", "-wal", "-shm"] {
                    let mut file = path.as_os_str().to_owned();
                    file.push(suffix);
                    let _absent = fs::remove_file(Path::new(&file));
                }
                Self::opened(path)
            }
        }
    }

    fn opened(path: &Path) -> Result<Self, ProjectionError> {
        let mut connection = Connection::open(path)?;
        let found: u32 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
        if found != FORMAT {
            let transaction = connection.transaction()?;
            transaction.execute_batch(
                "DROP TABLE IF EXISTS folded; DROP TABLE IF EXISTS applies; DROP TABLE IF EXISTS status;
                 DROP TABLE IF EXISTS resources;",
            )?;
            transaction.execute_batch(TABLES)?;
            transaction.pragma_update(None, "user_version", FORMAT)?;
            transaction.commit()?;
        }
        Ok(Self(connection))
    }

    /// Folds what has been appended since, and returns how many events that were.
    ///
    /// A ledger that is not the one folded before is folded from its beginning: from the checkpoint, where entries
    /// were dropped.
    ///
    /// # Errors
    ///
    /// [`ProjectionError`]; the answers are as before.
    pub fn catch_up(&mut self, reader: &Reader) -> Result<u64, ProjectionError> {
        let folded: Option<(u64, [u8; 32])> =
            self.0.query_row("SELECT number, hash FROM folded", [], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
        let known = match folded {
            Some((number, hash)) if reader.hash_of(number)? == Some(Digest(hash)) => Some(number),
            Some(_) | None => None,
        };
        let (after, mut status, mut applies) = match known {
            Some(number) => (number, self.status()?, Applies::default()),
            None => {
                let (number, state) = reader.base()?;
                (number, Status::clone(&state.status), Applies::clone(&state.applies))
            }
        };
        let mut count = 0;
        let last = each(reader, after, |event| {
            status.fold(event);
            applies.fold(event);
            count += 1;
            true
        })?;
        let Some((number, hash)) = last else { return Ok(0) };
        let transaction = self.0.transaction()?;
        if known.is_none() {
            transaction.execute("DELETE FROM applies", [])?;
        }
        transaction.execute_batch("DELETE FROM folded; DELETE FROM status; DELETE FROM resources;")?;
        transaction.execute("INSERT INTO folded (number, hash) VALUES (?, ?)", params![number, hash.0])?;
        for apply in applies.iter() {
            let line = serde_json::to_string(apply)?;
            transaction.execute("INSERT INTO applies (number, line) VALUES (?, ?)", params![apply.number, line])?;
        }
        let older = "DELETE FROM applies WHERE number NOT IN (SELECT number FROM applies ORDER BY number DESC LIMIT ?)";
        transaction.execute(older, [KEPT])?;
        for (resource, status) in std::mem::take(&mut status.resources) {
            let row = params![resource, serde_json::to_string(&status)?];
            transaction.execute("INSERT INTO resources (resource, status) VALUES (?, ?)", row)?;
        }
        let head = serde_json::to_string(&status)?;
        transaction.execute("INSERT INTO status (id, head) VALUES (1, ?)", [head])?;
        transaction.commit()?;
        Ok(count)
    }

    /// The status as last folded.
    ///
    /// # Errors
    ///
    /// [`ProjectionError`].
    pub fn status(&self) -> Result<Status, ProjectionError> {
        let head: Option<String> = self.0.query_row("SELECT head FROM status", [], |row| row.get(0)).optional()?;
        let mut status: Status = head.map(|head| serde_json::from_str(&head)).transpose()?.unwrap_or_default();
        for (resource, row) in self.rows("SELECT resource, status FROM resources ORDER BY resource")? {
            status.resources.insert(resource, serde_json::from_str::<ResourceStatus>(&row)?);
        }
        Ok(status)
    }

    /// The last 256 applies, oldest first.
    ///
    /// # Errors
    ///
    /// [`ProjectionError`].
    pub fn applies(&self) -> Result<Vec<Apply>, ProjectionError> {
        let rows = self.rows("SELECT CAST(number AS TEXT), line FROM applies ORDER BY number")?;
        rows.iter().map(|(_, line)| serde_json::from_str(line).map_err(ProjectionError::Row)).collect()
    }

    /// SHA-256 over every row of every table: equal where the answers are.
    ///
    /// # Errors
    ///
    /// [`ProjectionError`].
    pub fn digest(&self) -> Result<Digest, ProjectionError> {
        let (status, applies) = (self.status()?, self.applies()?);
        Ok(Digest::of(&serde_json::to_vec(&(status, applies))?))
    }

    fn rows(&self, query: &str) -> Result<Vec<(String, String)>, ProjectionError> {
        let mut statement = self.0.prepare(query)?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use replicator_protocol::wire::event::event::Body;
    use replicator_protocol::wire::event::{
        AgentStarted, ApplyReported, DriftFound, Outcome, ResourceResult, StepFinished,
    };

    use super::*;
    use crate::clock::SystemClock;
    use crate::config::Layout;
    use crate::ledger::Ledger;
    use crate::testing::membership;

    fn result(name: &str, outcome: Outcome) -> ResourceResult {
        ResourceResult { resource: format!("web.{name}"), outcome: outcome.into(), ..ResourceResult::default() }
    }

    fn bodies(round: usize) -> Vec<Body> {
        let outcome = if round.is_multiple_of(3) { Outcome::Failed } else { Outcome::Changed };
        let results = vec![result("server", outcome), result(&format!("extra-{round}"), Outcome::Changed)];
        let gone = result(&format!("extra-{}", round.saturating_sub(2)), Outcome::Removed);
        let step = |result: &ResourceResult| {
            Body::StepFinished(StepFinished { result: Some(result.clone()), ..StepFinished::default() })
        };
        let mut bodies: Vec<_> = results.iter().chain([&gone]).map(step).collect();
        bodies.push(Body::DriftFound(DriftFound { resource: "web.server".into(), what: "stopped".into() }));
        bodies.push(Body::AgentStarted(AgentStarted::default()));
        bodies.push(Body::ApplyReported(ApplyReported { results, complete: true, ..ApplyReported::default() }));
        bodies
    }

    #[test]
    fn replay_rebuilds_what_was_folded_step_by_step() {
        let at = tempfile::tempdir().unwrap();
        let layout = Layout::new(at.path());
        layout.make_folders().unwrap();
        let mut ledger = Ledger::open(&layout.ledger(), &membership().uid, Arc::new(SystemClock)).unwrap();
        let reader = Reader::open(&layout.ledger()).unwrap().unwrap();
        let mut projections = Projections::open(&layout.projections()).unwrap();
        let mut moments = Vec::new();
        for round in 0..8 {
            ledger.append(None, bodies(round)).unwrap();
            assert!(projections.catch_up(&reader).unwrap() > 0);
            moments.push((reader.last().unwrap(), projections.status().unwrap()));
        }
        assert_eq!(projections.catch_up(&reader).unwrap(), 0);
        let digest = projections.digest().unwrap();
        drop(projections);
        fs::remove_file(layout.projections()).unwrap();
        let mut again = Projections::open(&layout.projections()).unwrap();
        assert_eq!(again.catch_up(&reader).unwrap(), reader.last().unwrap());
        assert_eq!(again.digest().unwrap(), digest);
        assert_eq!(again.applies().unwrap().len(), 8);
        for (number, status) in moments {
            assert_eq!(status_at(&reader, number).unwrap(), status, "{number}");
        }
    }

    #[test]
    fn file_that_is_no_database_is_folded_anew() {
        let at = tempfile::tempdir().unwrap();
        let path = at.path().join("projections.db");
        fs::write(&path, "not a database, and long enough to be told from an empty one".repeat(20)).unwrap();
        assert_eq!(Projections::open(&path).unwrap().status().unwrap(), Status::default());
    }
}
