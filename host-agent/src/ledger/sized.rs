//! No event is larger than a message may be: one that were could never be sent, and all behind it would wait for ever.
//!
//! Event bodies come in. What says several things is told by several events, and what another event says already is
//! left out; whatever is larger still is refused, by whoever appends.

use replicator_protocol::envelope::ENVELOPE_MAX;
use replicator_protocol::wire::event::event::Body;
use replicator_protocol::wire::event::{ApplyReported, Failure, RecordRecovered, ResourceResult, StepsPlanned};

/// Most bytes of a body, encoded: beside it there is room for the rest of an event, of a batch and of an envelope with
/// one signature.
pub(super) const BODY_MAX: usize = ENVELOPE_MAX - (8 << 10);

/// Bytes of a body as it is encoded.
pub(super) fn size(body: &Body) -> usize {
    body.encoded_len()
}

/// The bodies that say what `body` does, in order, each as small as it can be made where that is needed.
pub(super) fn fit(body: Body) -> Vec<Body> {
    if size(&body) <= BODY_MAX {
        return vec![body];
    }
    #[allow(clippy::wildcard_enum_match_arm, reason = "whatever else there is says one thing, of one resource at most")]
    match body {
        Body::StepsPlanned(planned) => split(planned),
        Body::ApplyReported(report) => vec![Body::ApplyReported(shortened(report))],
        Body::RecordRecovered(recovered) => apart(recovered),
        other => vec![other],
    }
}

/// A module's steps in several events: each step is gone on with by itself.
fn split(planned: StepsPlanned) -> Vec<Body> {
    let StepsPlanned { module, mut steps } = planned;
    if steps.len() < 2 {
        return vec![Body::StepsPlanned(StepsPlanned { module, steps })];
    }
    let rest = steps.split_off(steps.len() / 2);
    let halves = [steps, rest].map(|steps| StepsPlanned { module: module.clone(), steps });
    halves.into_iter().flat_map(|half| fit(Body::StepsPlanned(half))).collect()
}

/// Without what the events of its steps say already: what programs wrote, and then whatever is not what became of a
/// resource.
fn shortened(mut report: ApplyReported) -> ApplyReported {
    let shorten: [fn(&mut ResourceResult); 2] = [
        |result| result.failure.iter_mut().for_each(|failure| failure.output.clear()),
        |result| {
            (result.reasons, result.note) = (Vec::new(), String::new());
            result.failure = result.failure.take().map(|Failure { code, .. }| Failure { code, ..Failure::default() });
        },
    ];
    for shorten in shorten {
        if size(&Body::ApplyReported(report.clone())) > BODY_MAX {
            report.results.iter_mut().for_each(shorten);
        }
    }
    report
}

/// What steps that did not end may have left in events of their own, behind what is recorded.
fn apart(recovered: RecordRecovered) -> Vec<Body> {
    let RecordRecovered { resource, loose, .. } = &recovered;
    let left = RecordRecovered { resource: resource.clone(), loose: loose.clone(), ..RecordRecovered::default() };
    let known = RecordRecovered { loose: Vec::new(), before: None, ..recovered };
    [known, left].map(Body::RecordRecovered).into()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ed25519_dalek::SigningKey;
    use replicator_protocol::envelope::sign;
    use replicator_protocol::wire::event::{DeclarationRef, DriftFound, PlannedStep, Reason, Record};

    use super::*;
    use crate::clock::SystemClock;
    use crate::ledger::{AppendError, Ledger};
    use crate::reporter::cut;
    use crate::testing::membership;

    fn drift(size: usize) -> Body {
        Body::DriftFound(DriftFound { resource: "m.a".into(), what: "x".repeat(size) })
    }

    #[test]
    fn largest_event_fits_into_a_message_and_one_that_is_larger_is_refused_and_blocks_nothing() {
        let at = tempfile::tempdir().unwrap();
        let me = membership();
        let mut ledger = Ledger::open(at.path(), &me.uid, Arc::new(SystemClock)).unwrap();
        let around = size(&drift(BODY_MAX)) - BODY_MAX;
        let of = DeclarationRef { epoch: u64::MAX, sequence: u64::MAX, hash: vec![1; 32].into() };
        let head = ledger.append(Some(&of), vec![drift(BODY_MAX - around)]).unwrap();
        let entries = ledger.read_after(head.number - 1, 1).unwrap();
        let batch = cut(&me.uid, head.chain, &entries).unwrap();
        let envelope = sign(&batch.message, &[&SigningKey::from_bytes(&[7; 32])]);
        assert!(envelope.len() <= ENVELOPE_MAX, "{}", envelope.len());

        let refused = ledger.append(None, vec![drift(1), drift(BODY_MAX)]).unwrap_err();
        assert!(matches!(refused, AppendError::TooLarge { kind: "drift-found", .. }), "{refused}");
        assert_eq!(ledger.head(), head, "none of the batch");
        assert_eq!(ledger.append(None, vec![drift(1)]).unwrap().number, head.number + 1);
    }

    #[test]
    fn steps_are_told_in_as_many_events_as_they_need() {
        let step = |number: u32| PlannedStep {
            resource: format!("m.a{number}"),
            about: Some(Record { target: "x".repeat(1000), ..Record::default() }),
            ..PlannedStep::default()
        };
        let steps: Vec<_> = (0..2000).map(step).collect();
        let told = fit(Body::StepsPlanned(StepsPlanned { module: "m".into(), steps: steps.clone() }));
        assert!(told.len() > 2 && told.iter().all(|body| size(body) <= BODY_MAX));
        let all = told.into_iter().flat_map(|body| {
            let Body::StepsPlanned(planned) = body else { panic!("{body:?}") };
            assert_eq!(planned.module, "m");
            planned.steps
        });
        assert_eq!(all.collect::<Vec<_>>(), steps);
    }

    #[test]
    fn report_leaves_out_what_its_steps_say_and_keeps_what_became_of_each_resource() {
        let result = |number: u32| ResourceResult {
            resource: format!("m.a{number}"),
            reasons: vec![Reason { subject: "s".repeat(300), ..Reason::default() }],
            failure: Some(Failure { code: "exited".into(), output: "x".repeat(4600), ..Failure::default() }),
            ..ResourceResult::default()
        };
        let report =
            |count: u32| ApplyReported { results: (0..count).map(result).collect(), ..ApplyReported::default() };
        let told = |count: u32| {
            let mut told = fit(Body::ApplyReported(report(count)));
            assert!(told.len() == 1 && size(&told[0]) <= BODY_MAX, "{count}");
            let Body::ApplyReported(report) = told.remove(0) else { panic!("no report") };
            report.results
        };
        assert_eq!(told(100), report(100).results, "whole where there is room");
        let (many, very_many) = (told(1000), told(10_000));
        assert!(many.iter().all(|one| one.failure.as_ref().unwrap().output.is_empty() && one.reasons.len() == 1));
        assert!(very_many.iter().all(|one| one.failure.as_ref().unwrap().code == "exited"));
        assert_eq!(very_many.len(), 10_000);
    }

    #[test]
    fn recovered_record_goes_before_what_else_is_known() {
        let record = || Record { target: "x".repeat(200 << 10), ..Record::default() };
        let whole = RecordRecovered {
            resource: "m.a".into(),
            record: Some(record()),
            before: Some(record()),
            loose: vec![record()],
            place: Some(3),
            ..RecordRecovered::default()
        };
        let told = fit(Body::RecordRecovered(whole.clone()));
        assert!(told.iter().all(|body| size(body) <= BODY_MAX));
        let known = RecordRecovered { before: None, loose: Vec::new(), ..whole.clone() };
        let left = RecordRecovered { resource: "m.a".into(), loose: whole.loose, ..RecordRecovered::default() };
        assert_eq!(told, [known, left].map(Body::RecordRecovered));
    }
}
