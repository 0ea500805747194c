//! Resources that moved: what they stood for before makes way for what is declared, or goes once all that is declared
//! stands, and never while something of the same declaration stands for it.

use std::path::Path;

use replicator_protocol::resources::{Kind, Resource};
use replicator_protocol::wire::event::event::Body;
use replicator_protocol::wire::event::{Failure, Outcome, Record, ResourceResult, StepFinished};

use super::super::applier::Gone;
use super::super::failure::{self, FailureCode, With as _};
use super::paths::lies_in;
use super::{Walk, result};
use crate::daemon::ApplyError;
use crate::host::files;
use crate::ledger::projections::resources::{Resources, kind};

/// What a declared resource stood for before, and no resource stands for now.
pub(super) struct Former<'a> {
    /// Its place in the declaration.
    pub(super) at: usize,
    /// What was known of it.
    pub(super) record: &'a Record,
}

/// All of it that can go, what lies deeper first. What a container that was made from it still takes in stays.
pub(super) fn former<'a>(declared: &[Resource], ledger: &'a Resources) -> Vec<Former<'a>> {
    let taken_in = |path: &str| ledger.applied.values().any(|applied| applied.record.inputs.contains_key(path));
    let mut all = Vec::new();
    for (at, resource) in declared.iter().enumerate() {
        for record in ledger.loose.get(&resource.id.to_string()).into_iter().flatten() {
            let Some(kind) = kind(record) else { continue };
            if stands_for(declared, kind, &record.target).is_none() && !taken_in(&record.target) {
                all.push(Former { at, record });
            }
        }
    }
    all.sort_by(|one, other| other.record.target.cmp(&one.record.target));
    all
}

/// The declared resource that stands for this thing: by its name or path, or by another path of the same file.
fn stands_for<'d>(declared: &'d [Resource], what: Kind, target: &str) -> Option<&'d Resource> {
    let alike = |other: &&Resource| other.kind() == what || (other.kind().has_path() && what.has_path());
    let inode = |path: &str| files::look(Path::new(path)).ok().flatten().map(|seen| seen.inode);
    let by_name = declared.iter().filter(alike).find(|other| other.target() == target);
    by_name.or_else(|| {
        let here = inode(target).filter(|_| what.has_path())?;
        declared.iter().filter(alike).find(|other| inode(other.target()) == Some(here))
    })
}

/// What is known at a path of something of another kind, as far as it holds for what takes its place.
pub(super) fn in_place_of(own: &Record, what: Kind) -> Record {
    if own.kind == what.as_str() {
        return own.clone();
    }
    Record {
        kind: what.as_str().to_owned(),
        target: own.target.clone(),
        original: own.original.clone(),
        found: what == Kind::File && !own.original.is_empty(),
        ..Record::default()
    }
}

impl Walk<'_> {
    /// The declared resource that stands for this thing.
    pub(super) fn stands_for(&self, what: Kind, target: &str) -> Option<&Resource> {
        stands_for(&self.in_force.declaration.resources, what, target)
    }

    /// Has what is the agent's own at a path make way for a file or folder of the other kind, and tells what is known
    /// there then. An original stays where it is kept, and comes back when the path is no longer declared.
    pub(super) async fn make_way(&self, own: &Record, what: Kind) -> Result<Record, Failure> {
        let known = in_place_of(own, what);
        if own.kind == what.as_str() {
            return Ok(known);
        }
        let found = own.found && own.original.is_empty();
        if !found && own.kind == Kind::Directory.as_str() {
            self.empty(&own.target).await?;
        }
        match self.remove(&Record { found, original: String::new(), ..own.clone() }).await? {
            Gone::Removed(_) => Ok(known),
            Gone::Kept(why) => Err(failure::failure(FailureCode::WrongType)
                .with("path", &own.target)
                .with("found", &own.kind)
                .with("kept", why)),
        }
    }

    /// Removes from a folder what is the agent's own and no longer declared there, so that the folder can go.
    async fn empty(&self, folder: &str) -> Result<(), Failure> {
        let mut inside: Vec<_> = self.paths().all().filter(|(_, record)| lies_in(&record.target, folder)).collect();
        inside.sort_by(|(_, one), (_, other)| other.target.cmp(&one.target));
        for (name, record) in inside {
            let declared = kind(record).and_then(|kind| self.stands_for(kind, &record.target));
            if declared.is_none() && !self.is_taken_in(&record.target) {
                self.undo_at(name, record).await?;
            }
        }
        Ok(())
    }

    /// Undoes what a resource stood for before, and adds what became of that to its result. Where it cannot be undone
    /// the resource failed, and it is tried again. Says whether that is done with for now; else it waits for another.
    pub(super) async fn leave_behind(
        &self,
        former: &Former<'_>,
        results: &mut [Option<ResourceResult>],
    ) -> Result<bool, ApplyError> {
        let Former { at, record } = former;
        let Some(told) = results[*at].as_mut().filter(|told| told.outcome() != Outcome::Failed) else {
            return Ok(true);
        };
        let note = match self.undo_former(&told.resource, record).await {
            Ok(note) => note,
            Err(failure) if failure.code == FailureCode::RemovalWaits.as_str() => return Ok(false),
            Err(failure) => {
                *told = result(&self.plan[*at], Outcome::Failed, told.note.clone(), Some(failure));
                let finished = StepFinished { result: Some(told.clone()), ..StepFinished::default() };
                return self.append(vec![Body::StepFinished(finished)]).map(|()| true);
            }
        };
        if let Some(note) = note {
            told.note = if told.note.is_empty() { note } else { format!("{}, {note}", told.note) };
        }
        let left = vec![record.target.clone()];
        self.append(vec![Body::StepFinished(StepFinished {
            result: Some(told.clone()),
            left,
            ..StepFinished::default()
        })])?;
        Ok(true)
    }

    async fn undo_former(&self, name: &str, record: &Record) -> Result<Option<String>, Failure> {
        let target = &record.target;
        if kind(record).is_some_and(Kind::has_path) {
            let at = Path::new(target);
            if files::look(at).map_err(|error| failure::file("look at", at, &error))?.is_none() {
                return Ok(None);
            }
        }
        Ok(Some(match self.undo_at(name, record).await? {
            Gone::Removed(_) => format!("`{target}` is removed"),
            Gone::Kept(why) => format!("`{target}` is kept: {why}"),
        }))
    }
}
