use std::collections::BTreeMap;

use bytes::Bytes;
use replicator_protocol::declaration::{Declaration, Mode};
use replicator_protocol::ids::{FleetName, HostId, HostUid};
use replicator_protocol::resources::Resource;
use replicator_protocol::wire::declaration::{Container, File, Mount, file::Body, mount::Source, resource};
use replicator_protocol::wire::event::{Action, ApplyReported, Outcome, ResourceResult};

use super::*;
use crate::state::known;
use crate::state::status::Reported;

fn named(id: &str, body: resource::Kind) -> Resource {
    Resource { id: ResourceId::parse(id).unwrap(), confirms_link: false, body }
}

fn file(content: &str) -> Resource {
    let body = Some(Body::Content(content.into()));
    named("web.config", resource::Kind::File(File { path: "/x".into(), body, ..File::default() }))
}

fn server() -> Resource {
    let mount = Mount { source: Some(Source::Bind("/x".into())), target: "/y".into(), read_only: true };
    let container = Container { name: "web".into(), mounts: vec![mount], ..Container::default() };
    named("web.server", resource::Kind::Container(container))
}

fn compiled(resources: Vec<Resource>) -> Compiled {
    Compiled { resources, places: vec![] }
}

/// The state after an apply of `resources` that ended as `outcome` for each.
fn applied(resources: Vec<Resource>, outcome: Outcome) -> HostState {
    let result = |resource: &Resource| ResourceResult {
        resource: resource.id.to_string(),
        outcome: outcome.into(),
        ..ResourceResult::default()
    };
    let report = ApplyReported { results: resources.iter().map(result).collect(), ..ApplyReported::default() };
    let position = Position { epoch: 1, sequence: 1 };
    let declaration = Declaration {
        fleet: FleetName::parse("f").unwrap(),
        host: HostId::parse("h").unwrap(),
        uid: HostUid::parse(&"0".repeat(32)).unwrap(),
        position,
        issued_at: 0,
        not_after: None,
        mode: Mode::Converge,
        plan_id: Bytes::new(),
        previous: Bytes::new(),
        spec_revision: String::new(),
        names: vec![],
        carried_ports: vec![],
        resources,
        acknowledged: vec![],
    };
    let known = known::after(BTreeMap::new(), &declaration, &report);
    HostState { known, reported: Some(Reported { position, report, said: None, at: 0 }), ..HostState::default() }
}

fn actions(state: &HostState, resources: Vec<Resource>) -> Vec<(String, Action)> {
    let plan = plan(state, 0, &compiled(resources), &Digest([0; 32]), vec![]);
    plan.steps.into_iter().map(|step| (step.resource.to_string(), step.change.action)).collect()
}

#[test]
fn what_was_applied_is_not_planned_again() {
    let state = applied(vec![file("one"), server()], Outcome::Changed);
    let same = actions(&state, vec![file("one"), server()]);
    assert!(same.iter().all(|(_, action)| *action == Action::None), "{same:?}");
}

#[test]
fn what_failed_is_planned_again() {
    let state = applied(vec![file("one"), server()], Outcome::Failed);
    assert_eq!(actions(&state, vec![file("one")]), [("web.config".into(), Action::Create)]);
}

#[test]
fn plan_says_what_changes_and_why() {
    let state = applied(vec![file("one\n"), server()], Outcome::Changed);
    let next = compiled(vec![file("two\n"), server()]);
    let plan = plan(&state, 0, &next, &Digest([0; 32]), vec![]);
    assert_eq!(
        plan.text(&state, &next),
        "0 to create, 1 to change, 1 to recreate, 0 to reload, 0 to remove, 0 unchanged\n\
         ~ web.config  file       change: `content` changed\n      \
         - one\n      + two\n\
         ± web.server  container  recreate: the file `/x` changed"
    );
}

#[test]
fn plan_as_data_equals_the_report_as_data() {
    let state = applied(vec![file("one"), server()], Outcome::Changed);
    let plan = plan(&state, 0, &compiled(vec![file("two")]), &Digest([0; 32]), vec![]);
    let reported = plan.steps.iter().map(|step| ResourceResult {
        resource: step.resource.to_string(),
        kind: step.kind.to_string(),
        action: step.change.action.into(),
        reasons: step.change.reasons.clone(),
        ..ResourceResult::default()
    });
    let results: Vec<_> = reported.collect();
    let told: Vec<_> = results.iter().map(|result| ResultData::from(result).step).collect();
    assert_eq!(PlanData::new(&HostId::parse("h").unwrap(), &plan, BTreeMap::new()).steps, told);
}

#[test]
fn plan_id_moves_with_what_it_starts_from() {
    let one = Digest([1; 32]);
    let at = Some(Position { epoch: 1, sequence: 1 });
    let all = [id(&one, 1, None), id(&one, 2, None), id(&one, 1, at), id(&Digest([2; 32]), 1, None)];
    assert_eq!(all.iter().collect::<std::collections::BTreeSet<_>>().len(), all.len());
    assert_eq!(id(&one, 1, at), id(&one, 1, at));
}

#[test]
fn report_counts_in_its_first_line() {
    let state = applied(vec![file("one"), server()], Outcome::Unchanged);
    let text = report_text(&state.reported.unwrap().report);
    assert_eq!(text, "0 changed, 2 unchanged, 0 failed, 0 skipped, 0 held, 0 removed, 0 kept in 0.0 s");
}
