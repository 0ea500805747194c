//! How this host stands: what it was told, what became of each resource, what went wrong last.

use std::collections::BTreeMap;

use replicator_protocol::event_words;
use replicator_protocol::wire::event::event::Body;
use replicator_protocol::wire::event::{DeclarationRef, Event, Outcome, ResourceResult};
use serde::{Deserialize, Serialize};

use super::{Apply, Fold};

/// The answer. Times are milliseconds since the Unix epoch.
///
/// Fields are added and never renamed, here and below: an older agent's checkpoint is read with their defaults.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Status {
    /// The number of the last event folded.
    pub number: u64,
    /// The time of that event.
    pub at: u64,
    /// The agent that started last.
    pub agent_version: String,
    /// Who restarts it.
    pub supervisor: String,
    /// The keyring taken up last, where one was since enrolment.
    pub keyring: Option<u64>,
    /// The declaration accepted last.
    pub accepted: Option<Accepted>,
    /// The last message refused since then.
    pub refused: Option<Refused>,
    /// How often two declarations carried one number.
    pub equivocations: u64,
    /// How far this host's clock is off, where it was seen to be; milliseconds.
    pub clock_fault: Option<i64>,
    /// The last apply reported.
    pub last_apply: Option<Apply>,
    /// Every resource that is on the machine, or should be.
    pub resources: BTreeMap<String, ResourceStatus>,
}

/// A declaration that was accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accepted {
    /// Its epoch.
    pub epoch: u64,
    /// Its sequence.
    pub sequence: u64,
    /// SHA-256 of its signed payload, in hex.
    pub hash: String,
    /// When.
    pub at: u64,
    /// How many resources it declares.
    pub resources: u32,
}

/// A message that was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// The stable code.
    pub code: String,
    /// What explains it.
    pub fields: BTreeMap<String, String>,
    /// When.
    pub at: u64,
}

/// How one resource stands.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ResourceStatus {
    /// Its kind.
    pub kind: String,
    /// How its last step ended.
    pub outcome: String,
    /// The event that says so.
    pub number: u64,
    /// When.
    pub at: u64,
    /// When it was last changed on the machine.
    pub changed_at: Option<u64>,
    /// The code of the failure, where the last step failed.
    pub failure: Option<String>,
    /// What was done about a failure, or counts; for people.
    pub note: String,
    /// What was last found to be other than declared.
    pub drift: Option<String>,
}

impl Status {
    /// Takes in what became of a resource: where `stepped`, in a step that ended just now, else as a report has it.
    fn result(&mut self, event: &Event, result: &ResourceResult, stepped: bool) {
        let outcome = Outcome::try_from(result.outcome).unwrap_or(Outcome::Unspecified);
        if outcome == Outcome::Removed {
            self.resources.remove(&result.resource);
            return;
        }
        let resource = self.resources.entry(result.resource.clone()).or_default();
        let word = event_words::outcome(result.outcome);
        let failure = result.failure.as_ref().map(|failure| failure.code.clone());
        let says_the_same = resource.outcome == word && resource.failure == failure && resource.note == result.note;
        // Every step that changes something is news, even where one before it ended in the same words; the report
        // that follows only repeats it.
        let changed = outcome == Outcome::Changed && (stepped || !says_the_same);
        if changed || !says_the_same {
            (resource.number, resource.at) = (event.number, event.wall_time);
        }
        if changed {
            resource.changed_at = Some(event.wall_time);
            resource.drift = None;
        }
        resource.kind.clone_from(&result.kind);
        word.clone_into(&mut resource.outcome);
        resource.failure = failure;
        resource.note.clone_from(&result.note);
    }
}

fn accepted(event: &Event, of: &DeclarationRef, resources: u32) -> Accepted {
    let DeclarationRef { epoch, sequence, hash } = of;
    Accepted { epoch: *epoch, sequence: *sequence, hash: hex::encode(hash), at: event.wall_time, resources }
}

impl Fold for Status {
    fn fold(&mut self, event: &Event) {
        (self.number, self.at) = (event.number, event.wall_time);
        let Some(body) = &event.body else { return };
        match body {
            Body::ChainStarted(started) => self.agent_version.clone_from(&started.agent_version),
            Body::AgentStarted(started) => {
                self.agent_version.clone_from(&started.agent_version);
                self.supervisor.clone_from(&started.supervisor);
            }
            Body::DeclarationAccepted(body) => {
                self.accepted = event.declaration.as_ref().map(|of| accepted(event, of, body.resources));
                self.refused = None;
            }
            Body::DeclarationRefused(refused) => {
                let (code, fields) = (refused.code.clone(), refused.fields.clone());
                self.refused = Some(Refused { code, fields, at: event.wall_time });
            }
            Body::Equivocation(_) => self.equivocations += 1,
            Body::StepFinished(step) => {
                if let Some(result) = &step.result {
                    self.result(event, result, true);
                }
            }
            Body::ApplyReported(report) => {
                report.results.iter().for_each(|result| self.result(event, result, false));
                self.last_apply = Some(Apply::of(event, report));
            }
            Body::DriftFound(drift) => {
                self.resources.entry(drift.resource.clone()).or_default().drift = Some(drift.what.clone());
            }
            Body::KeyringAccepted(keyring) => self.keyring = Some(keyring.version),
            Body::ClockFault(fault) => self.clock_fault = Some(fault.offset),
            Body::Enrolled(_)
            | Body::DeclarationSuperseded(_)
            | Body::StepsPlanned(_)
            | Body::LedgerSetAside(_)
            | Body::LedgerRotated(_)
            | Body::LedgerDropped(_)
            | Body::LedgerPutBack(_)
            | Body::RecordRecovered(_)
            | Body::OriginalKept(_)
            | Body::EnrolmentRefused(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use replicator_protocol::wire::event::{ApplyReported, DriftFound, Failure, StepFinished};

    use super::*;

    fn event(number: u64, body: Body) -> Event {
        Event { number, wall_time: number * 1000, body: Some(body), ..Event::default() }
    }

    fn result(outcome: Outcome) -> ResourceResult {
        ResourceResult {
            resource: "web.server".into(),
            kind: "container".into(),
            outcome: outcome.into(),
            ..ResourceResult::default()
        }
    }

    fn folded(bodies: Vec<Body>) -> Status {
        let mut status = Status::default();
        (1..).zip(bodies).for_each(|(number, body)| status.fold(&event(number, body)));
        status
    }

    fn step(result: ResourceResult) -> Body {
        Body::StepFinished(StepFinished { result: Some(result), ..StepFinished::default() })
    }

    fn report(result: ResourceResult) -> Body {
        Body::ApplyReported(ApplyReported { results: vec![result], complete: true, ..ApplyReported::default() })
    }

    #[test]
    fn report_that_repeats_a_step_leaves_its_time() {
        let status = folded(vec![step(result(Outcome::Changed)), report(result(Outcome::Changed))]);
        let resource = &status.resources["web.server"];
        assert_eq!((resource.number, resource.changed_at), (1, Some(1000)));
        assert_eq!(status.last_apply.unwrap().outcomes, BTreeMap::from([("changed".to_owned(), 1)]));
    }

    #[test]
    fn failure_is_shown_until_the_resource_is_well_and_drift_until_it_is_mended() {
        let mut failed = result(Outcome::Failed);
        failed.failure = Some(Failure { code: "exited".into(), ..Failure::default() });
        let drift = Body::DriftFound(DriftFound { resource: "web.server".into(), what: "stopped".into() });
        let status = folded(vec![drift.clone(), step(failed.clone())]);
        let resource = &status.resources["web.server"];
        assert_eq!((resource.failure.as_deref(), resource.drift.as_deref()), (Some("exited"), Some("stopped")));
        let status = folded(vec![drift, step(failed), step(result(Outcome::Changed))]);
        let resource = &status.resources["web.server"];
        assert_eq!((resource.failure.as_deref(), resource.drift.as_deref()), (None, None));
    }

    #[test]
    fn change_after_a_change_is_news_though_it_says_the_same() {
        let drift = Body::DriftFound(DriftFound { resource: "web.server".into(), what: "stopped".into() });
        let changed = || [step(result(Outcome::Changed)), report(result(Outcome::Changed))];
        let [first, then] = changed();
        let [again, told] = changed();
        let status = folded(vec![first, then, drift, again, told]);
        let resource = &status.resources["web.server"];
        assert_eq!((resource.number, resource.changed_at, resource.drift.as_deref()), (4, Some(4000), None));
    }

    #[test]
    fn failure_told_again_has_its_first_time() {
        let mut failed = result(Outcome::Failed);
        failed.failure = Some(Failure { code: "exited".into(), ..Failure::default() });
        let status = folded(vec![step(failed.clone()), report(failed.clone()), step(failed)]);
        assert_eq!(status.resources["web.server"].number, 1);
    }

    #[test]
    fn removed_resource_is_gone() {
        assert!(folded(vec![step(result(Outcome::Changed)), step(result(Outcome::Removed))]).resources.is_empty());
    }
}
