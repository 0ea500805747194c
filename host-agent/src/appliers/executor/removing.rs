//! What is no longer declared, last applied first.

use std::path::Path;

use replicator_protocol::resources::Kind;
use replicator_protocol::wire::event::event::Body;
use replicator_protocol::wire::event::{Failure, Outcome, Record, ResourceResult, StepFinished};

use super::super::applier::{Applier as _, Gone};
use super::super::container::Containers;
use super::super::directory::Directories;
use super::super::failure::{FailureCode, With as _, failure};
use super::super::file::Files;
use super::super::network::Networks;
use super::{Walk, result};
use crate::daemon::ApplyError;
use crate::ledger::projections::resources::kind;
use crate::planner::Planned;

impl Walk<'_> {
    pub(super) async fn remove_orphans(&self) -> Result<Vec<ResourceResult>, ApplyError> {
        let mut results: Vec<ResourceResult> = Vec::new();
        let mut failed: Vec<&Planned> = Vec::new();
        for step in self.plan.iter().skip(self.in_force.declaration.resources.len()) {
            let held = failed.iter().find(|other| self.holds(step, other));
            let ended = match held {
                // It goes when what it holds goes, and must not be forgotten before.
                Some(other) => Err(failure(FailureCode::StillHolds).with("resource", &other.id)),
                None => self.undo(step).await,
            };
            let (result, forgotten) = match ended {
                Ok(Gone::Removed(note)) => (result(step, Outcome::Removed, note, None), true),
                Ok(Gone::Kept(note)) => (result(step, Outcome::Kept, note, None), true),
                Err(failure) => {
                    let outcome = if held.is_some() { Outcome::Skipped } else { Outcome::Failed };
                    failed.push(step);
                    (result(step, outcome, String::new(), Some(failure)), false)
                }
            };
            let finished = StepFinished { result: Some(result.clone()), record: None, forgotten };
            self.append(vec![Body::StepFinished(finished)])?;
            results.push(result);
        }
        Ok(results)
    }

    /// Whether something of `other` lies in the folder that is `step`.
    fn holds(&self, step: &Planned, other: &Planned) -> bool {
        let [folders, inside] = [step, other].map(|step| self.targets(&step.id.to_string()));
        let in_it = |folder: &str| inside.iter().any(|path| path != &folder && Path::new(path).starts_with(folder));
        step.kind == Kind::Directory && other.kind.has_path() && folders.iter().any(|folder| in_it(folder))
    }

    /// Undoes all that a resource stands for, and tells of the last of it.
    async fn undo(&self, step: &Planned) -> Result<Gone, Failure> {
        let name = step.id.to_string();
        let mut gone = Ok(Gone::Removed(String::new()));
        for target in self.targets(&name) {
            gone = match self.taken_over(step.kind, target) {
                Some(other) => Ok(Gone::Kept(format!("`{other}` stands for it now"))),
                None => self.undo_at(&name, step.kind, target).await,
            };
            if gone.is_err() {
                break;
            }
        }
        gone
    }

    /// Where something of a resource may stand, what was recorded last.
    fn targets(&self, name: &str) -> Vec<&str> {
        let loose = self.ledger.loose.get(name).into_iter().flatten().map(|about| about.target.as_str());
        let recorded = self.ledger.applied.get(name).map(|applied| applied.record.target.as_str());
        let mut targets: Vec<_> = loose.filter(|target| Some(*target) != recorded).collect();
        targets.dedup();
        targets.extend(recorded);
        targets
    }

    async fn undo_at(&self, name: &str, kind: Kind, target: &str) -> Result<Gone, Failure> {
        let own = if kind.has_path() { self.paths().own(name, target)? } else { None };
        let recorded = || self.ledger.applied.get(name).map(|applied| &applied.record);
        match own.or_else(|| recorded().filter(|record| record.target == target)) {
            Some(record) => self.remove(record).await,
            None => Ok(Gone::Kept("it is not what was written".into())),
        }
    }

    /// The declared resource that stands for the same thing by another name.
    fn taken_over(&self, kind: Kind, target: &str) -> Option<String> {
        let same = self.in_force.declaration.resources.iter().find(|other| {
            let alike = other.kind() == kind || (other.kind().has_path() && kind.has_path());
            alike && other.target() == target
        });
        same.map(|other| other.id.to_string())
    }

    async fn remove(&self, record: &Record) -> Result<Gone, Failure> {
        let tools = self.tools;
        // No record of another kind can be written by this agent.
        let Some(kind) = kind(record) else { return Ok(Gone::Kept("this agent does not know the kind".into())) };
        match kind {
            Kind::File => Files(tools).remove(record).await,
            Kind::Directory => Directories.remove(record).await,
            Kind::Network => Networks { tools, fixed: Vec::new() }.remove(record).await,
            Kind::Container => Containers { tools }.remove(record).await,
            Kind::Package
            | Kind::Access
            | Kind::User
            | Kind::Archive
            | Kind::Interface
            | Kind::Service
            | Kind::Process
            | Kind::Action => Ok(Gone::Kept("this agent does not know the kind".into())),
        }
    }
}
