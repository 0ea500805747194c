//! Modules side by side, each strictly in order; a step waits for the earlier ones it names.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use futures_util::future::join_all;
use replicator_protocol::change::reason;
use replicator_protocol::ids::ResourceId;
use replicator_protocol::wire::declaration::{Container, resource};
use replicator_protocol::wire::event::event::Body;
use replicator_protocol::wire::event::{Action, Failure, Outcome, ReasonCode, Record, ResourceResult, StepFinished};
use tokio::sync::{Semaphore, watch};

use super::super::applier::{Applier, Done, Job};
use super::super::bounds;
use super::super::container::Containers;
use super::super::directory::Directories;
use super::super::failure::{FailureCode, With as _, failure, policy};
use super::super::file::Files;
use super::super::network::Networks;
use super::super::order;
use super::{Walk, result};
use crate::daemon::ApplyError;
use crate::ledger::projections::resources::{GIVEN_UP_WITH, INTERRUPTED};
use crate::planner::Drift;

/// What has become of each declared resource so far.
struct Progress {
    results: Mutex<Vec<Option<ResourceResult>>>,
    settled: Vec<watch::Sender<bool>>,
    waits: Vec<Vec<usize>>,
    permits: Semaphore,
    /// Something could not be recorded: no further step is begun.
    unrecorded: AtomicBool,
}

impl Progress {
    fn outcome(&self, at: usize) -> Option<Outcome> {
        let results = self.results.lock().unwrap_or_else(PoisonError::into_inner);
        results[at].as_ref().map(ResourceResult::outcome)
    }

    fn failed(&self, at: usize) -> Option<ResourceResult> {
        let results = self.results.lock().unwrap_or_else(PoisonError::into_inner);
        results[at].clone().filter(|result| result.outcome() == Outcome::Failed)
    }

    fn put(&self, at: usize, result: ResourceResult) {
        self.results.lock().unwrap_or_else(PoisonError::into_inner)[at] = Some(result);
    }
}

impl Walk<'_> {
    /// Takes every step of a declared resource; `None` stands for one that was not attempted.
    pub(super) async fn take_steps(&self) -> Result<Vec<Option<ResourceResult>>, ApplyError> {
        let resources = &self.in_force.declaration.resources;
        let progress = Progress {
            results: Mutex::new(vec![None; resources.len()]),
            settled: resources.iter().map(|_| watch::Sender::new(false)).collect(),
            waits: order::waits(resources),
            permits: Semaphore::new(bounds::MODULES),
            unrecorded: AtomicBool::new(false),
        };
        let mut modules: Vec<Vec<usize>> = Vec::new();
        let mut positions = BTreeMap::new();
        for (at, resource) in resources.iter().enumerate() {
            let module = *positions.entry(resource.id.module.clone()).or_insert(modules.len());
            if module == modules.len() {
                modules.push(Vec::new());
            }
            modules[module].push(at);
        }
        // One that cannot be recorded ends the walk, but never another one in the middle of a step.
        let ended = join_all(modules.iter().map(|module| self.take_module(&progress, module))).await;
        ended.into_iter().collect::<Result<(), _>>()?;
        Ok(progress.results.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    async fn take_module(&self, progress: &Progress, module: &[usize]) -> Result<(), ApplyError> {
        for &at in module {
            for &earlier in &progress.waits[at] {
                // The sender lives as long as the walk.
                let _ = progress.settled[earlier].subscribe().wait_for(|settled| *settled).await;
            }
            let mut taken = Ok(());
            if !(self.newer_waiting)() && !progress.unrecorded.load(Ordering::Relaxed) {
                let permit = progress.permits.acquire().await;
                taken = Box::pin(self.take(progress, at)).await;
                drop(permit);
            }
            if taken.is_err() {
                progress.unrecorded.store(true, Ordering::Relaxed);
                // Those that wait for any of this module wait no longer, and take no step either.
                for &other in module {
                    progress.settled[other].send_replace(true);
                }
                return taken;
            }
            progress.settled[at].send_replace(true);
        }
        Ok(())
    }

    async fn take(&self, progress: &Progress, at: usize) -> Result<(), ApplyError> {
        let step = &self.plan[at];
        if let Some(failure) = &step.blocked {
            return self.blocked(progress, at, failure).await;
        }
        if step.action == Action::None {
            self.settled(at);
            progress.put(at, result(step, Outcome::Unchanged, String::new(), None));
            return Ok(());
        }
        let mut bodies = Vec::new();
        let (result, record) = match self.skipped(progress, at).await {
            Some(why) => {
                let (why, files) = self.called_off(progress, at, why).await;
                bodies.extend(files);
                (result(step, Outcome::Skipped, String::new(), Some(why)), None)
            }
            None => match self.change(at).await {
                Ok(Done { record, note, failure, adopted }) => {
                    // What was planned for a reason is a change even where it was found done.
                    let outcome = if failure.is_some() { Outcome::Failed } else { Outcome::Changed };
                    let mut result = result(step, outcome, note, failure);
                    result.reasons.extend(adopted.then(|| reason(ReasonCode::Adopted, "")));
                    (result, Some(record))
                }
                Err(failure) => (result(step, Outcome::Failed, String::new(), Some(failure)), None),
            },
        };
        if let resource::Kind::Container(_) = &self.in_force.declaration.resources[at].body {
            match &result.failure {
                Some(failure) if result.outcome() == Outcome::Failed && record.is_none() => {
                    bodies.extend(self.inputs_failed(progress, at, failure));
                }
                Some(_) => {}
                None => self.inputs_proven(at),
            }
        }
        if let Some(record) = &record {
            tracing::debug!(resource = result.resource, target = record.target, "read back");
        }
        bodies.push(Body::StepFinished(StepFinished {
            result: Some(result.clone()),
            record,
            ..StepFinished::default()
        }));
        self.append(bodies)?;
        progress.put(at, result);
        Ok(())
    }

    /// A step that is not attempted. One that was begun may have been cut off behind the stop of a container.
    async fn blocked(&self, progress: &Progress, at: usize, failure: &Failure) -> Result<(), ApplyError> {
        let step = &self.plan[at];
        let begun = self.ledger.begun.contains_key(&step.id.to_string());
        let mut failure = failure.clone();
        if begun && failure.code == FailureCode::InputUnreadable.as_str() {
            let files;
            (failure, files) = self.called_off(progress, at, failure).await;
            if !files.is_empty() {
                self.append(files)?;
            }
        }
        progress.put(at, result(step, Outcome::Failed, String::new(), Some(failure)));
        Ok(())
    }

    /// Has what an earlier attempt at a container stopped serve again, where the step is not taken now; says why it is
    /// not, and which files went back with it.
    async fn called_off(&self, progress: &Progress, at: usize, why: Failure) -> (Failure, Vec<Body>) {
        let resource::Kind::Container(declared) = &self.in_force.declaration.resources[at].body else {
            return (why, Vec::new());
        };
        match (Containers { tools: self.tools }).call_off(&self.job(at, declared, None), &why).await {
            Some(why) => {
                let files = self.inputs_failed(progress, at, &why);
                (why, files)
            }
            None => (why, Vec::new()),
        }
    }

    /// Why a container is left running as it is: what it takes in could not be written, or the container it follows is
    /// the same as before.
    async fn skipped(&self, progress: &Progress, at: usize) -> Option<Failure> {
        let step = &self.plan[at];
        let resource::Kind::Container(declared) = &self.in_force.declaration.resources[at].body else { return None };
        // What serves in its place was made with other inputs: those that failed now do not concern it.
        if step.given_up.is_some() {
            return None;
        }
        let inputs = &self.wanted[at].inputs;
        let resources = &self.in_force.declaration.resources;
        let failed =
            progress.waits[at].iter().map(|&earlier| (earlier, &resources[earlier])).find(|(earlier, other)| {
                inputs.contains_key(other.target()) && progress.outcome(*earlier) == Some(Outcome::Failed)
            });
        if let Some((_, input)) = failed {
            return Some(failure(FailureCode::InputFailed).with("resource", &input.id));
        }
        let only_follows = step.reasons.iter().all(|reason| reason.code() == ReasonCode::FollowedRecreated);
        let followed = progress.waits[at].iter().find(|&&earlier| resources[earlier].target() == declared.network_of);
        let followed_failed = followed.is_some_and(|&earlier| progress.outcome(earlier) == Some(Outcome::Failed));
        if !(only_follows && followed_failed) {
            return None;
        }
        let applied = self.ledger.applied.get(&step.id.to_string())?;
        let drift = Containers { tools: self.tools }.observe(declared, &applied.record, true).await.ok()?;
        if drift.contains(&Drift::Word("network")) || drift.contains(&Drift::Followed) {
            return None;
        }
        Some(failure(FailureCode::InputFailed).with("container", &declared.network_of))
    }

    async fn change(&self, at: usize) -> Result<Done, Failure> {
        let tools = self.tools;
        let resource = &self.in_force.declaration.resources[at];
        // Again: a link on its way may have been turned by an earlier step, or by what runs here.
        self.policy.resource(resource).map_err(|refusal| policy(&refusal))?;
        match &resource.body {
            resource::Kind::File(declared) => self.with_job(at, declared, Files(tools)).await,
            resource::Kind::Directory(declared) => self.with_job(at, declared, Directories(tools)).await,
            resource::Kind::Network(declared) => {
                let fixed = self.fixed_on(&declared.name);
                self.with_job(at, declared, Networks { tools, fixed }).await
            }
            resource::Kind::Container(declared) => {
                let step = &self.plan[at];
                match (&step.given_up, self.ledger.applied.get(&step.id.to_string())) {
                    (Some(failure), Some(known)) => {
                        Ok(Containers { tools }.put_right(declared, &known.record, failure).await)
                    }
                    (Some(_) | None, _) => self.with_job(at, declared, Containers { tools }).await,
                }
            }
        }
    }

    async fn with_job<A: Applier>(&self, at: usize, declared: &A::Declared, applier: A) -> Result<Done, Failure> {
        let step = &self.plan[at];
        let name = step.id.to_string();
        let wanted = &self.wanted[at];
        let here = if step.kind.has_path() {
            match self.paths().own(&name, &wanted.target)? {
                Some(own) => Some(self.make_way(own, step.kind).await?),
                None => None,
            }
        } else {
            let known = self.ledger.applied.get(&name).map(|applied| &applied.record);
            known.filter(|known| known.target == wanted.target).cloned()
        };
        applier.change(&self.job(at, declared, here.as_ref())).await
    }

    fn job<'j, D>(&'j self, at: usize, declared: &'j D, here: Option<&'j Record>) -> Job<'j, D> {
        let step = &self.plan[at];
        let name = step.id.to_string();
        let wanted = &self.wanted[at];
        Job {
            id: &step.id,
            declared,
            action: step.action,
            known: self.ledger.applied.get(&name).map(|applied| &applied.record),
            here,
            wanted,
            taken_in: self.is_taken_in(&wanted.target),
            begun: self.ledger.begun.contains_key(&name),
            declaration: self.in_force,
        }
    }

    /// Whether a container that was applied took this path in when it was made.
    pub(super) fn is_taken_in(&self, path: &str) -> bool {
        self.ledger.applied.values().any(|applied| applied.record.inputs.contains_key(path))
    }

    /// Addresses that containers fix on a network.
    fn fixed_on(&self, network: &str) -> Vec<Ipv4Addr> {
        let containers = self.in_force.declaration.resources.iter().filter_map(|resource| match &resource.body {
            resource::Kind::Container(container) => Some(container),
            resource::Kind::File(_) | resource::Kind::Directory(_) | resource::Kind::Network(_) => None,
        });
        let joined = |container: &Container| {
            let on_it = container.networks.iter().filter(|joined| joined.name == network);
            on_it.filter_map(|joined| joined.ip.parse().ok()).collect::<Vec<_>>()
        };
        containers.flat_map(joined).collect()
    }

    /// The container serves with its files as they are now: what they were before is needed no longer.
    fn inputs_proven(&self, at: usize) {
        self.wanted[at].inputs.keys().for_each(|path| self.drop_kept(path));
    }

    /// A container that stays as it is, with files that stay as they are: what was kept of them and could not be
    /// dropped in its time must not come back after a later change.
    fn settled(&self, at: usize) {
        let resource::Kind::Container(_) = &self.in_force.declaration.resources[at].body else { return };
        let stays = |path: &&String| {
            let mut steps = self.plan.iter().zip(&self.wanted);
            !steps.any(|(step, wanted)| wanted.target == **path && step.action != Action::None)
        };
        self.wanted[at].inputs.keys().filter(stays).for_each(|path| self.drop_kept(path));
    }

    fn drop_kept(&self, path: &str) {
        if let Err(error) = self.tools.drop_previous(Path::new(path)) {
            // It is only kept longer than needed: see `settled`.
            tracing::warn!(path, %error, "could not drop what was kept of a file");
        }
    }

    /// The container was not replaced, and its files are as they were before: they failed with it.
    fn inputs_failed(&self, progress: &Progress, at: usize, because: &Failure) -> Vec<Body> {
        let this: &ResourceId = &self.plan[at].id;
        let mut bodies = Vec::new();
        let inputs = &self.wanted[at].inputs;
        let files = progress.waits[at].iter().filter(|&&earlier| inputs.contains_key(&self.wanted[earlier].target));
        for &earlier in files {
            let step = &self.plan[earlier];
            let name = step.id.to_string();
            let applied = self.ledger.applied.get(&name);
            let changed_now = progress.outcome(earlier) == Some(Outcome::Changed);
            // Changed in this walk, or in an earlier one that was cut off before the container was proven.
            let before = applied.and_then(|applied| applied.before.as_ref().or(changed_now.then_some(&applied.record)));
            let Some(before) = before else { continue };
            // Said only of what did come back: not every failure came as far as putting it back, and where the
            // new container stands its files stand with it.
            if !matches!(self.tools.previous_is_back(Path::new(&before.target)), Ok(true)) {
                continue;
            }
            let mut why = failure(FailureCode::ReplacementFailed).with(GIVEN_UP_WITH, this);
            why.previous_restored = true;
            if let Some(interrupted) = because.fields.get(INTERRUPTED) {
                why = why.with(INTERRUPTED, interrupted);
            }
            // One that failed by itself says so, whatever stands there by now.
            let failed =
                progress.failed(earlier).unwrap_or_else(|| result(step, Outcome::Failed, String::new(), Some(why)));
            bodies.push(Body::StepFinished(StepFinished {
                result: Some(failed.clone()),
                record: Some(before.clone()),
                ..StepFinished::default()
            }));
            progress.put(earlier, failed);
        }
        bodies
    }
}
