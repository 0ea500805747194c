//! Carries a plan out: every step in the ledger before its effect and after it.

mod after_loss;
mod failing;
mod leftovers;
mod moving;
mod observing;
mod paths;
mod probing;
mod removing;
mod steps;
mod sweeping;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use replicator_protocol::change;
use replicator_protocol::wire::declaration::resource;
use replicator_protocol::wire::event::event::Body;
use replicator_protocol::wire::event::{
    Action, ApplyReported, DriftFound, Failure, Outcome, PlannedStep, Reason, ReasonCode, Record, ResourceResult,
    StepsPlanned, Trigger,
};

use self::failing::Failing;
use self::moving::in_place_of;
use self::observing::Wanted;
use self::paths::Paths;
use super::applier::Tools;
use super::directory::Directories;
use super::failure::cut;
use super::file::Files;
use crate::clock::Clock;
use crate::daemon::{ApplyError, Depth, NewerWaiting};
use crate::host::files;
use crate::inbox::InForce;
use crate::ledger::projections::resources::{Reported, Resources, kind};
use crate::planner::{Left, Planned, Situation, plan, translate};
use crate::policy::Policy;

/// Makes the machine match what is declared.
pub struct Executor {
    tools: Tools,
    clock: Arc<dyn Clock>,
    /// What a cheap look does not try.
    failing: Mutex<Failing>,
}

/// One walk over a declaration.
struct Walk<'a> {
    tools: &'a Tools,
    /// What the host allows, read at the beginning of this walk.
    policy: Policy,
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
        Self { tools, clock, failing: Mutex::default() }
    }

    fn failing(&self) -> MutexGuard<'_, Failing> {
        self.failing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One walk, and whether its report was appended.
    async fn walk(
        &self,
        in_force: &InForce,
        (trigger, depth): (Trigger, Depth),
        newer_waiting: NewerWaiting<'_>,
    ) -> Result<(ApplyReported, bool), ApplyError> {
        let begun = self.clock.monotonic_time();
        let mut ledger = self.tools.ledger.state().resources;
        let resources = &in_force.declaration.resources;
        after_loss::assume_own(&self.tools, resources, &mut ledger);
        if depth == Depth::Full {
            sweeping::sweep(&self.tools, resources, &ledger);
        }
        let Wanted { facts: wanted, unreadable } = observing::wanted(&self.tools, resources);
        translate(resources, &wanted, &mut ledger, |bytes| self.tools.declared(bytes));
        // What was allowed when it was accepted may be no longer.
        let policy = Policy::load_or_default(&self.tools.layout, self.tools.docker.socket());
        let mut observed = observing::observe(&self.tools, &policy, (resources, &ledger), depth).await;
        observed.extend(unreadable);
        let mut left = Paths { tools: &self.tools, ledger: &ledger }.left(resources);
        if depth == Depth::Full {
            for (id, record) in leftovers::find(&self.tools, resources, &ledger).await {
                let Some(kind) = kind(&record) else { continue };
                Arc::make_mut(&mut ledger).announce(&id.to_string(), &record);
                left.push(Left { id, kind, target: record.target });
            }
        }
        let put_off = match depth {
            Depth::Cheap => self.failing().put_off(&in_force.reference),
            Depth::Full => BTreeMap::new(),
        };
        let plan = plan(&Situation {
            resources,
            wanted: &wanted,
            ledger: &ledger,
            observed: &observed,
            left: &left,
            put_off: &put_off,
            declaration: &in_force.reference,
        });
        let walk = Walk { tools: &self.tools, policy, in_force, ledger, wanted, plan, newer_waiting };
        walk.announce(trigger).map_err(|source| ApplyError { what: "made what is declared", source })?;
        let mut results = walk.take_steps().await?;
        let complete = results.iter().all(Option::is_some);
        if complete {
            if depth == Depth::Full {
                walk.probe(&mut results).await?;
            }
            walk.remove_orphans(&mut results).await?;
        }
        self.failing().note(&in_force.reference, &walk.plan, &results);
        let not_attempted = results.iter().filter(|result| result.is_none()).count();
        let report = ApplyReported {
            trigger: trigger.into(),
            results: results.into_iter().flatten().collect(),
            duration: self.clock.monotonic_time().saturating_sub(begun),
            not_attempted: u32::try_from(not_attempted).unwrap_or(u32::MAX),
            complete,
        };
        let told = trigger == Trigger::Declaration || !says_nothing_new(&walk, depth, &report);
        if told {
            walk.append(vec![Body::ApplyReported(report.clone())])?;
        }
        Ok((report, told))
    }
}

/// Whether a walk that nobody asked for (at start, or a look) did nothing and found nothing that the last report
/// does not say already.
fn says_nothing_new(walk: &Walk<'_>, depth: Depth, report: &ApplyReported) -> bool {
    let idle = report.results.iter().all(|result| result.action() == Action::None);
    let says = Reported::of(Some(&walk.in_force.reference), report);
    let last = walk.ledger.reported.as_ref();
    idle && (!report.complete || last.is_some_and(|last| says.repeats(last, depth == Depth::Full)))
}

impl crate::daemon::Applier for Executor {
    async fn apply(
        &self,
        in_force: &InForce,
        trigger: Trigger,
        newer_waiting: NewerWaiting<'_>,
    ) -> Result<ApplyReported, ApplyError> {
        let (report, _told) = self.walk(in_force, (trigger, Depth::Full), newer_waiting).await?;
        Ok(report)
    }

    async fn look(
        &self,
        in_force: &InForce,
        depth: Depth,
        newer_waiting: NewerWaiting<'_>,
    ) -> Result<Option<ApplyReported>, ApplyError> {
        let (report, told) = self.walk(in_force, (Trigger::Reconcile, depth), newer_waiting).await?;
        let fails = report.results.iter().any(|result| result.failure.is_some());
        Ok((told || fails).then_some(report))
    }
}

impl Walk<'_> {
    /// Appends what is about to be done, all of it before the first effect: one event for each module.
    fn announce(&self, trigger: Trigger) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let mut bodies = Vec::new();
        let mut modules: Vec<StepsPlanned> = Vec::new();
        for step in self.plan.iter().filter(|step| step.action != Action::None) {
            if trigger == Trigger::Reconcile {
                let found = step.reasons.iter().filter_map(drift_of);
                let drift = |what: &str| DriftFound { resource: step.id.to_string(), what: what.to_owned() };
                bodies.extend(found.map(|what| Body::DriftFound(drift(what))));
            }
            let planned = PlannedStep {
                resource: step.id.to_string(),
                action: step.action.into(),
                reasons: step.reasons.clone(),
                about: self.about(step),
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

    /// What a step on a file or folder is about to leave, and whether something stands there that is not the
    /// agent's: a step that dies, or fails, after its effect cannot then leave it in doubt.
    fn about(&self, step: &Planned) -> Option<Record> {
        let declared = self.in_force.declaration.resources.iter().find(|resource| resource.id == step.id)?;
        // Where it cannot be known the step fails for the same reason, before its effect.
        let about = match &declared.body {
            resource::Kind::File(file) => Files(self.tools).about(&step.id, file).ok()?,
            resource::Kind::Directory(directory) => Directories::about(directory).ok()?,
            resource::Kind::Network(_) | resource::Kind::Container(_) => return None,
        };
        let (found, original) = match self.paths().own(&step.id.to_string(), &about.target) {
            Ok(Some(own)) => {
                let known = in_place_of(own, step.kind);
                (known.found, known.original)
            }
            Ok(None) => (!matches!(files::look(Path::new(&about.target)), Ok(None)), String::new()),
            // Whoever cannot tell takes it for somebody else's.
            Err(_) => (true, String::new()),
        };
        Some(Record { found, original, ..about })
    }

    fn paths(&self) -> Paths<'_> {
        Paths { tools: self.tools, ledger: &self.ledger }
    }
}

/// What a reason says was found to be other than it was left, where nothing new was declared.
fn drift_of(reason: &Reason) -> Option<&str> {
    if reason.code() == ReasonCode::Drift {
        return Some(&reason.subject);
    }
    // The container whose network it shares was lost, and its network with it.
    (reason.code() == ReasonCode::FollowedRecreated).then_some("network")
}

/// A result of a step, as the report has it.
fn result(step: &Planned, outcome: Outcome, note: String, failure: Option<Failure>) -> ResourceResult {
    ResourceResult {
        resource: step.id.to_string(),
        kind: step.kind.as_str().to_owned(),
        action: step.action.into(),
        outcome: outcome.into(),
        reasons: step.reasons.clone(),
        failure: failure.map(cut),
        note,
    }
}

#[cfg(test)]
mod tests;
