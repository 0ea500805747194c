//! What is no longer declared, last applied first.

use std::path::Path;

use replicator_protocol::resources::{Kind, Resource};
use replicator_protocol::wire::event::event::Body;
use replicator_protocol::wire::event::{Failure, Outcome, Record, ResourceResult, StepFinished};

use super::super::applier::{Applier as _, Gone};
use super::super::container::Containers;
use super::super::directory::Directories;
use super::super::failure::{FailureCode, With as _, failure};
use super::super::file::Files;
use super::super::network::Networks;
use super::moving::former;
use super::paths::{Paths, lies_in};
use super::{Walk, result};
use crate::daemon::ApplyError;
use crate::host::files;
use crate::ledger::projections::resources::kind;
use crate::planner::Planned;

impl Walk<'_> {
    /// Removes what is no longer declared, and what declared resources stood for before, and puts what became of it
    /// with `results`, which has one for each declared resource.
    pub(super) async fn remove_orphans(&self, results: &mut Vec<Option<ResourceResult>>) -> Result<(), ApplyError> {
        let resources = &self.in_force.declaration.resources;
        let ledger = self.tools.ledger.state().resources;
        let mut former = former(resources, &ledger);
        let mut waiting: Vec<usize> = (resources.len()..self.plan.len()).collect();
        results.resize(self.plan.len(), None);
        // A folder goes after what lies in it, whosever that is: again, until nothing more can go.
        let mut before = usize::MAX;
        while former.len() + waiting.len() < before {
            before = former.len() + waiting.len();
            let mut still = Vec::new();
            for at in waiting {
                if !self.remove_orphan(at, results).await? {
                    still.push(at);
                }
            }
            waiting = still;
            let mut still = Vec::new();
            for one in former {
                if !self.leave_behind(&one, results).await? {
                    still.push(one);
                }
            }
            former = still;
        }
        for at in waiting {
            self.append(vec![Body::StepFinished(StepFinished {
                result: results[at].clone(),
                ..StepFinished::default()
            })])?;
        }
        Ok(())
    }

    /// Removes one, and says whether that is done with for now; else it waits for another.
    async fn remove_orphan(&self, at: usize, results: &mut [Option<ResourceResult>]) -> Result<bool, ApplyError> {
        let step = &self.plan[at];
        let (result, forgotten) = match self.undo(&step.id.to_string()).await {
            Ok(Gone::Removed(note)) if note.is_empty() => {
                (result(step, Outcome::Removed, self.name_of(step), None), true)
            }
            Ok(Gone::Removed(note)) => (result(step, Outcome::Removed, note, None), true),
            Ok(Gone::Kept(note)) => (result(step, Outcome::Kept, note, None), true),
            // It must not be forgotten before it goes.
            Err(failure) if failure.code == FailureCode::RemovalWaits.as_str() => {
                results[at] = Some(result(step, Outcome::Skipped, String::new(), Some(failure)));
                return Ok(false);
            }
            Err(failure) => (result(step, Outcome::Failed, String::new(), Some(failure)), false),
        };
        results[at] = Some(result.clone());
        self.append(vec![Body::StepFinished(StepFinished {
            result: Some(result),
            forgotten,
            ..StepFinished::default()
        })])?;
        Ok(true)
    }

    /// What the runtime calls a thing that is reported under another name, for no resource stands for it.
    fn name_of(&self, step: &Planned) -> String {
        let loose = self.ledger.loose.get(&step.id.to_string()).and_then(|loose| loose.first());
        let named = loose.filter(|_| !step.kind.has_path());
        named.map_or(String::new(), |left| format!("`{}`, which an earlier step had left", left.target))
    }

    /// Undoes all that a resource stands for, and tells of what was recorded of it.
    async fn undo(&self, name: &str) -> Result<Gone, Failure> {
        let recorded = self.ledger.applied.get(name).map(|applied| &applied.record);
        let mut all: Vec<_> = self.ledger.loose.get(name).into_iter().flatten().chain(recorded).collect();
        // What lies in a folder goes before it.
        all.sort_by(|one, other| other.target.cmp(&one.target));
        all.dedup_by(|one, other| one.target == other.target && one.kind == other.kind);
        let mut told = Gone::Removed(String::new());
        for record in all {
            let gone = match kind(record).and_then(|kind| self.stands_for(kind, &record.target)) {
                Some(other) => self.is_taken_over(other, &record.target)?,
                None => self.undo_at(name, record).await?,
            };
            if recorded.is_none_or(|recorded| recorded.target == record.target) {
                told = gone;
            }
        }
        Ok(told)
    }

    /// What another resource stands for is known to be the agent's own, and what was found there, by the record of
    /// that one: as long as there is none, the one there was is not forgotten.
    fn is_taken_over(&self, other: &Resource, target: &str) -> Result<Gone, Failure> {
        let ledger = self.tools.ledger.state().resources;
        let known = ledger.applied.get(&other.id.to_string());
        if known.is_some_and(|known| known.record.target == other.target()) {
            return Ok(Gone::Kept(format!("`{}` stands for it now", other.id)));
        }
        Err(failure(FailureCode::RemovalWaits).with("resource", &other.id).with("target", target))
    }

    /// Demands that nothing of the agent's own that is to go is left in a folder that is to go.
    fn holds_nothing(&self, folder: &str) -> Result<(), Failure> {
        let ledger = self.tools.ledger.state().resources;
        let stays = |record: &Record| {
            let declared = kind(record).is_some_and(|kind| self.stands_for(kind, &record.target).is_some());
            declared || matches!(files::look(Path::new(&record.target)), Ok(None))
        };
        let paths = Paths { tools: self.tools, ledger: &ledger };
        match paths.all().find(|(_, record)| lies_in(&record.target, folder) && !stays(record)) {
            Some((name, record)) => {
                Err(failure(FailureCode::RemovalWaits).with("resource", name).with("target", &record.target))
            }
            None => Ok(()),
        }
    }

    /// Undoes what stands where `record` says, as far as it is the agent's own.
    pub(super) async fn undo_at(&self, name: &str, record: &Record) -> Result<Gone, Failure> {
        let path = kind(record).filter(|kind| kind.has_path()).map(|_| record.target.as_str());
        let own = path.map_or(Ok(None), |path| self.paths().own(name, path))?.unwrap_or(record);
        if own.kind == Kind::Directory.as_str() {
            self.holds_nothing(&own.target)?;
        }
        self.remove(own).await
    }

    pub(super) async fn remove(&self, record: &Record) -> Result<Gone, Failure> {
        let tools = self.tools;
        // No record of another kind can be written by this agent.
        let Some(kind) = kind(record) else { return Ok(Gone::Kept("this agent does not know the kind".into())) };
        match kind {
            Kind::File => Files(tools).remove(record).await,
            Kind::Directory => Directories(tools).remove(record).await,
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
