use replicator_protocol::wire::declaration::{Container, Directory, File, Network, NetworkAttachment};
use replicator_protocol::wire::event::{PlannedStep, Record};

use super::*;
use crate::ledger::projections::resources::{Applied, RELOAD_ON};

fn id(text: &str) -> ResourceId {
    ResourceId::parse(text).unwrap()
}

fn resource(name: &str, body: resource::Kind) -> Resource {
    Resource { id: id(name), confirms_link: false, body }
}

fn container(name: &str, edit: impl FnOnce(&mut Container)) -> Resource {
    let mut container = Container { name: name.into(), ..Container::default() };
    edit(&mut container);
    resource(&format!("m.{name}"), resource::Kind::Container(container))
}

fn network() -> Resource {
    resource("m.lan", resource::Kind::Network(Network { name: "lan".into() }))
}

fn facts(resources: &[Resource]) -> Vec<Facts<Bytes>> {
    change::wanted(resources, Bytes::copy_from_slice)
}

/// A ledger that knows all of `resources` as they are.
fn applied(resources: &[Resource]) -> Resources {
    let records = resources.iter().zip(facts(resources)).enumerate().map(|(since, (resource, facts))| {
        let Facts { kind, target, fields, inputs, .. } = facts;
        let kind = kind.as_str().into();
        let record = Record { kind, target, fields, inputs, algorithm: ALGORITHM, ..Record::default() };
        (resource.id.to_string(), Applied { record, since: since as u64, place: Some(since), before: None })
    });
    Resources { applied: records.collect(), ..Resources::default() }
}

fn this() -> DeclarationRef {
    DeclarationRef { epoch: 1, sequence: 2, hash: Bytes::new() }
}

fn planned(resources: &[Resource], ledger: &Resources, observed: &[(&str, Observed)]) -> Vec<Planned> {
    let observed = observed.iter().map(|(name, observed)| (id(name), observed.clone())).collect();
    let wanted = facts(resources);
    plan(&Situation {
        resources,
        wanted: &wanted,
        ledger,
        observed: &observed,
        left: &[],
        put_off: &BTreeMap::new(),
        declaration: &this(),
    })
}

fn drift(words: &[&'static str]) -> Observed {
    Observed::Drifted(words.iter().copied().map(Drift::Word).collect())
}

#[test]
fn nothing_observed_is_nothing_done() {
    let resources = [network(), container("a", |_| ())];
    let steps = planned(&resources, &applied(&resources), &[]);
    assert!(steps.iter().all(|step| step.action == Action::None && step.reasons.is_empty()));
}

#[test]
fn stopped_is_started_altered_is_made_again_and_gone_is_made() {
    let resources = [container("a", |_| ())];
    let action = |words: &[&'static str]| planned(&resources, &applied(&resources), &[("m.a", drift(words))])[0].action;
    assert_eq!(action(&["stopped"]), Action::Change);
    assert_eq!(action(&["altered", "stopped"]), Action::Recreate);
    assert_eq!(action(&["gone"]), Action::Create);
}

#[test]
fn could_not_tell_changes_nothing_even_where_something_is_declared_anew() {
    let before = [container("a", |_| ())];
    let now = [container("a", |c| c.image = "sha256:2".into())];
    let unknown = Observed::Unknown(Failure { code: "runtime-unreachable".into(), ..Failure::default() });
    let steps = planned(&now, &applied(&before), &[("m.a", unknown)]);
    assert_eq!(steps[0].action, Action::None);
    assert_eq!(steps[0].blocked.as_ref().unwrap().code, "runtime-unreachable");
}

#[test]
fn what_is_bound_to_a_lost_network_is_made_again() {
    let joins = |c: &mut Container| {
        c.networks = vec![NetworkAttachment { name: "lan".into(), ..NetworkAttachment::default() }];
    };
    let resources = [network(), container("a", joins), container("b", |c| c.network_of = "a".into())];
    let steps = planned(&resources, &applied(&resources), &[("m.lan", drift(&["gone"]))]);
    let actions: Vec<_> = steps.iter().map(|step| step.action).collect();
    assert_eq!(actions, [Action::Create, Action::Recreate, Action::Recreate]);
    assert_eq!(steps[2].reasons, [reason(ReasonCode::FollowedRecreated, "a")]);
}

#[test]
fn what_shares_a_network_is_started_again_after_the_container_that_holds_it() {
    let follows = |c: &mut Container| c.network_of = "net".into();
    let resources = [container("net", |_| ()), container("a", follows), container("b", follows)];
    let observed = [("m.net", drift(&["stopped"])), ("m.b", drift(&["stopped"]))];
    let steps = planned(&resources, &applied(&resources), &observed);
    assert!(steps.iter().all(|step| step.action == Action::Change), "{steps:?}");
    assert_eq!(steps[1].reasons, [reason(ReasonCode::Drift, "network")]);
    assert_eq!(steps[2].reasons, [reason(ReasonCode::Drift, "stopped")], "one start is enough");
}

#[test]
fn unfinished_step_is_taken_again() {
    let resources = [container("a", |_| ())];
    let mut ledger = applied(&resources);
    let step = PlannedStep { resource: "m.a".into(), action: Action::Recreate.into(), ..PlannedStep::default() };
    ledger.begun.insert("m.a".into(), step);
    let steps = planned(&resources, &ledger, &[]);
    assert_eq!((steps[0].action, steps[0].reasons[0].code()), (Action::Recreate, ReasonCode::Unfinished));
}

#[test]
fn step_given_up_is_tried_again_only_for_another_declaration() {
    let before = [container("a", |_| ())];
    let now = [container("a", |c| c.image = "sha256:2".into())];
    let mut ledger = applied(&before);
    let failure = Failure { code: "exited".into(), ..Failure::default() };
    ledger.given_up.insert("m.a".into(), (this(), failure.clone()));
    let steps = planned(&now, &ledger, &[]);
    assert_eq!((steps[0].action, steps[0].blocked.clone()), (Action::None, Some(failure.clone())));
    let stopped = planned(&now, &ledger, &[("m.a", drift(&["stopped"]))]);
    assert_eq!((stopped[0].action, stopped[0].given_up.clone()), (Action::Change, Some(failure.clone())));
    assert_eq!((&stopped[0].reasons[..], &stopped[0].blocked), (&[reason(ReasonCode::Drift, "stopped")][..], &None));
    let gone = planned(&now, &ledger, &[("m.a", drift(&["gone"]))]);
    assert_eq!((gone[0].given_up.clone(), gone[0].blocked.clone()), (None, None), "it interrupts nothing");
    assert!(matches!(gone[0].action, Action::Create | Action::Recreate));
    let earlier = DeclarationRef { sequence: 1, ..this() };
    ledger.given_up.insert("m.a".into(), (earlier, failure));
    assert_eq!(planned(&now, &ledger, &[])[0].action, Action::Recreate);
}

#[test]
fn what_is_put_off_is_not_tried_and_brings_nothing_on() {
    let follower = container("a", |c| c.network_of = "net".into());
    let resources = [container("net", |_| ()), follower, container("new", |_| ())];
    let ledger = applied(&[resources[0].clone(), resources[1].clone(), network()]);
    let failure = Failure { code: "exited".into(), ..Failure::default() };
    let put_off = ["m.net", "m.new", "m.lan"].map(|name| (id(name), failure.clone()));
    let situation = Situation {
        resources: &resources,
        wanted: &facts(&resources),
        ledger: &ledger,
        observed: &[(id("m.net"), drift(&["stopped"]))].into(),
        left: &[Left { id: id("m.lan"), kind: Kind::Network, target: "lan".into() }],
        put_off: &put_off.into(),
        declaration: &this(),
    };
    let tried: Vec<_> = plan(&situation).into_iter().map(|step| (step.id, step.action, step.blocked)).collect();
    let failing = |name: &str| (id(name), Action::None, Some(failure.clone()));
    assert_eq!(tried, [failing("m.net"), (id("m.a"), Action::None, None), failing("m.new")]);
    let put_off = BTreeMap::new();
    let actions: Vec<_> = plan(&Situation { put_off: &put_off, ..situation }).iter().map(|step| step.action).collect();
    use Action::{Change, Create, Remove};
    assert_eq!(actions, [Change, Change, Create, Remove, Remove], "the control");
}

#[test]
fn what_serves_in_place_of_one_given_up_is_put_right_as_it_stands() {
    let follows = |c: &mut Container| c.network_of = "net".into();
    let now = [container("net", |_| ()), container("a", follows), network(), container("b", |c| c.image = "2".into())];
    let mut ledger = applied(&[now[0].clone(), container("a", |c| (follows(c), c.image = "1".into()).0), network()]);
    ledger.applied.insert("m.b".into(), applied(&[container("b", |_| ())]).applied["m.b"].clone());
    let failure = Failure { code: "exited".into(), ..Failure::default() };
    for name in ["m.a", "m.b"] {
        ledger.given_up.insert(name.into(), (this(), failure.clone()));
    }
    for found in [&["network"][..], &["altered"], &["altered", "stopped"]] {
        let step = planned(&now, &ledger, &[("m.a", drift(found))]).remove(1);
        let told: Vec<_> = step.reasons.iter().map(|reason| reason.subject.as_str()).collect();
        assert_eq!((step.action, &step.given_up, &told[..]), (Action::Change, &Some(failure.clone()), found));
    }
    // The one it follows is started again in the same walk, or made again: then it shares a network that is gone.
    let step = planned(&now, &ledger, &[("m.net", drift(&["stopped"]))]).remove(1);
    assert_eq!((step.action, step.reasons), (Action::Change, vec![reason(ReasonCode::Drift, "network")]));
    let tried = |step: &Planned| (step.blocked.is_none() && step.given_up.is_none(), step.action);
    let lost = planned(&now, &ledger, &[("m.net", drift(&["gone"]))]);
    assert_eq!(tried(&lost[1]), (true, Action::Recreate), "it serves nothing");
    assert_eq!(lost[3].blocked, Some(failure.clone()), "and this one does");
    let lost = planned(&now, &ledger, &[("m.a", Observed::Drifted(vec![Drift::Followed]))]);
    assert_eq!(tried(&lost[1]), (true, Action::Recreate));
    // What serves followed another one than what is declared.
    ledger.applied.insert("m.a".into(), applied(&[container("a", |_| ())]).applied["m.a"].clone());
    let step = planned(&now, &ledger, &[("m.net", drift(&["gone"]))]).remove(1);
    assert_eq!((step.action, step.blocked), (Action::None, Some(failure)));
}

#[test]
fn file_given_up_with_a_container_is_put_right_once_that_is_gone() {
    let file = |path: &str, owner: &str| {
        let file = File { path: path.into(), owner: owner.into(), ..File::default() };
        resource("m.conf", resource::Kind::File(file))
    };
    let now = [file("/conf", "web"), container("a", |c| c.image = "sha256:2".into())];
    let mut ledger = applied(&[file("/conf", ""), container("a", |_| ())]);
    let fields = [(GIVEN_UP_WITH.to_owned(), "m.a".to_owned())].into();
    let failure = Failure { code: "replacement-failed".into(), fields, ..Failure::default() };
    for name in ["m.conf", "m.a"] {
        ledger.given_up.insert(name.into(), (this(), failure.clone()));
    }
    let actions = |observed: &[(&str, Observed)]| {
        let steps = planned(&now, &ledger, observed);
        steps.iter().map(|step| step.action).collect::<Vec<_>>()
    };
    assert_eq!(actions(&[]), [Action::None, Action::None]);
    assert_eq!(actions(&[("m.a", drift(&["stopped"]))]), [Action::None, Action::Change]);
    assert_eq!(actions(&[("m.a", drift(&["gone"]))]), [Action::Change, Action::Recreate]);
}

#[test]
fn what_is_no_longer_declared_goes_in_the_reverse_of_its_last_places() {
    let resources = [network(), container("a", |_| ()), container("b", |_| ())];
    let mut ledger = applied(&resources);
    // A later declaration put `b` before `a`, and one more was made whose report never came.
    for (name, place) in [("m.a", Some(2)), ("m.b", Some(1))] {
        ledger.applied.get_mut(name).unwrap().place = place;
    }
    let cut_off = Applied { since: 9, place: None, ..ledger.applied["m.a"].clone() };
    ledger.applied.insert("m.c".into(), cut_off);
    let removed: Vec<_> = planned(&[], &ledger, &[]).into_iter().map(|step| step.id.to_string()).collect();
    assert_eq!(removed, ["m.c", "m.a", "m.b", "m.lan"]);
}

#[test]
fn what_was_never_recorded_goes_before_the_folder_it_lies_in_and_after_all_else() {
    let folder = |path: &str| {
        let body = Directory { path: path.into(), ..Directory::default() };
        resource(&format!("m{}", path.replace('/', ".")), resource::Kind::Directory(body))
    };
    let ledger = applied(&[folder("/a"), folder("/b")]);
    let left = |name: &str, target: &str| Left { id: id(name), kind: Kind::File, target: target.into() };
    let left = [left("m.deep", "/a/deep"), left("m.else", "/else")];
    let situation = Situation {
        resources: &[],
        wanted: &[],
        ledger: &ledger,
        observed: &BTreeMap::new(),
        left: &left,
        put_off: &BTreeMap::new(),
        declaration: &this(),
    };
    let steps = plan(&situation);
    let removed: Vec<_> = steps.iter().map(|step| step.id.to_string()).collect();
    assert_eq!(removed, ["m.b", "m.deep", "m.a", "m.else"]);
    let codes: Vec<_> = steps[1].reasons.iter().map(Reason::code).collect();
    assert_eq!((steps[1].action, codes), (Action::Remove, vec![ReasonCode::NoLongerDeclared, ReasonCode::Unfinished]));
}

#[test]
fn removal_that_was_called_off_is_not_gone_on_with() {
    let resources = [container("a", |_| ())];
    let mut ledger = applied(&resources);
    let step = PlannedStep { resource: "m.a".into(), action: Action::Remove.into(), ..PlannedStep::default() };
    ledger.begun.insert("m.a".into(), step);
    let steps = planned(&resources, &ledger, &[]);
    assert_eq!((steps[0].action, steps[0].reasons.len()), (Action::None, 0));
}

#[test]
fn container_recorded_with_another_kind_of_digest_is_looked_at_and_not_made_again() {
    let resources = [network(), container("a", |_| ())];
    let mut ledger = applied(&resources);
    ledger.applied.values_mut().for_each(|applied| applied.record.algorithm = 0);
    // The applier recognises what stands; nothing that follows it is made again either.
    assert_eq!(planned(&resources, &ledger, &[])[1].action, Action::Create);
    assert_eq!(planned(&[], &ledger, &[])[0].action, Action::Remove, "it is still known for a thing that was made");
}

#[test]
fn container_whose_environment_was_recorded_as_one_field_is_made_again_only_where_it_changed() {
    let with = |value: &str| {
        let environment: BTreeMap<_, _> = [("A".to_owned(), value.to_owned()), ("B".to_owned(), "2".to_owned())].into();
        container("a", |c| c.environment = environment)
    };
    let planned_from_earlier = |before: &Resource, now: Resource| {
        let mut ledger = applied(std::slice::from_ref(before));
        let record = &mut ledger.applied.get_mut("m.a").unwrap().record;
        let resource::Kind::Container(container) = &before.body else { panic!("a container") };
        let environment = Container { environment: container.environment.clone(), ..Container::default() };
        record.fields.retain(|name, _| !name.starts_with("environment/"));
        let whole = prost::Message::encode_to_vec(&environment);
        if !whole.is_empty() {
            record.fields.insert("environment".into(), whole.into());
        }
        record.algorithm = 1;
        let (now, mut ledger) = ([now], std::sync::Arc::new(ledger));
        translate(&now, &facts(&now), &mut ledger, Bytes::copy_from_slice);
        planned(&now, &ledger, &[]).remove(0)
    };
    let same = planned_from_earlier(&with("1"), with("1"));
    assert_eq!((same.action, same.reasons), (Action::None, vec![]));
    let other = planned_from_earlier(&with("1"), with("3"));
    let told: Vec<_> = other.reasons.iter().map(|reason| reason.subject.as_str()).collect();
    assert_eq!((other.action, &told[..]), (Action::Recreate, &["environment", "environment/A", "environment/B"][..]));
    let none = planned_from_earlier(&container("a", |_| ()), container("a", |_| ()));
    assert_eq!(none.action, Action::None);
}

#[test]
fn file_that_is_mended_is_loaded_again_and_one_whose_mode_is_set_is_not() {
    let file = |name: &str| {
        let file = File { path: format!("/{name}"), ..File::default() };
        resource(&format!("m.{name}"), resource::Kind::File(file))
    };
    let reads = |name: &str, of: &str| container(name, |c| c.reload_on = vec![of.to_owned()]);
    let resources = [file("one"), file("two"), reads("a", "m.one"), reads("b", "m.two")];
    let mut ledger = applied(&resources);
    for (wanted, resource) in facts(&resources).iter().zip(&resources) {
        let reload_on = wanted.reload_on.iter().map(|(name, digest)| (format!("{RELOAD_ON}{name}"), digest.clone()));
        ledger.applied.get_mut(&resource.id.to_string()).unwrap().record.dependencies = reload_on.collect();
    }
    assert!(planned(&resources, &ledger, &[]).iter().all(|step| step.action == Action::None), "the control");
    let steps = planned(&resources, &ledger, &[("m.one", drift(&["content"])), ("m.two", drift(&["mode"]))]);
    let actions: Vec<_> = steps.iter().map(|step| step.action).collect();
    assert_eq!(actions, [Action::Change, Action::Change, Action::Reload, Action::None]);
    assert_eq!(steps[2].reasons, [reason(ReasonCode::DependencyChanged, "m.one")]);
    let gone = planned(&resources, &ledger, &[("m.two", drift(&["gone"]))]);
    assert_eq!((gone[2].action, gone[3].action), (Action::None, Action::Reload));
}
