//! `directory`: owner and mode of one folder. Never recursive.

use std::path::Path;

use replicator_protocol::resources::directory::DEFAULT_MODE;
use replicator_protocol::wire::declaration::Directory;
use replicator_protocol::wire::event::{Failure, Record};

use super::applier::{Applier, Done, Gone, Job, Tools, record};
use super::failure::{self, FailureCode, With as _, failure};
use super::file::{drifted, owned, ownership, place, word};
use crate::host::files::{self, FileType};

/// Applies folders.
pub(super) struct Directories<'t>(pub(super) &'t Tools);

impl Applier for Directories<'_> {
    type Declared = Directory;

    async fn observe(&self, record: &Record, _full: bool) -> Result<Vec<&'static str>, Failure> {
        let path = Path::new(&record.target);
        Ok(match files::look(path).map_err(|error| failure::file("look at", path, &error))? {
            None => vec!["gone"],
            Some(seen) if seen.file_type != FileType::Directory => vec!["altered"],
            Some(seen) => drifted(record, seen.ownership),
        })
    }

    async fn change(&self, job: &Job<'_, Directory>) -> Result<Done, Failure> {
        let path = Path::new(&job.declared.path);
        let failed = |act: &'static str| move |error: std::io::Error| failure::file(act, path, &error);
        let wanted = ownership(&job.declared.owner, &job.declared.group, job.declared.mode.unwrap_or(DEFAULT_MODE))?;
        let mut record = owned(record(job), wanted);
        let moved = job.known.filter(|known| known.target != job.declared.path);
        let changed = match place(path)? {
            None => {
                files::make_directory(path, wanted).map_err(failed("make"))?;
                record.found = false;
                true
            }
            Some(seen) if seen.file_type != FileType::Directory => {
                let found = word(seen.file_type);
                return Err(failure(FailureCode::WrongType).with("path", path.display()).with("found", found));
            }
            Some(seen) => {
                if job.known.is_none() || moved.is_some() {
                    record.found = job.found_here().is_some();
                    if record.found && job.earlier.original.is_none() {
                        self.0.note_original(job, &job.declared.path, "")?;
                    }
                }
                if seen.ownership != wanted {
                    files::own(path, wanted).map_err(failed("set owner and mode of"))?;
                }
                seen.ownership != wanted
            }
        };
        let drift = self.observe(&record, true).await?;
        if !drift.is_empty() {
            return Err(failure(FailureCode::ReadBack).with("path", path.display()).with("differs", drift.join(", ")));
        }
        let mut note = String::new();
        if let Some(known) = moved {
            note = match self.remove(known).await? {
                Gone::Removed(_) => format!("`{}` is removed", known.target),
                Gone::Kept(why) => format!("`{}` is kept: {why}", known.target),
            };
        }
        Ok(Done { changed: changed || moved.is_some(), record, note, failure: None })
    }

    async fn remove(&self, record: &Record) -> Result<Gone, Failure> {
        let path = Path::new(&record.target);
        let failed = |act: &'static str| move |error: std::io::Error| failure::file(act, path, &error);
        match files::look(path).map_err(failed("look at"))? {
            None => return Ok(Gone::Removed("it was gone already".into())),
            Some(seen) if seen.file_type != FileType::Directory => {
                return Ok(Gone::Kept(format!("a {} stands there now", word(seen.file_type))));
            }
            Some(_) if record.found => return Ok(Gone::Kept("it was here first".into())),
            Some(_) => {}
        }
        match files::entries(path).map_err(failed("count the entries of"))? {
            0 => files::remove_directory(path).map_err(failed("remove")).map(|()| Gone::Removed(String::new())),
            1 => Ok(Gone::Kept("it holds 1 entry".into())),
            many => Ok(Gone::Kept(format!("it holds {many} entries"))),
        }
    }
}
