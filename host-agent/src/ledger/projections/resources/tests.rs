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
