//! What the ledger knows of each resource.

use std::collections::BTreeMap;

use bytes::Bytes;
use replicator_protocol::change::Facts;
use replicator_protocol::resources::Kind;
use replicator_protocol::wire::event::event::Body;
use replicator_protocol::wire::event::{
    ApplyReported, DeclarationRef, Event, Failure, Outcome, PlannedStep, Record, ResourceResult,
};

/// A field of failures after which a replaced thing stands again, at the cost of an interruption: such a step is
/// not tried again for the same declaration.
pub const INTERRUPTED: &str = "interrupted";

/// A field of failures of files that were put back with a container: its name.
pub const GIVEN_UP_WITH: &str = "container";

/// Before the name of a resource in `dependencies` of a record: its change makes the container anew.
pub const RESTART_ON: &str = "restart/";
/// Likewise: its change has the container read its files again.
pub const RELOAD_ON: &str = "reload/";

/// How records of this agent compute their digests; a later way gets the next number, and what is needed to tell
/// whether a record of an earlier way says the same stays in code: see [`crate::planner::translate`].
pub const ALGORITHM: u32 = 2;

/// One applied resource.
#[derive(Debug, Clone, PartialEq)]
pub struct Applied {
    /// What is known of it.
    pub record: Record,
    /// The event that first recorded it.
    pub since: u64,
    /// Its place in the last report that had it as declared; none where an apply was cut off before its report.
    /// Resources are removed in the reverse of this order, which the controller knows too.
    pub place: Option<usize>,
    /// What was known before the last change, until all that takes it in is proven.
    pub before: Option<Record>,
}

/// All resources, folded from events in order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Resources {
    /// What is applied, by name.
    pub applied: BTreeMap<String, Applied>,
    /// Steps that began and have not ended, by resource.
    pub begun: BTreeMap<String, PlannedStep>,
    /// What may stand of the agent's own that no record speaks of, by resource: what each step was about to leave at a
    /// path, until that path is recorded; and what the resource stood for before it moved, until that is undone.
    pub loose: BTreeMap<String, Vec<Record>>,
    /// Steps not to be tried again for the declaration they failed for, by resource.
    pub given_up: BTreeMap<String, (DeclarationRef, Failure)>,
    /// The last report.
    pub reported: Option<Reported>,
    /// The ledger before this one was damaged, and nothing was applied to its end since: there may be things of the
    /// agent's own of which nothing is known.
    pub lost: bool,
}

/// What a report said, as far as a later one could only repeat it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reported {
    /// The declaration it was of.
    pub declaration: Option<DeclarationRef>,
    /// It went to its end.
    pub complete: bool,
    /// What failed, in its order: resource and stable code.
    pub failures: Vec<(String, String)>,
}

impl Reported {
    /// What `report`, of `declaration`, says.
    #[must_use]
    pub fn of(declaration: Option<&DeclarationRef>, report: &ApplyReported) -> Self {
        let failure = |result: &ResourceResult| Some((result.resource.clone(), result.failure.as_ref()?.code.clone()));
        Self {
            declaration: declaration.cloned(),
            complete: report.complete,
            failures: report.results.iter().filter_map(failure).collect(),
        }
    }

    /// Whether this says nothing that `last` does not. `whole` where everything was asked: otherwise, what was not
    /// found failing may fail still.
    #[must_use]
    pub fn repeats(&self, last: &Self, whole: bool) -> bool {
        let same = (self.complete, &self.declaration) == (last.complete, &last.declaration);
        let known = self.failures.iter().all(|failure| last.failures.contains(failure));
        same && known && (!whole || self.failures.len() == last.failures.len())
    }
}

impl super::Fold for Resources {
    fn fold(&mut self, event: &Event) {
        match &event.body {
            Some(Body::StepsPlanned(planned)) => {
                for step in &planned.steps {
                    self.begun.insert(step.resource.clone(), step.clone());
                    if let Some(about) = &step.about {
                        self.announce(&step.resource, about);
                    }
                }
            }
            Some(Body::OriginalKept(kept)) => {
                let loose = self.loose.get_mut(&kept.resource);
                for about in loose.into_iter().flatten().filter(|about| about.target == kept.path) {
                    (about.found, about.original) = (true, kept.digest.clone());
                }
            }
            Some(Body::StepFinished(finished)) => {
                let Some(result) = &finished.result else { return };
                self.begun.remove(&result.resource);
                self.give_up(event, result);
                if finished.forgotten {
                    self.applied.remove(&result.resource);
                    self.loose.remove(&result.resource);
                }
                if let Some(record) = &finished.record {
                    self.record(event.number, result, record);
                }
                if let Some(loose) = self.loose.get_mut(&result.resource) {
                    loose.retain(|former| !finished.left.contains(&former.target));
                }
                self.loose.retain(|_, loose| !loose.is_empty());
            }
            Some(Body::LedgerSetAside(_)) => self.lost = true,
            Some(Body::RecordRecovered(recovered)) => {
                if !recovered.loose.is_empty() {
                    self.loose.insert(recovered.resource.clone(), recovered.loose.clone());
                }
                if let (Some(failure), Some(of)) = (&recovered.given_up, &recovered.given_up_for) {
                    self.given_up.insert(recovered.resource.clone(), (of.clone(), failure.clone()));
                }
                let Some(record) = recovered.record.clone() else { return };
                let place = recovered.place.and_then(|place| usize::try_from(place).ok());
                let applied = Applied { record, since: event.number, place, before: recovered.before.clone() };
                self.applied.insert(recovered.resource.clone(), applied);
            }
            Some(Body::ApplyReported(report)) => {
                self.lost &= !report.complete;
                self.reported = Some(Reported::of(event.declaration.as_ref(), report));
                for (place, result) in report.results.iter().enumerate() {
                    if let (Outcome::Changed | Outcome::Unchanged, Some(applied)) =
                        (result.outcome(), self.applied.get_mut(&result.resource))
                    {
                        applied.place = Some(place);
                    }
                }
            }
            Some(
                Body::ChainStarted(_)
                | Body::AgentStarted(_)
                | Body::Enrolled(_)
                | Body::DeclarationAccepted(_)
                | Body::DeclarationRefused(_)
                | Body::DeclarationSuperseded(_)
                | Body::Equivocation(_)
                | Body::DriftFound(_)
                | Body::KeyringAccepted(_)
                | Body::LedgerRotated(_)
                | Body::LedgerDropped(_)
                | Body::LedgerPutBack(_)
                | Body::ClockFault(_)
                | Body::EnrolmentRefused(_),
            )
            | None => {}
        }
    }
}

impl Resources {
    /// What may stand at a path of the agent's own from now on, until it is recorded.
    pub fn announce(&mut self, resource: &str, about: &Record) {
        let loose = self.loose.entry(resource.to_owned()).or_default();
        loose
            .retain(|other| (&other.kind, &other.target, &other.digest) != (&about.kind, &about.target, &about.digest));
        loose.push(about.clone());
    }

    fn give_up(&mut self, event: &Event, result: &ResourceResult) {
        self.given_up.remove(&result.resource);
        if let (Some(declaration), Some(failure)) = (&event.declaration, &result.failure)
            && failure.fields.contains_key(INTERRUPTED)
        {
            self.given_up.insert(result.resource.clone(), (declaration.clone(), failure.clone()));
        }
    }

    fn record(&mut self, number: u64, result: &ResourceResult, record: &Record) {
        let failed = result.outcome() == Outcome::Failed;
        let known = self.applied.remove(&result.resource);
        let spoken_for = |former: &Record| self.applied.values().any(|other| is_same_thing(&other.record, former));
        let left = known.as_ref().filter(|known| is_left_behind(&known.record, record) && !spoken_for(&known.record));
        if let Some(former) = left {
            self.loose.entry(result.resource.clone()).or_default().push(former.record.clone());
        }
        // What was read back speaks for its path.
        self.loose.values_mut().for_each(|loose| loose.retain(|other| !is_same_thing(other, record)));
        let (since, place) = known.as_ref().map_or((number, None), |known| (known.since, known.place));
        // What a failed step leaves is what was before it.
        let before = known.filter(|_| !failed).map(|known| known.before.unwrap_or(known.record));
        self.applied.insert(result.resource.clone(), Applied { record: record.clone(), since, place, before });
        if !failed {
            // What takes these files in is proven with them as they are now.
            let taken_in = |applied: &&mut Applied| record.inputs.contains_key(&applied.record.target);
            self.applied.values_mut().filter(taken_in).for_each(|applied| applied.before = None);
        }
    }
}

/// Whether both stand for one thing on the machine. Files and folders share their paths.
fn is_same_thing(one: &Record, other: &Record) -> bool {
    let have_path = |record: &Record| kind(record).is_some_and(Kind::has_path);
    one.target == other.target && (one.kind == other.kind || (have_path(one) && have_path(other)))
}

/// Whether what a resource stood for stays where it was when it is recorded as `now`. A network or a container that
/// gets another name is dealt with by its own step.
fn is_left_behind(known: &Record, now: &Record) -> bool {
    let moves = known.kind != now.kind || kind(now).is_some_and(Kind::has_path);
    moves && !is_same_thing(known, now)
}

/// The kind a record is of; `None` for one this agent does not know.
#[must_use]
pub fn kind(record: &Record) -> Option<Kind> {
    Kind::ALL.into_iter().find(|kind| kind.as_str() == record.kind)
}

/// The facts a record stands for; `None` for a kind this agent does not know.
#[must_use]
pub fn facts(record: &Record) -> Option<Facts<Bytes>> {
    let split = |prefix: &str| -> BTreeMap<String, Bytes> {
        let all = record.dependencies.iter();
        all.filter_map(|(name, digest)| Some((name.strip_prefix(prefix)?.to_owned(), digest.clone()))).collect()
    };
    Some(Facts {
        kind: kind(record)?,
        target: record.target.clone(),
        fields: record.fields.clone(),
        inputs: record.inputs.clone(),
        restart_on: split(RESTART_ON),
        reload_on: split(RELOAD_ON),
    })
}

#[cfg(test)]
mod tests;
