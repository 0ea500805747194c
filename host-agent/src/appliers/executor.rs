//! Carries a plan out: every step in the ledger before its effect and after it.

mod observing;
mod probing;
mod removing;
mod steps;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use prost::Message as _;
use replicator_protocol::change;
use replicator_protocol::resources::Kind;
use replicator_protocol::wire::event::event::Body;
use replicator_protocol::wire::event::{
    Action, ApplyReported, DriftFound, Event, Failure, OriginalKept, Outcome, PlannedStep, ReasonCode, ResourceResult,
    StepsPlanned, Trigger,
};

use super::applier::Tools;
use crate::clock::Clock;
use crate::daemon::{ApplyError, Depth, NewerWaiting};
use crate::host::files;
use crate::inbox::InForce;
use crate::ledger::projections::Fold as _;
use crate::ledger::projections::resources::Resources;
use crate::planner::{Planned, Situation, plan};

/// Events read at once while catching up with the ledger.
const CATCH_UP: u32 = 1000;

/// Makes the machine match what is declared.
pub struct Executor {
    tools: Tools,
    clock: Arc<dyn Clock>,
    resources: Mutex<Arc<Resources>>,
    /// What failed in the last report, so that a look which finds nothing new adds none.
    reported: Mutex<Vec<(String, Failure)>>,
}

/// One walk over a declaration.
struct Walk<'a> {
    tools: &'a Tools,
    in_force: &'a InForce,
    ledger: Arc<Resources>,
    wanted: Vec<change::Facts<bytes::Bytes>>,
    plan: Vec<Planned>,
    newer_waiting: NewerWaiting<'a>,
}

impl Executor {
    /// An executor over these tools.
    #[must_use]
    pub fn new(tools: Tools, clock: Arc<dyn Clock>) -> Self {
        Self { tools, clock, resources: Mutex::default(), reported: Mutex::default() }
    }

    /// What the ledger knows of every resource, up to its last entry.
    fn caught_up(&self) -> Result<Arc<Resources>, ApplyError> {
        let mut resources = self.resources.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let entries = self
                .tools
                .ledger
                .read_after(resources.number, CATCH_UP)
                .map_err(|error| ApplyError { what: "looked at", source: Box::new(error) })?;
            if entries.is_empty() {
                return Ok(Arc::clone(&resources));
            }
            // Copied only where a walk still holds what was known before.
            let resources = Arc::make_mut(&mut resources);
            for entry in entries {
                // Checked when the ledger was opened.
                let event = Event::decode(entry.payload).unwrap_or_default();
                resources.fold(&event);
                resources.number = entry.number;
            }
        }
    }

    /// One walk. `None` where a look found nothing to do and nothing new that fails.
    async fn walk(
        &self,
        in_force: &InForce,
        (trigger, depth): (Trigger, Depth),
        newer_waiting: NewerWaiting<'_>,
    ) -> Result<Option<ApplyReported>, ApplyError> {
        let begun = self.clock.monotonic_time();
        let ledger = self.caught_up()?;
        let resources = &in_force.declaration.resources;
        let wanted = observing::wanted(&self.tools, resources);
        let observed = observing::observe(&self.tools, resources, &ledger, depth).await;
        let plan = plan(&Situation {
            resources,
            wanted: &wanted,
            ledger: &ledger,
            observed: &observed,
            declaration: &in_force.reference,
        });
        let walk = Walk { tools: &self.tools, in_force, ledger, wanted, plan, newer_waiting };
        walk.announce(trigger).map_err(|source| ApplyError { what: "made what is declared", source })?;
        let mut results = walk.take_steps().await?;
        let complete = results.iter().all(Option::is_some);
        if complete {
            if depth == Depth::Full {
                walk.probe(&mut results).await?;
            }
            results.extend(walk.remove_orphans().await?.into_iter().map(Some));
        }
        let not_attempted = results.iter().filter(|result| result.is_none()).count();
        let report = ApplyReported {
            trigger: trigger.into(),
            results: results.into_iter().flatten().collect(),
            duration: self.clock.monotonic_time().saturating_sub(begun),
            not_attempted: u32::try_from(not_attempted).unwrap_or(u32::MAX),
            complete,
        };
        self.close(in_force, trigger, report)
    }

    fn close(
        &self,
        in_force: &InForce,
        trigger: Trigger,
        report: ApplyReported,
    ) -> Result<Option<ApplyReported>, ApplyError> {
        let failures: Vec<_> = report
            .results
            .iter()
            .filter_map(|result| Some((result.resource.clone(), result.failure.clone()?)))
            .collect();
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        let idle = report.results.iter().all(|result| result.action() == Action::None);
        if trigger == Trigger::Reconcile && idle {
            let same =
                |one: &(String, Failure), other: &(String, Failure)| (&one.0, &one.1.code) == (&other.0, &other.1.code);
            let nothing_new = failures.len() == reported.len()
                && failures.iter().zip(reported.iter()).all(|(one, other)| same(one, other));
            if nothing_new {
                return Ok((!failures.is_empty()).then_some(report));
            }
        }
        *reported = failures;
        drop(reported);
        let body = vec![Body::ApplyReported(report.clone())];
        self.tools
            .ledger
            .append(Some(&in_force.reference), body)
            .map_err(|error| ApplyError { what: "made what is declared", source: Box::new(error) })?;
        Ok(Some(report))
    }
}

impl crate::daemon::Applier for Executor {
    async fn apply(
        &self,
        in_force: &InForce,
        trigger: Trigger,
        newer_waiting: NewerWaiting<'_>,
    ) -> Result<ApplyReported, ApplyError> {
        let report = self.walk(in_force, (trigger, Depth::Full), newer_waiting).await?;
        Ok(report.unwrap_or_default())
    }

    async fn look(
        &self,
        in_force: &InForce,
        depth: Depth,
        newer_waiting: NewerWaiting<'_>,
    ) -> Result<Option<ApplyReported>, ApplyError> {
        self.walk(in_force, (Trigger::Reconcile, depth), newer_waiting).await
    }
}

impl Walk<'_> {
    /// Appends what is about to be done, all of it before the first effect: one event for each module.
    fn announce(&self, trigger: Trigger) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let mut bodies = Vec::new();
        let mut modules: Vec<StepsPlanned> = Vec::new();
        for step in self.plan.iter().filter(|step| step.action != Action::None) {
            bodies.extend(self.folder_found(step));
            if trigger == Trigger::Reconcile {
                let drift = step.reasons.iter().filter(|reason| reason.code() == ReasonCode::Drift);
                bodies.extend(drift.map(|reason| {
                    Body::DriftFound(DriftFound { resource: step.id.to_string(), what: reason.subject.clone() })
                }));
            }
            let planned = PlannedStep {
                resource: step.id.to_string(),
                action: step.action.into(),
                reasons: step.reasons.clone(),
            };
            let module = step.id.module.to_string();
            match modules.iter_mut().find(|known| known.module == module) {
                Some(known) => known.steps.push(planned),
                None => modules.push(StepsPlanned { module, steps: vec![planned] }),
            }
        }
        bodies.extend(modules.into_iter().map(Body::StepsPlanned));
        if bodies.is_empty() {
            return Ok(());
        }
        self.tools.ledger.append(Some(&self.in_force.reference), bodies).map(drop).map_err(Into::into)
    }

    /// A folder that stands already where one is about to be applied for the first time, told before anything is
    /// begun: an attempt that never ends cannot then take it for its own work.
    fn folder_found(&self, step: &Planned) -> Option<Body> {
        let name = step.id.to_string();
        let declared = self.in_force.declaration.resources.iter().find(|resource| resource.id == step.id)?;
        let target = declared.target();
        let known = self.ledger.applied.get(&name).is_some_and(|applied| applied.record.target == target);
        let first = step.kind == Kind::Directory && !known && !self.ledger.begun.contains_key(&name);
        let there = || matches!(files::look(Path::new(target)), Ok(Some(_)));
        (first && there()).then(|| {
            Body::OriginalKept(OriginalKept { resource: name, path: target.to_owned(), digest: String::new() })
        })
    }
}

/// A result of a step, as the report has it.
fn result(step: &Planned, outcome: Outcome, note: String, failure: Option<Failure>) -> ResourceResult {
    ResourceResult {
        resource: step.id.to_string(),
        kind: step.kind.as_str().to_owned(),
        action: step.action.into(),
        outcome: outcome.into(),
        reasons: step.reasons.clone(),
        failure,
        note,
    }
}

#[cfg(test)]
mod tests;
