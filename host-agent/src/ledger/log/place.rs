//! Whether the file that is appended to stands in its place still. One that somebody removed, or put another in the
//! place of, is written there again: all of it is open here, and what is appended to it would be gone with this process.
//!
//! The copy is made whole first, beside its place; then what stands in that place goes aside, and the copy comes there.
//! Killed in between, the next start does the rest.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use replicator_protocol::wire::event::event::Body;
use replicator_protocol::wire::event::{Event, LedgerPutBack};
use rusqlite::Connection;

use super::Ledger;
use crate::host::point::{Effect, Side, around, reach};
use crate::ledger::entry::Head;
use crate::ledger::error::{AppendError, OpenError, StoreError};
use crate::ledger::files::{self, LedgerFile};
use crate::ledger::opened::{connect, number, sync_folder};
use crate::ledger::projections::Fold as _;
use crate::ledger::rows::insert;

impl Ledger {
    /// Looks whether the file that is appended to stands in its place, and writes it there again where it does not, with
    /// an event that says so. What was put in its place goes into the folder `ledger.left-N`.
    ///
    /// # Errors
    ///
    /// [`AppendError`]: nothing may be appended until a later look finds all well; every entry can be read still.
    pub fn look(&mut self) -> Result<(), AppendError> {
        match &self.opened {
            Some(opened) if !opened.is_in_place() => self.put_back(),
            Some(_) => Ok(()),
            None => self.connect(),
        }
        .map_err(|error| AppendError::NotOpen(Box::new(error)))
    }

    fn connect(&mut self) -> Result<(), OpenError> {
        self.opened = Some(connect(&self.current)?);
        Ok(())
    }

    fn put_back(&mut self) -> Result<(), OpenError> {
        let Some(opened) = &self.opened else { return Ok(()) };
        let (head, event) = self.write_again(&opened.connection)?;
        for path in opened.ours() {
            files::remove_one(path).map_err(|source| OpenError::file(path, source))?;
        }
        finish(&self.folder)?;
        // From here on no entry may go into the one before.
        self.opened = None;
        self.head = head;
        self.state.fold(&event);
        self.connect()
    }

    /// Writes all that is open here beside its place, and behind it an entry that says why.
    fn write_again(&self, open: &Connection) -> Result<(Head, Event), OpenError> {
        let (unfinished, whole) = (self.current.unfinished(), self.current.again());
        let failed = |source| OpenError::file(&unfinished, source);
        match fs::DirBuilder::new().mode(0o700).create(&self.folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(failed(error)),
            Ok(()) | Err(_) => {}
        }
        reach(Effect::LedgerMake, Side::Before).map_err(failed)?;
        files::remove(&unfinished).map_err(failed)?;
        let is_ours = self.opened.as_ref().is_some_and(|opened| opened.ours().any(|path| path == self.current.path));
        let replaced = !is_ours && number(&self.current.path).is_some();
        let file = self.current.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let event = self.stamp(None).event(self.head, Body::LedgerPutBack(LedgerPutBack { file, replaced }));
        let write = || {
            open.execute("VACUUM INTO ?", [unfinished.to_string_lossy()])?;
            let copy = Connection::open(&unfinished)?;
            copy.pragma_update(None, "synchronous", "full")?;
            let head = insert(&copy, self.head, &event)?;
            copy.close().map_err(|(_, source)| source)?;
            Ok(head)
        };
        let head = match write() {
            Ok(head) => head,
            Err(source) => {
                // It takes room that a later attempt may need.
                let _left = files::remove(&unfinished);
                return Err(StoreError::new(&unfinished, source).into());
            }
        };
        fs::rename(&unfinished, &whole).map_err(failed)?;
        sync_folder(&self.folder)?;
        reach(Effect::LedgerMake, Side::After).map_err(failed)?;
        Ok((head, event))
    }
}

/// Puts a file that was written again in its place, where that is left to do.
pub(super) fn finish(database: &Path) -> Result<(), OpenError> {
    let failed = |source| OpenError::file(database, source);
    for file in files::written_again(database).map_err(failed)? {
        around(Effect::LedgerPutBack, || put_aside(database, &file)).map_err(failed)?;
        around(Effect::LedgerPutBack, || fs::rename(file.again(), &file.path)).map_err(failed)?;
        sync_folder(database)?;
        let file = file.path.display();
        tracing::error!(%file, "somebody removed or replaced this file of the ledger; it was written again whole");
    }
    Ok(())
}

/// Puts what stands in the place of `file`, and beside that, into a folder of its own beside the ledger's.
fn put_aside(database: &Path, file: &LedgerFile) -> io::Result<()> {
    let there: Vec<_> = file.with_side_files().into_iter().filter(|path| number(path).is_some()).collect();
    if there.is_empty() {
        return Ok(());
    }
    let left = new_folder(database)?;
    for path in there {
        fs::rename(&path, left.join(path.file_name().unwrap_or_default()))?;
    }
    fs::File::open(&left)?.sync_all()?;
    left.parent().map_or(Ok(()), |folder| fs::File::open(folder)?.sync_all())
}

/// Makes the first folder `ledger.left-N` that is not there.
fn new_folder(database: &Path) -> io::Result<PathBuf> {
    let mut number = 1_u32;
    loop {
        let folder = database.with_extension(format!("left-{number}"));
        match fs::DirBuilder::new().mode(0o700).create(&folder) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            made => return made.map(|()| folder),
        }
    }
}

#[cfg(test)]
mod tests;
