//! What is no longer declared, last applied first.

use replicator_protocol::resources::Kind;
use replicator_protocol::wire::event::event::Body;
use replicator_protocol::wire::event::{Failure, Outcome, Record, ResourceResult, StepFinished};

use super::super::applier::{Applier as _, Gone};
use super::super::container::Containers;
use super::super::directory::Directories;
use super::super::file::Files;
use super::super::network::Networks;
use super::{Walk, result};
use crate::daemon::ApplyError;
use crate::planner::Planned;

impl Walk<'_> {
    pub(super) async fn remove_orphans(&self) -> Result<Vec<ResourceResult>, ApplyError> {
        let mut results = Vec::new();
        for step in self.plan.iter().skip(self.in_force.declaration.resources.len()) {
            let Some(applied) = self.ledger.applied.get(&step.id.to_string()) else { continue };
            let ended = match self.taken_over(step, &applied.record) {
                Some(other) => Ok(Gone::Kept(format!("`{other}` stands for it now"))),
                None => self.remove(step.kind, &applied.record).await,
            };
            let (result, forgotten) = match ended {
                Ok(Gone::Removed(note)) => (result(step, Outcome::Removed, note, None), true),
                Ok(Gone::Kept(note)) => (result(step, Outcome::Kept, note, None), true),
                Err(failure) => (result(step, Outcome::Failed, String::new(), Some(failure)), false),
            };
            let finished = StepFinished { result: Some(result.clone()), record: None, forgotten };
            self.append(vec![Body::StepFinished(finished)])?;
            results.push(result);
        }
        Ok(results)
    }

    /// The declared resource that stands for the same thing by another name.
    fn taken_over(&self, step: &Planned, record: &Record) -> Option<String> {
        let same = self.in_force.declaration.resources.iter().find(|other| {
            let alike = other.kind() == step.kind || (other.kind().has_path() && step.kind.has_path());
            alike && other.target() == record.target
        });
        same.map(|other| other.id.to_string())
    }

    async fn remove(&self, kind: Kind, record: &Record) -> Result<Gone, Failure> {
        let tools = self.tools;
        match kind {
            Kind::File => Files(tools).remove(record).await,
            Kind::Directory => Directories.remove(record).await,
            Kind::Network => Networks { tools, fixed: Vec::new() }.remove(record).await,
            Kind::Container => Containers { tools }.remove(record).await,
            // No record of these can be written by this agent.
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
