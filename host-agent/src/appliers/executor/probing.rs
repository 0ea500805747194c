//! After all steps: every probe of every container, not only of those that changed.

use replicator_protocol::wire::declaration::resource;
use replicator_protocol::wire::event::event::Body;
use replicator_protocol::wire::event::{Action, Failure, Outcome, ResourceResult, StepFinished};

use super::super::container::Containers;
use super::{Walk, result};
use crate::daemon::ApplyError;

impl Walk<'_> {
    /// Turns the result of a container whose probe fails into a failure. One that was reloaded keeps the record
    /// from before, so that the reload is tried again.
    pub(super) async fn probe(&self, results: &mut [Option<ResourceResult>]) -> Result<(), ApplyError> {
        for (at, resource) in self.in_force.declaration.resources.iter().enumerate() {
            let resource::Kind::Container(declared) = &resource.body else { continue };
            let Some(found) = results[at].as_mut().filter(|result| serves(result)) else { continue };
            let Err(failure) = (Containers { tools: self.tools }).probe(declared).await else { continue };
            let failed = result(&self.plan[at], Outcome::Failed, found.note.clone(), Some(failure));
            if found.action() != Action::None {
                self.take_back(&failed)?;
            }
            *found = failed;
        }
        Ok(())
    }

    fn take_back(&self, failed: &ResourceResult) -> Result<(), ApplyError> {
        let before = self.ledger.applied.get(&failed.resource).map(|applied| applied.record.clone());
        let record = before.filter(|_| failed.action() == Action::Reload);
        let finished = StepFinished { result: Some(failed.clone()), record, ..StepFinished::default() };
        self.append(vec![Body::StepFinished(finished)])
    }

    /// Appends to the ledger, under the declaration of this walk.
    pub(super) fn append(&self, bodies: Vec<Body>) -> Result<(), ApplyError> {
        let appended = self.tools.ledger.append(Some(&self.in_force.reference), bodies);
        let unrecorded = |error| ApplyError { what: "made what is declared", source: Box::new(error) };
        appended.map(drop).map_err(unrecorded)
    }
}

/// A container that failed by itself is not asked.
fn serves(result: &ResourceResult) -> bool {
    let failure: Option<&Failure> = result.failure.as_ref();
    failure.is_none() && matches!(result.outcome(), Outcome::Changed | Outcome::Unchanged)
}
