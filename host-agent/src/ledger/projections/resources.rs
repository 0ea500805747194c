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
mod tests {
    use super::super::Fold as _;
    use super::*;
    use replicator_protocol::wire::event::{StepFinished, StepsPlanned};

    fn event(number: u64, body: Body) -> Event {
        let declaration = Some(DeclarationRef { epoch: 1, sequence: 1, hash: vec![1].into() });
        Event { number, declaration, body: Some(body), ..Event::default() }
    }

    fn planned(resource: &str) -> Body {
        let step = PlannedStep { resource: resource.into(), ..PlannedStep::default() };
        Body::StepsPlanned(StepsPlanned { module: "m".into(), steps: vec![step] })
    }

    fn finished(resource: &str, outcome: Outcome, record: Option<Record>, failure: Option<Failure>) -> Body {
        let result =
            ResourceResult { resource: resource.into(), outcome: outcome.into(), failure, ..ResourceResult::default() };
        Body::StepFinished(StepFinished {
            result: Some(result),
            record,
            forgotten: outcome == Outcome::Removed,
            ..StepFinished::default()
        })
    }

    fn record(target: &str, digest: u8, inputs: &[&str]) -> Record {
        let inputs = inputs.iter().map(|path| ((*path).to_owned(), vec![digest].into())).collect();
        Record { target: target.into(), digest: vec![digest].into(), inputs, ..Record::default() }
    }

    fn folded(bodies: Vec<Body>) -> Resources {
        let mut resources = Resources::default();
        (1..).zip(bodies).for_each(|(number, body)| resources.fold(&event(number, body)));
        resources
    }

    #[test]
    fn step_that_never_ended_is_begun() {
        let begun = folded(vec![planned("m.a"), planned("m.b"), finished("m.a", Outcome::Changed, None, None)]);
        assert_eq!(begun.begun.keys().collect::<Vec<_>>(), ["m.b"]);
    }

    #[test]
    fn record_before_a_change_is_kept_until_what_takes_it_in_is_proven() {
        let file = |digest| finished("m.conf", Outcome::Changed, Some(record("/conf", digest, &[])), None);
        let container = |outcome| finished("m.app", outcome, Some(record("app", 9, &["/conf"])), None);
        let mut bodies = vec![file(1), container(Outcome::Changed), file(2), file(3)];
        let before = folded(bodies.clone()).applied["m.conf"].before.clone().unwrap();
        assert_eq!(before.digest[..], [1], "the one the running container took in");
        bodies.push(container(Outcome::Changed));
        assert_eq!(folded(bodies).applied["m.conf"].before, None);
    }

    #[test]
    fn failure_that_cost_an_interruption_is_given_up_until_it_succeeds() {
        let failure = Failure { fields: [(INTERRUPTED.to_owned(), "yes".to_owned())].into(), ..Failure::default() };
        let failed = finished("m.app", Outcome::Failed, None, Some(failure));
        assert!(folded(vec![failed.clone()]).given_up.contains_key("m.app"));
        let plain = finished("m.app", Outcome::Failed, None, Some(Failure::default()));
        assert!(folded(vec![plain]).given_up.is_empty());
        assert!(folded(vec![failed, finished("m.app", Outcome::Changed, None, None)]).given_up.is_empty());
    }

    #[test]
    fn place_is_that_of_the_last_report_that_had_it_as_declared() {
        let made = |name: &str| finished(name, Outcome::Changed, Some(record(name, 1, &[])), None);
        let report = |results: &[(&str, Outcome)]| {
            let result = |(name, outcome): &(&str, Outcome)| ResourceResult {
                resource: (*name).into(),
                outcome: (*outcome).into(),
                ..ResourceResult::default()
            };
            let results = results.iter().map(result).collect();
            Body::ApplyReported(ApplyReported { results, ..ApplyReported::default() })
        };
        let places = |bodies| -> Vec<_> { folded(bodies).applied.values().map(|applied| applied.place).collect() };
        let mut bodies = vec![made("m.a"), made("m.b")];
        assert_eq!(places(bodies.clone()), [None, None]);
        bodies.push(report(&[("m.b", Outcome::Changed), ("m.a", Outcome::Unchanged)]));
        assert_eq!(places(bodies.clone()), [Some(1), Some(0)]);
        bodies.extend([made("m.a"), report(&[("m.a", Outcome::Failed), ("m.b", Outcome::Failed)])]);
        assert_eq!(places(bodies), [Some(1), Some(0)]);
    }

    #[test]
    fn report_repeats_the_last_unless_something_fails_anew_or_no_longer() {
        let said = |names: &[&str]| Reported {
            complete: true,
            failures: names.iter().map(|name| ((*name).to_owned(), "unhealthy".to_owned())).collect(),
            ..Reported::default()
        };
        let last = said(&["m.a", "m.b"]);
        assert!(said(&["m.a", "m.b"]).repeats(&last, true));
        assert!(!said(&["m.a"]).repeats(&last, true), "one is well again");
        assert!(said(&["m.a"]).repeats(&last, false), "one was not asked");
        assert!(!said(&["m.a", "m.c"]).repeats(&last, false));
        let newer = DeclarationRef { epoch: 1, sequence: 2, hash: bytes::Bytes::new() };
        assert!(!Reported { declaration: Some(newer), ..last.clone() }.repeats(&last, false));
        assert!(!last.repeats(&Reported { complete: false, ..last.clone() }, false), "the last was cut off");
    }

    #[test]
    fn removed_resource_is_forgotten() {
        let made = finished("m.a", Outcome::Changed, Some(record("/a", 1, &[])), None);
        assert!(folded(vec![made, finished("m.a", Outcome::Removed, None, None)]).applied.is_empty());
    }
}
