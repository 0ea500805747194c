use std::collections::BTreeMap;

use replicator_protocol::wire::declaration::{Container, Network, resource};

use super::*;
use crate::ledger::projections::resources::Applied;

fn labels(resource: &str) -> BTreeMap<String, String> {
    let identity = (IDENTITY.to_owned(), "v1:ab".to_owned());
    BTreeMap::from([(RESOURCE.to_owned(), resource.to_owned()), identity])
}

fn listed(id: &str, name: &str) -> Listed {
    Listed {
        id: id.into(),
        name: name.into(),
        labels: labels("m.app"),
        image_id: "sha256:1".into(),
        running: true,
        restarting: false,
    }
}

fn declared(id: &str, name: &str) -> [Resource; 2] {
    let container = Container { name: name.into(), ..Container::default() };
    let network = Network { name: name.into() };
    [(id, resource::Kind::Container(container)), ("m.lan", resource::Kind::Network(network))]
        .map(|(id, body)| Resource { id: id.parse().unwrap(), confirms_link: false, body })
}

/// A ledger with `id` recorded, and `before` as what it was before that.
fn ledger(id: &str, before: &str) -> Resources {
    let record = |id: &str| Record { runtime_id: id.into(), ..Record::default() };
    let applied = Applied { record: record(id), since: 1, place: None, before: Some(record(before)) };
    Resources { applied: BTreeMap::from([("m.app".into(), applied)]), ..Resources::default() }
}

#[test]
fn left_is_what_bears_our_labels_and_neither_a_record_nor_a_declared_name_speaks_of() {
    let mut nameless = listed("4", "handmade");
    nameless.labels.remove(IDENTITY);
    let all = vec![
        listed("1", "recorded"),
        listed("2", "recorded.prev"),
        listed("3", "app.next"),
        nameless,
        listed("5", "old.next"),
        listed("6", "old.prev"),
        listed("7", "apps"),
    ];
    let left = containers(all, &declared("m.app", "app"), &ledger("1", "2"));
    assert_eq!(left.iter().map(|one| one.id.as_str()).collect::<Vec<_>>(), ["5", "6", "7"]);
    let network = |id: &str, name: &str| SeenNetwork {
        id: id.into(),
        name: name.into(),
        labels: labels("m.lan"),
        subnets: Vec::new(),
    };
    let all = vec![network("1", "recorded"), network("3", "app"), network("4", "app.next")];
    let left = networks(all, &declared("m.app", "app"), &ledger("1", "2"));
    assert_eq!(left.iter().map(|one| one.id.as_str()).collect::<Vec<_>>(), ["4"]);
}

#[test]
fn each_leftover_is_told_under_a_name_of_its_own() {
    let one = |resource: &str, id: &str| told(Kind::Container, "old".into(), id.into(), labels(resource));
    let left = vec![one("m.app", "0123456789abcdef"), one("m.gone", "1"), one("m.gone", "2"), one("no resource", "3")];
    let names = named(left, &declared("m.app", "app"), &Resources::default());
    let names: Vec<_> = names.iter().map(|(name, _)| name.to_string()).collect();
    assert_eq!(names, ["m.left-0123456789ab", "m.gone", "m.left-2"]);
}
