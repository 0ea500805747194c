use bytes::Bytes;
use prost::Message as _;
use replicator_protocol::ids::HostUid;
use replicator_protocol::wire::event::event::Body;
use replicator_protocol::wire::event::{
    ApplyReported, ChainStarted, ClockFault, DeclarationAccepted, DeclarationRef, DeclarationRefused, DriftFound,
    Equivocation, Event, EventBatch, Outcome, ResourceResult, Trigger,
};

use super::*;
use crate::serve::store::Incoming;

fn uid(digit: &str) -> HostUid {
    HostUid::parse(&digit.repeat(32)).unwrap()
}

/// Stores `bodies` as one batch of `host`, continuing nothing.
fn say(store: &Store, host: &HostUid, chain: u8, bodies: Vec<(Option<u64>, Body)>) {
    let mut previous = Digest([0; 32]);
    let mut events = Vec::new();
    for (number, (sequence, body)) in (1..).zip(bodies) {
        let event = Event {
            host: host.to_string(),
            chain: vec![chain; 16].into(),
            number,
            previous: Bytes::copy_from_slice(&previous.0),
            wall_time: 1000 * number,
            declaration: sequence.map(|sequence| DeclarationRef { epoch: 1, sequence, hash: Bytes::new() }),
            body: Some(body),
            ..Event::default()
        };
        let bytes = Bytes::from(event.encode_to_vec());
        previous = Digest::of(&bytes);
        events.push(bytes);
    }
    let batch = EventBatch { host: host.to_string(), chain: vec![chain; 16].into(), events };
    let envelope = Bytes::from(batch.encode_to_vec());
    let kept = store.append(&[Incoming { host: host.clone(), batch: Ok(batch), envelope }], 77).unwrap();
    assert_eq!(kept[0].fault, None);
}

fn result(resource: &str, outcome: Outcome) -> ResourceResult {
    ResourceResult { resource: resource.into(), outcome: outcome.into(), ..ResourceResult::default() }
}

fn report() -> Body {
    let results = vec![
        result("base.one", Outcome::Unchanged),
        result("base.two", Outcome::Changed),
        result("pod.web", Outcome::Failed),
        result("pod.net", Outcome::Skipped),
    ];
    let trigger = Trigger::Declaration.into();
    Body::ApplyReported(ApplyReported { trigger, results, duration: 5, not_attempted: 1, complete: false })
}

fn filled(folder: &tempfile::TempDir) -> Store {
    let store = Store::open(&folder.path().join("serve/events.db")).unwrap();
    let accepted = || Body::DeclarationAccepted(DeclarationAccepted { resources: 4 });
    let refused = DeclarationRefused { code: "stale-sequence".into(), ..DeclarationRefused::default() };
    say(
        &store,
        &uid("a"),
        1,
        vec![
            (None, Body::ChainStarted(ChainStarted { agent_version: "0.1.0".into() })),
            (Some(3), Body::Equivocation(Equivocation::default())),
            (Some(4), accepted()),
            (Some(4), Body::DriftFound(DriftFound::default())),
            (Some(4), report()),
            (None, Body::DeclarationRefused(refused)),
            (None, Body::ClockFault(ClockFault { source: "broker".into(), offset: -9 })),
        ],
    );
    say(&store, &uid("b"), 2, vec![(None, Body::ChainStarted(ChainStarted::default()))]);
    say(&store, &uid("b"), 3, vec![(None, Body::ChainStarted(ChainStarted::default())), (Some(9), accepted())]);
    store
}

#[test]
fn status_is_what_the_host_said_last() {
    let folder = tempfile::tempdir().unwrap();
    let store = filled(&folder);
    let mut projections = Projections::open(&folder.path().join("serve/projections.db")).unwrap();
    assert_eq!(projections.catch_up(&store).unwrap(), 10);
    let hosts = projections.hosts().unwrap();
    let [a, b] = &hosts[..] else { panic!("{hosts:?}") };
    assert_eq!((a.head, a.heard, a.chains, a.drift), (7, 77, 1, 0));
    assert_eq!(a.refused.as_deref(), Some("stale-sequence"));
    assert_eq!(a.clock_fault, Some(-9));
    assert!(!a.equivocation, "a later declaration was accepted since");
    let applied = a.applied.as_ref().unwrap();
    assert_eq!((applied.unchanged, applied.changed, applied.left), (1, 1, 2));
    assert_eq!(applied.failed, ["pod.web"]);
    assert_eq!((b.chains, b.head, b.accepted.unwrap().sequence), (2, 2, 9));
}

#[test]
fn replay_rebuilds_equal_projections() {
    let folder = tempfile::tempdir().unwrap();
    let store = filled(&folder);
    let path = folder.path().join("serve/projections.db");
    let mut first = Projections::open(&path).unwrap();
    first.catch_up(&store).unwrap();
    assert_eq!(first.catch_up(&store).unwrap(), 0, "twice is as once");
    let (digest, hosts) = (first.digest().unwrap(), first.hosts().unwrap());
    drop(first);
    std::fs::remove_file(&path).unwrap();
    let mut again = Projections::open(&path).unwrap();
    again.catch_up(&store).unwrap();
    assert_eq!((again.digest().unwrap(), again.hosts().unwrap()), (digest, hosts));
}

#[test]
fn answers_of_another_form_are_folded_again() {
    let folder = tempfile::tempdir().unwrap();
    let store = filled(&folder);
    let path = folder.path().join("serve/projections.db");
    Projections::open(&path).unwrap().catch_up(&store).unwrap();
    Connection::open(&path).unwrap().pragma_update(None, "user_version", FORM + 1).unwrap();
    let mut again = Projections::open(&path).unwrap();
    assert_eq!(again.hosts().unwrap(), []);
    assert_eq!(again.catch_up(&store).unwrap(), 10);
}

#[test]
fn store_that_was_put_back_or_begun_anew_is_folded_again() {
    let folder = tempfile::tempdir().unwrap();
    let (path, backup) = (folder.path().join("serve/events.db"), folder.path().join("backup"));
    let accepted = || (Some(1), Body::DeclarationAccepted(DeclarationAccepted { resources: 4 }));
    say(&Store::open(&path).unwrap(), &uid("a"), 1, vec![accepted()]);
    std::fs::copy(&path, &backup).unwrap();
    let store = Store::open(&path).unwrap();
    say(&store, &uid("b"), 1, vec![accepted(), (Some(1), report())]);
    let mut projections = Projections::open(&folder.path().join("serve/projections.db")).unwrap();
    projections.catch_up(&store).unwrap();
    let fresh = |store: &Store, name: &str| {
        let mut fresh = Projections::open(&folder.path().join(name)).unwrap();
        fresh.catch_up(store).unwrap();
        fresh.digest().unwrap()
    };
    assert_eq!(projections.catch_up(&store).unwrap(), 0, "the control: nothing is folded twice");
    assert_eq!(projections.digest().unwrap(), fresh(&store, "one"));

    // The backup as it is, and then with other events in the places of those that were lost.
    let store = Store::open(&backup).unwrap();
    projections.catch_up(&store).unwrap();
    assert_eq!(projections.digest().unwrap(), fresh(&store, "two"));
    say(&store, &uid("c"), 1, vec![accepted(), (Some(1), report())]);
    projections.catch_up(&store).unwrap();
    assert_eq!(projections.digest().unwrap(), fresh(&store, "three"));

    // None of it any more.
    let store = Store::open(&folder.path().join("new.db")).unwrap();
    projections.catch_up(&store).unwrap();
    assert!(projections.hosts().unwrap().is_empty());
}
