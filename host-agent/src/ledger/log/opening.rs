//! Opening a ledger, whose whole chain is checked first, and beginning one.
//!
//! A ledger comes into its place whole: a folder without an entry is what is left of one, never one just begun.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use replicator_protocol::ids::{Digest, HostUid};
use replicator_protocol::wire::event::ChainStarted;
use replicator_protocol::wire::event::event::Body;
use rusqlite::Connection;

use super::place;
use super::{Ledger, Limits};
use crate::clock::Clock;
use crate::ledger::aside;
use crate::ledger::damage::Damage;
use crate::ledger::entry::Head;
use crate::ledger::error::{OpenError, StoreError};
use crate::ledger::files::{self, DATABASE, LedgerFile};
use crate::ledger::lock::Hold;
use crate::ledger::opened::connect;
use crate::ledger::rows::settled;
use crate::ledger::schema;
use crate::ledger::state::State;
use crate::ledger::verify::Verified;

impl Ledger {
    /// Opens the ledger in `folder`, or starts one whose first event is [`ChainStarted`] where there never was one.
    ///
    /// The whole chain is checked first.
    ///
    /// # Errors
    ///
    /// See [`OpenError`]; an existing ledger is unchanged, apart from tables added by a newer format.
    pub fn open(folder: &Path, host: &HostUid, clock: Arc<dyn Clock>) -> Result<Self, OpenError> {
        Self::open_held(folder, (host, clock), Hold::take(folder)?)
    }

    /// As [`Ledger::open`], for whoever holds the lock already.
    ///
    /// # Errors
    ///
    /// As [`Ledger::open`].
    pub fn open_held(folder: &Path, who: (&HostUid, Arc<dyn Clock>), hold: Hold) -> Result<Self, OpenError> {
        aside::finish(folder)?;
        if aside::is_first(folder)? {
            let started = ChainStarted { agent_version: env!("CARGO_PKG_VERSION").to_owned() };
            aside::make(folder, (who.0, Arc::clone(&who.1)), &hold, vec![Body::ChainStarted(started)])?;
            aside::finish(folder)?;
        }
        Self::open_at(folder.join(DATABASE), who, hold)
    }

    /// Opens the ledger whose files are in `database`.
    fn open_at(database: PathBuf, (host, clock): (&HostUid, Arc<dyn Clock>), hold: Hold) -> Result<Self, OpenError> {
        let unreadable = |source| OpenError::file(&database, source);
        place::finish(&database)?;
        let mut closed = files::list(&database).map_err(unreadable)?;
        let first = LedgerFile::beginning_with(&database, 1);
        let Some(current) = closed.pop() else { return Err(damaged(&first, "it is gone", 0)) };
        if let Some(lost) = files::lost(&database).map_err(unreadable)? {
            return Err(damaged(&lost, "it is gone, and not all that SQLite kept beside it", 0));
        }
        let mut verified = Verified::nothing();
        for file in &closed {
            is_written(file, verified.number)?;
            let connection = open_closed(file).map_err(|error| error.behind(verified.number))?;
            verified.take(file, &connection)?;
        }
        is_written(&current, verified.number)?;
        let opened = connect(&current).map_err(|error| error.behind(verified.number))?;
        verified.take(&current, &opened.connection)?;
        let Verified { number, hash, state, identity, .. } = verified.end()?;
        let Some((found, chain)) = identity else { return Err(damaged(&current, "it holds no entry", 0)) };
        is_settled_within(&current, &opened.connection, number)?;
        if found != host.as_str() {
            return Err(OpenError::OtherHost { found, wanted: host.to_string() });
        }
        files::clear(&database).map_err(unreadable)?;
        Ok(Self {
            folder: database,
            closed,
            current,
            opened: Some(opened),
            host: host.clone(),
            head: Head { chain: chain[..].try_into().unwrap_or_default(), number, hash },
            state,
            clock,
            limits: Limits::default(),
            unkept: None,
            _hold: hold,
        })
    }

    /// Begins the ledger in the folder `database`, which there is none of, with the events `first`; it is on disk
    /// when this returns.
    pub(in crate::ledger) fn begin(
        database: &Path,
        (host, clock): (&HostUid, Arc<dyn Clock>),
        hold: Hold,
        first: Vec<Body>,
    ) -> Result<(), OpenError> {
        let made = fs::DirBuilder::new().mode(0o700).create(database);
        made.map_err(|source| OpenError::file(database, source))?;
        let current = LedgerFile::beginning_with(database, 1);
        let mut ledger = Self {
            folder: database.to_owned(),
            closed: Vec::new(),
            opened: Some(connect(&current)?),
            current,
            host: host.clone(),
            head: Head { chain: new_chain()?, number: 0, hash: Digest([0; 32]) },
            state: State::default(),
            clock,
            limits: Limits::default(),
            unkept: None,
            _hold: hold,
        };
        ledger.append(None, first).map(drop).map_err(OpenError::First)
    }
}

/// Whether there is anything in `file`, which SQLite would take for a database that is just being made.
fn is_written(file: &LedgerFile, last_good: u64) -> Result<(), OpenError> {
    match file.size() {
        Ok(0) => Err(damaged(file, "it is empty", last_good)),
        Ok(_) => Ok(()),
        Err(source) => Err(OpenError::file(&file.path, source)),
    }
}

/// Whether the row of receipts speaks of an entry up to `last`; otherwise events would count as stored that are not.
fn is_settled_within(file: &LedgerFile, connection: &Connection, last: u64) -> Result<(), OpenError> {
    let settled = settled(connection).map_err(|source| OpenError::from(StoreError::new(&file.path, source)));
    if settled.map_err(|error| error.behind(last))? <= last {
        return Ok(());
    }
    Err(damaged(file, "its row of receipts speaks of an entry that is not there", last))
}

fn damaged(file: &LedgerFile, what: &str, last_good: u64) -> OpenError {
    OpenError::Damaged(Damage::File { path: file.path.clone(), what: what.to_owned(), last_good })
}

fn open_closed(file: &LedgerFile) -> Result<Connection, OpenError> {
    let mut connection = file.open()?;
    schema::migrate(&mut connection)?;
    Ok(connection)
}

fn new_chain() -> Result<[u8; 16], OpenError> {
    let mut chain = [0; 16];
    let none = |_| OpenError::file(Path::new("/dev/urandom"), io::Error::other("the kernel gives no random bytes"));
    getrandom::fill(&mut chain).map_err(none)?;
    Ok(chain)
}
