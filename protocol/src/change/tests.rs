use std::collections::BTreeSet;

use super::*;
use crate::descriptors;
use crate::ids::ResourceId;
use crate::wire::declaration::{
    Capabilities, Container, Device, File, Health, HostEntry, Log, Mount, NetworkAttachment, Port, Probe, Sealed,
    Ulimit, file::Body,
};

fn container(edit: impl FnOnce(&mut Container)) -> Resource {
    let mut container = Container { name: "web".into(), ..Container::default() };
    edit(&mut container);
    Resource {
        id: ResourceId::parse("acme.web").unwrap(),
        confirms_link: false,
        body: resource::Kind::Container(container),
    }
}

fn file(edit: impl FnOnce(&mut File)) -> Resource {
    let mut file = File { path: "/etc/x".into(), body: Some(Body::Content("one".into())), ..File::default() };
    edit(&mut file);
    Resource { id: ResourceId::parse("acme.env").unwrap(), confirms_link: false, body: resource::Kind::File(file) }
}

fn facts(resource: &Resource) -> Facts<Vec<u8>> {
    Facts::of(resource, <[u8]>::to_vec)
}

fn sealed(generation: u64) -> Sealed {
    let noise = vec![u8::try_from(generation).unwrap(); 32];
    Sealed { secret: "token".into(), generation, ciphertext: noise.into(), ..Sealed::default() }
}

#[test]
fn every_declared_field_stands_in_exactly_one_list() {
    for kind in [Kind::File, Kind::Directory, Kind::Network, Kind::Container] {
        let listed: Vec<_> =
            FIELDS.iter().filter(|(of, ..)| *of == kind).map(|(_, name, _)| (*name).to_owned()).collect();
        let message = format!("{}{}", kind.as_str()[..1].to_uppercase(), &kind.as_str()[1..]);
        assert_eq!(listed.iter().cloned().collect::<BTreeSet<_>>(), descriptors::fields(&message), "{kind}");
        assert_eq!(listed.len(), listed.iter().collect::<BTreeSet<_>>().len(), "{kind}");
    }
}

/// A container that differs from the bare one in this field alone.
fn with(field: &str) -> Resource {
    container(|c| match field {
        "name" => c.name = "other".into(),
        "image" => c.image = "sha256:1".into(),
        "command" => c.command = vec!["x".into()],
        "entrypoint" => c.entrypoint = vec!["x".into()],
        "environment" => drop(c.environment.insert("A".into(), "1".into())),
        "environment_files" => c.environment_files = vec!["/e".into()],
        "exposed_environment" => c.exposed_environment = vec!["/e".into()],
        "mounts" => c.mounts = vec![Mount::default()],
        "ports" => c.ports = vec![Port::default()],
        "networks" => c.networks = vec![NetworkAttachment { ip: "10.0.0.2".into(), ..NetworkAttachment::default() }],
        "network_of" => c.network_of = "net".into(),
        "hosts" => c.hosts = vec![HostEntry::default()],
        "dns" => c.dns = vec!["10.0.0.1".into()],
        "hostname" => c.hostname = "h".into(),
        "user" => c.user = "1000".into(),
        "working_directory" => c.working_directory = "/w".into(),
        "labels" => drop(c.labels.insert("a".into(), "1".into())),
        "capabilities" => c.capabilities = Some(Capabilities { add: vec!["NET_ADMIN".into()], drop: vec![] }),
        "devices" => c.devices = vec![Device::default()],
        "sysctls" => drop(c.sysctls.insert("net.x".into(), "1".into())),
        "read_only" => c.read_only = true,
        "init" => c.init = true,
        "shm_size" => c.shm_size = Some(1),
        "memory" => c.memory = Some(1),
        "milli_cpus" => c.milli_cpus = Some(1),
        "pids" => c.pids = Some(1),
        "ulimits" => c.ulimits = vec![Ulimit::default()],
        "health" => c.health = Some(Health { interval: 1, ..Health::default() }),
        "stop_signal" => c.stop_signal = "SIGINT".into(),
        "stop_timeout" => c.stop_timeout = Some(1),
        "log" => c.log = Some(Log { driver: "local".into(), ..Log::default() }),
        "pull" => c.pull = Some(sealed(1)),
        "restart_on" => c.restart_on = vec!["acme.env".into()],
        "reload_on" => c.reload_on = vec!["acme.env".into()],
        "reload_signal" => c.reload_signal = "SIGHUP".into(),
        "probes" => c.probes = vec![Probe::default()],
        "rollover" => c.rollover = 1,
        other => panic!("`{other}` has no case here"),
    })
}

#[test]
fn identity_fields_recreate_a_container_and_handling_fields_do_not() {
    let before = facts(&container(|_| ()));
    for (_, field, part) in FIELDS.iter().filter(|(kind, ..)| *kind == Kind::Container) {
        let change = compare(Some(&before), &facts(&with(field)), None);
        let expected = match part {
            Part::Identity => Action::Recreate,
            Part::Handling => Action::None,
        };
        assert_eq!(change.action, expected, "{field}");
        assert_eq!(change.reasons.len(), usize::from(*part == Part::Identity), "{field}");
    }
}

#[test]
fn changed_environment_names_each_variable_that_changed() {
    let with = |variables: &[(&str, &str)]| {
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        facts(&container(|c| c.environment = variables.collect()))
    };
    let before = with(&[("GONE", ""), ("KEPT", "1"), ("SET", "1")]);
    let now = with(&[("KEPT", "1"), ("NEW", ""), ("SET", "2")]);
    let change = compare(Some(&before), &now, None);
    let named = ["environment/GONE", "environment/NEW", "environment/SET"];
    assert_eq!(change.reasons, named.map(|name| reason(ReasonCode::FieldChanged, name)));
    assert!(!compare(Some(&now), &now, None).is_some());
}

#[test]
fn order_of_host_entries_is_no_change() {
    let entry = |name: &str| HostEntry { name: name.into(), address: "10.0.0.1".into() };
    let one = facts(&container(|c| c.hosts = vec![entry("a"), entry("b")]));
    let other = facts(&container(|c| c.hosts = vec![entry("b"), entry("a")]));
    assert!(!compare(Some(&one), &other, None).is_some());
}

#[test]
fn secret_sealed_anew_is_no_change_and_a_new_generation_names_the_secret() {
    let holding = |sealed: Sealed| facts(&file(|f| drop(f.secrets.insert("token".into(), sealed))));
    let again = Sealed { ciphertext: vec![9; 32].into(), ..sealed(1) };
    assert!(!compare(Some(&holding(sealed(1))), &holding(again), None).is_some());
    let change = compare(Some(&holding(sealed(1))), &holding(sealed(2)), None);
    assert_eq!(change, Change { action: Action::Change, reasons: vec![reason(ReasonCode::SecretChanged, "token")] });
}

#[test]
fn changed_input_recreates_and_names_the_file() {
    let reads = |content: &str| {
        let mut facts = facts(&container(|c| c.environment_files = vec!["/etc/x".into()]));
        facts.inputs.insert("/etc/x".into(), super::content(&file(|f| f.body = Some(Body::Content(content.into())))));
        facts
    };
    assert!(!compare(Some(&reads("one")), &reads("one"), None).is_some());
    let change = compare(Some(&reads("one")), &reads("two"), None);
    assert_eq!(change.action, Action::Recreate);
    assert_eq!(change.reasons, [reason(ReasonCode::InputChanged, "/etc/x")]);
}

#[test]
fn owner_and_mode_of_an_input_do_not_reach_a_container() {
    let (one, other) = (file(|_| ()), file(|f| f.mode = Some(0o600)));
    assert_eq!(content(&one), content(&other));
    assert_eq!(compare(Some(&facts(&one)), &facts(&other), None).action, Action::Change);
}

#[test]
fn explicit_default_mode_is_no_change() {
    assert!(!compare(Some(&facts(&file(|_| ()))), &facts(&file(|f| f.mode = Some(0o644))), None).is_some());
}

#[test]
fn seed_that_changed_is_no_change() {
    let seed = |text: &str| {
        file(|f| {
            f.create_once = true;
            f.body = Some(Body::Content(text.into()));
        })
    };
    assert!(!compare(Some(&facts(&seed("one"))), &facts(&seed("two")), None).is_some());
}

#[test]
fn reload_is_for_what_would_otherwise_stay_untouched() {
    let mut known = facts(&container(|_| ()));
    known.reload_on.insert("acme.routes".into(), vec![1]);
    let mut wanted = known.clone();
    wanted.reload_on.insert("acme.routes".into(), vec![2]);
    assert_eq!(compare(Some(&known), &wanted, None).action, Action::Reload);
    wanted.restart_on.insert("acme.env".into(), vec![1]);
    let change = compare(Some(&known), &wanted, None);
    assert_eq!((change.action, change.reasons.len()), (Action::Recreate, 1), "a recreate reads everything anew");
}

#[test]
fn follower_is_recreated_with_what_it_follows() {
    let follower = facts(&container(|c| c.network_of = "net".into()));
    assert!(!compare(Some(&follower), &follower, None).is_some());
    let change = compare(Some(&follower), &follower, Some("net"));
    assert_eq!(change.reasons, [reason(ReasonCode::FollowedRecreated, "net")]);
}

#[test]
fn moved_file_is_made_anew() {
    let change = compare(Some(&facts(&file(|_| ()))), &facts(&file(|f| f.path = "/etc/y".into())), None);
    assert_eq!((change.action, change.reasons), (Action::Recreate, vec![reason(ReasonCode::FieldChanged, "path")]));
}
