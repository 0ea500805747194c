//! `directory`: owner and mode of one folder. Never recursive.

use std::path::Path;

use replicator_protocol::resources::Kind;
use replicator_protocol::resources::directory::DEFAULT_MODE;
use replicator_protocol::wire::declaration::Directory;
use replicator_protocol::wire::event::{Failure, Record};

use super::applier::{Applier, Done, Gone, Job, Tools, is_as_left, record};
use super::failure::{self, FailureCode, With as _, failure};
use super::file::{drifted, owned, ownership, place, word};
use crate::host::files::{self, FileType};
use crate::ledger::projections::resources::ALGORITHM;
use crate::planner::Drift;

/// Applies folders.
pub(super) struct Directories<'t>(pub(super) &'t Tools);

impl Directories<'_> {
    /// Where a file of the same path was found before, it comes back.
    fn gone(&self, record: &Record, path: &Path, note: &str) -> Result<Gone, Failure> {
        match self.0.original(&record.original).map_err(|error| failure::file("read the original of", path, &error))? {
            Some((content, ownership)) => {
                files::write(path, &content, ownership).map_err(|error| failure::file("restore", path, &error))?;
                Ok(Gone::Removed("what was here first is back".into()))
            }
            None => Ok(Gone::Removed(note.to_owned())),
        }
    }

    /// What a step is about to leave, told before it is begun.
    ///
    /// # Errors
    ///
    /// As the step itself will fail, before it makes anything.
    pub(super) fn about(declared: &Directory) -> Result<Record, Failure> {
        let ownership = ownership(&declared.owner, &declared.group, declared.mode.unwrap_or(DEFAULT_MODE))?;
        let about = Record {
            kind: Kind::Directory.as_str().to_owned(),
            target: declared.path.clone(),
            algorithm: ALGORITHM,
            ..Record::default()
        };
        Ok(owned(about, ownership))
    }
}

impl Applier for Directories<'_> {
    type Declared = Directory;

    async fn observe(&self, _declared: &Directory, record: &Record, _full: bool) -> Result<Vec<Drift>, Failure> {
        let path = Path::new(&record.target);
        Ok(match files::look(path).map_err(|error| failure::file("look at", path, &error))? {
            None => vec![Drift::Word("gone")],
            Some(seen) if seen.file_type != FileType::Directory => vec![Drift::Word("altered")],
            Some(seen) => drifted(record, seen.ownership),
        })
    }

    async fn change(&self, job: &Job<'_, Directory>) -> Result<Done, Failure> {
        let path = Path::new(&job.declared.path);
        let failed = |act: &'static str| move |error: std::io::Error| failure::file(act, path, &error);
        let wanted = ownership(&job.declared.owner, &job.declared.group, job.declared.mode.unwrap_or(DEFAULT_MODE))?;
        let mut record = owned(record(job), wanted);
        match place(path)? {
            None => {
                files::make_directory(path, wanted).map_err(failed("make"))?;
                record.found = false;
            }
            Some(seen) if seen.file_type != FileType::Directory => {
                let found = word(seen.file_type);
                return Err(failure(FailureCode::WrongType).with("path", path.display()).with("found", found));
            }
            Some(seen) => {
                record.found |= job.here.is_none();
                if seen.ownership != wanted {
                    files::own(path, wanted).map_err(failed("set owner and mode of"))?;
                }
            }
        }
        is_as_left(&self.observe(job.declared, &record, true).await?, path)?;
        Ok(Done::well(record))
    }

    async fn remove(&self, record: &Record) -> Result<Gone, Failure> {
        let path = Path::new(&record.target);
        let failed = |act: &'static str| move |error: std::io::Error| failure::file(act, path, &error);
        match files::look(path).map_err(failed("look at"))? {
            None => return self.gone(record, path, "it was gone already"),
            Some(seen) if seen.file_type != FileType::Directory => {
                return Ok(Gone::Kept(format!("a {} stands there now", word(seen.file_type))));
            }
            Some(_) if record.found => return Ok(Gone::Kept("it was here first".into())),
            Some(_) => {}
        }
        match files::entries(path).map_err(failed("count the entries of"))? {
            0 => {
                files::remove_directory(path).map_err(failed("remove"))?;
                self.gone(record, path, "")
            }
            1 => Ok(Gone::Kept("it holds 1 entry".into())),
            many => Ok(Gone::Kept(format!("it holds {many} entries"))),
        }
    }
}
