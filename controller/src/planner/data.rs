//! A plan and a report as data: the same words, so that one can be held against the other.

use std::collections::BTreeMap;

use replicator_protocol::change::Step;
use replicator_protocol::event_words;
use replicator_protocol::ids::{HostId, Position};
use replicator_protocol::wire::event::{ApplyReported, Reason, ResourceResult};
use serde::Serialize;

use super::{Counts, Plan, words};
use crate::compiler::Place;

/// Why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReasonData {
    code: &'static str,
    #[serde(skip_serializing_if = "String::is_empty")]
    subject: String,
}

impl From<&Reason> for ReasonData {
    fn from(reason: &Reason) -> Self {
        Self { code: words::code(reason), subject: reason.subject.clone() }
    }
}

/// What is to be done with one resource, or was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StepData {
    /// `module.name`.
    pub resource: String,
    /// What it is.
    pub kind: String,
    /// What is done.
    pub action: &'static str,
    /// Why.
    pub reasons: Vec<ReasonData>,
}

impl From<&Step> for StepData {
    fn from(step: &Step) -> Self {
        Self {
            resource: step.resource.to_string(),
            kind: step.kind.to_string(),
            action: event_words::action(step.change.action.into()),
            reasons: step.change.reasons.iter().map(ReasonData::from).collect(),
        }
    }
}

/// A public name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct NameData {
    host: String,
    alias: String,
    port: u16,
    signed_in: bool,
}

impl From<&Place> for NameData {
    fn from(place: &Place) -> Self {
        Self { host: place.host.clone(), alias: place.alias.clone(), port: place.port, signed_in: place.signed_in }
    }
}

/// A secret that is needed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct NeedData {
    secret: String,
    reason: String,
}

/// A plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlanData {
    host: String,
    epoch: u64,
    sequence: u64,
    applied: Option<u64>,
    plan_id: String,
    /// What would be done, in order.
    pub steps: Vec<StepData>,
    names: Vec<NameData>,
    secrets: Vec<NeedData>,
    /// Images as written, with what each was resolved to.
    images: BTreeMap<String, String>,
}

impl PlanData {
    /// The plan for `host`; `images` as written, with what each was resolved to.
    #[must_use]
    pub fn new(host: &HostId, plan: &Plan, images: BTreeMap<String, String>) -> Self {
        let need =
            |need: &crate::secrets::Need| NeedData { secret: need.secret.to_string(), reason: need.reason.clone() };
        Self {
            host: host.to_string(),
            epoch: plan.next.epoch,
            sequence: plan.next.sequence,
            applied: plan.applied.map(|position| position.sequence),
            plan_id: plan.id.to_string(),
            steps: plan.steps.iter().map(StepData::from).collect(),
            names: plan.places.iter().map(NameData::from).collect(),
            secrets: plan.needs.iter().map(need).collect(),
            images,
        }
    }
}

/// What became of one resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ResultData {
    /// What was done, as a plan says it.
    #[serde(flatten)]
    pub step: StepData,
    /// How it ended.
    pub outcome: &'static str,
    #[serde(skip_serializing_if = "String::is_empty")]
    note: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<FailureData>,
}

/// Why a resource failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct FailureData {
    code: String,
    fields: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    output: String,
    previous_restored: bool,
}

impl From<&ResourceResult> for ResultData {
    fn from(result: &ResourceResult) -> Self {
        let failure = result.failure.as_ref().map(|failure| FailureData {
            code: failure.code.clone(),
            fields: failure.fields.clone(),
            output: failure.output.clone(),
            previous_restored: failure.previous_restored,
        });
        Self {
            step: StepData {
                resource: result.resource.clone(),
                kind: result.kind.clone(),
                action: event_words::action(result.action),
                reasons: result.reasons.iter().map(ReasonData::from).collect(),
            },
            outcome: event_words::outcome(result.outcome),
            note: result.note.clone(),
            failure,
        }
    }
}

/// A report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReportData {
    host: String,
    epoch: u64,
    sequence: u64,
    trigger: &'static str,
    complete: bool,
    duration_ms: u64,
    not_attempted: u32,
    counts: Counts,
    /// What became of each resource, in order.
    pub results: Vec<ResultData>,
    names: Vec<NameData>,
}

impl ReportData {
    /// The report of `host` on the declaration at `position`, with the names it serves.
    #[must_use]
    pub fn new(host: &HostId, position: Position, report: &ApplyReported, places: &[Place]) -> Self {
        Self {
            host: host.to_string(),
            epoch: position.epoch,
            sequence: position.sequence,
            trigger: event_words::trigger(report.trigger),
            complete: report.complete,
            duration_ms: report.duration,
            not_attempted: report.not_attempted,
            counts: Counts::of(report),
            results: report.results.iter().map(ResultData::from).collect(),
            names: places.iter().map(NameData::from).collect(),
        }
    }
}
