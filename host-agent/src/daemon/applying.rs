//! Applying what is in force, and looking after it: one thing at a time.

use std::sync::Arc;
use std::time::Duration;

use replicator_protocol::wire::event::{Action, ApplyReported, Outcome, Trigger};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::schedule::{Due, Schedule};
use super::{Applier, ApplyError, Depth, Heard};
use crate::clock::Clock;
use crate::config::Intervals;
use crate::inbox::InForce;
use crate::reporter::Vitals;

/// How long runtime events are gathered before one look answers all of them: a container that dies makes three.
const GATHER: Duration = Duration::from_millis(500);

/// What applying is woken by.
pub(super) struct Inputs {
    /// What the machine should be.
    pub(super) in_force: watch::Receiver<Option<Arc<InForce>>>,
    /// What is heard of the runtime.
    pub(super) heard: mpsc::Receiver<Heard>,
    /// How often to look.
    pub(super) intervals: Intervals,
}

/// What woke it.
enum Woken {
    Declared,
    Runtime(Heard),
    Time,
    Stop,
}

/// Applying reads, hashes and syncs files, each of which may take as long as the disk takes: what keeps the link, the
/// heartbeat and the watchdog going must not wait for it, least of all on a machine of one processor.
pub(super) fn on_a_thread_of_its_own(tasks: &TaskTracker, applying: impl Future<Output = ()> + Send + 'static) {
    let here = tokio::runtime::Handle::current();
    tasks.spawn_blocking(move || here.block_on(applying));
}

/// Applies and looks until `stop`, and ends at a safe point.
pub(super) async fn keep_applying<A: Applier>(
    applier: Arc<A>,
    mut inputs: Inputs,
    (vitals, clock): (Vitals, Arc<dyn Clock>),
    stop: CancellationToken,
) {
    let mut task = Task {
        applier,
        vitals,
        schedule: Schedule::new(inputs.intervals.clone(), clock.monotonic_time(), random()),
        clock,
        // What was told last is applied at start, whether or not anyone can be reached.
        owed: inputs.in_force.borrow().is_some().then_some(Trigger::Start),
    };
    let mut runtime_is_heard = true;
    let mut woken = Woken::Declared;
    while !stop.is_cancelled() {
        if inputs.in_force.has_changed().unwrap_or(false) {
            task.owed = Some(Trigger::Declaration);
            task.schedule.begin_anew();
            // Whatever else woke it: what is new comes first.
            woken = Woken::Declared;
        }
        let current = inputs.in_force.borrow_and_update().clone();
        if let Some(current) = current {
            let in_force = &inputs.in_force;
            let newer_waiting = || stop.is_cancelled() || in_force.has_changed().unwrap_or(false);
            task.vitals.update(|known| {
                known.seen = Some(current.reference.clone());
                known.mode = current.declaration.mode.to_string();
            });
            task.work(&current, &woken, &newer_waiting).await;
        } else {
            // Nothing is declared: the next look is put off, for there is nothing to look for.
            task.schedule.ended(Depth::Full, true, (task.clock.monotonic_time(), random()));
        }
        if inputs.in_force.has_changed().unwrap_or(false) {
            continue;
        }
        let now = task.clock.monotonic_time();
        let wait = Duration::from_millis(task.schedule.next().saturating_sub(now));
        woken = tokio::select! {
            changed = inputs.in_force.changed() => match changed {
                Ok(()) => { inputs.in_force.mark_changed(); Woken::Declared }
                Err(_gone) => Woken::Stop,
            },
            heard = inputs.heard.recv(), if runtime_is_heard => match heard {
                Some(heard) => Woken::Runtime(heard),
                None => { runtime_is_heard = false; Woken::Time }
            },
            () = tokio::time::sleep(wait) => Woken::Time,
            () = stop.cancelled() => Woken::Stop,
        };
        match woken {
            Woken::Runtime(first) => {
                tokio::time::sleep(GATHER).await;
                let more = std::iter::from_fn(|| inputs.heard.try_recv().ok());
                if std::iter::once(first).chain(more).any(|heard| heard == Heard::Back) {
                    task.schedule.runtime_is_back(task.clock.monotonic_time());
                }
            }
            Woken::Stop => return,
            Woken::Declared | Woken::Time => {}
        }
    }
}

struct Task<A> {
    applier: Arc<A>,
    vitals: Vitals,
    clock: Arc<dyn Clock>,
    schedule: Schedule,
    /// An apply that has not been reported yet.
    owed: Option<Trigger>,
}

impl<A: Applier> Task<A> {
    async fn work(&mut self, current: &InForce, woken: &Woken, newer_waiting: &(dyn Fn() -> bool + Send + Sync)) {
        let due = self.schedule.due(self.clock.monotonic_time());
        match (self.owed, woken, due) {
            (Some(trigger), Woken::Declared, _) | (Some(trigger), _, Some(Due::Retry | Due::Look(Depth::Full))) => {
                let ended = self.applier.apply(current, trigger, newer_waiting).await;
                self.applied(current, ended);
            }
            // What is owed is tried again when that is due, and no look is worth more than that.
            (Some(_), _, Some(Due::Look(Depth::Cheap))) => self.ended(Depth::Cheap, true),
            (Some(_), Woken::Runtime(_) | Woken::Time | Woken::Stop, None) | (None, Woken::Stop, _) => {}
            (None, _, Some(Due::Retry)) => self.look(current, Depth::Full, newer_waiting).await,
            (None, _, Some(Due::Look(depth))) => self.look(current, depth, newer_waiting).await,
            (None, Woken::Runtime(_), None) => {
                if self.schedule.is_looked_at(self.clock.monotonic_time()) {
                    self.look(current, Depth::Cheap, newer_waiting).await;
                }
            }
            (None, Woken::Declared | Woken::Time, None) => {}
        }
    }

    fn applied(&mut self, current: &InForce, ended: Result<ApplyReported, ApplyError>) {
        match ended {
            Ok(report) if report.complete => {
                self.owed = None;
                self.reported(Depth::Full, &report);
                self.vitals.update(|known| known.applied = Some(current.reference.clone()));
                tracing::info!(sequence = current.reference.sequence, summary = %summary(&report), "applied");
            }
            Ok(_interrupted) => self.ended(Depth::Full, false),
            Err(error) => {
                tracing::error!(error = %error.source, "{error}");
                self.ended(Depth::Full, false);
            }
        }
    }

    async fn look(&mut self, current: &InForce, depth: Depth, newer_waiting: &(dyn Fn() -> bool + Send + Sync)) {
        match self.applier.look(current, depth, newer_waiting).await {
            Ok(None) => self.ended(depth, true),
            Ok(Some(report)) => {
                if is_well(&report) {
                    tracing::info!(summary = %summary(&report), "{}", came_of(&report));
                } else {
                    tracing::warn!(summary = %summary(&report), "{}", came_of(&report));
                }
                self.reported(depth, &report);
            }
            Err(error) => {
                tracing::error!(error = %error.source, "{error}");
                self.ended(depth, false);
            }
        }
    }

    fn reported(&mut self, depth: Depth, report: &ApplyReported) {
        self.ended(depth, is_well(report));
        if report.results.iter().all(|result| result.action() == Action::None) {
            self.schedule.touched_nothing();
        }
    }

    fn ended(&mut self, depth: Depth, well: bool) {
        self.schedule.ended(depth, well, (self.clock.monotonic_time(), random()));
        let now = self.clock.wall_time();
        self.vitals.update(|known| known.last_loop = now);
    }
}

fn is_well(report: &ApplyReported) -> bool {
    let failed = [Outcome::Failed, Outcome::Skipped].map(i32::from);
    report.complete && !report.results.iter().any(|result| failed.contains(&result.outcome))
}

/// What came of a look that found something.
fn came_of(report: &ApplyReported) -> &'static str {
    let mended = report.results.iter().any(|result| [Outcome::Changed, Outcome::Removed].contains(&result.outcome()));
    match (is_well(report), mended) {
        (true, true) => "mended what was not as declared",
        (true, false) => "what failed before is as declared",
        (false, true) => "mended some of what was not as declared, and some is not yet",
        (false, false) => "what is not as declared could not be mended",
    }
}

fn summary(report: &ApplyReported) -> String {
    let words = report.results.iter().map(|result| replicator_protocol::event_words::outcome(result.outcome));
    let mut counts = std::collections::BTreeMap::<&str, u32>::new();
    words.for_each(|word| *counts.entry(word).or_default() += 1);
    counts.iter().map(|(word, count)| format!("{count} {word}")).collect::<Vec<_>>().join(", ")
}

fn random() -> u64 {
    // Only jitter.
    getrandom::u64().unwrap_or_default()
}

#[cfg(test)]
mod tests;
