use replicator_protocol::declaration::{Declaration, Mode};
use replicator_protocol::envelope;
use replicator_protocol::ids::{Digest, FleetName, HostId, ResourceId};
use replicator_protocol::resources::Resource;
use replicator_protocol::wire::declaration::{File, file, resource};
use replicator_protocol::wire::event::{DeclarationRef, Outcome, ResourceResult};

use super::*;
use crate::state::event::{Blob, Hash};
use crate::state::fold::Fold as _;
use crate::state::{Entry, Status};

const UID: &str = "00112233445566778899aabbccddeeff";

fn after(state: HostState, event: Event) -> HostState {
    state.after(&Entry { version: 1, at: 5, by: "me@here".into(), event }).unwrap()
}

/// `base.one` and `base.two`, each with that content.
fn issued(sequence: u64, content: &str) -> Event {
    let file = |name: &str| Resource {
        id: ResourceId::parse(&format!("base.{name}")).unwrap(),
        confirms_link: false,
        body: resource::Kind::File(File {
            path: format!("/x/{name}"),
            body: Some(file::Body::Content(content.into())),
            ..File::default()
        }),
    };
    let declaration = Declaration {
        fleet: FleetName::parse("f").unwrap(),
        host: HostId::parse("acme").unwrap(),
        uid: HostUid::parse(UID).unwrap(),
        position: Position { epoch: 1, sequence },
        issued_at: 0,
        not_after: None,
        mode: Mode::Converge,
        plan_id: vec![0; 32].into(),
        previous: Bytes::new(),
        spec_revision: String::new(),
        names: vec![],
        carried_ports: vec![],
        resources: ["one", "two"].map(file).to_vec(),
        acknowledged: vec![],
    };
    let envelope = envelope::sign(&declaration.to_wire(), &[&ed25519_dalek::SigningKey::from_bytes(&[7; 32])]);
    let hash = Hash(Digest([0; 32]));
    let position = declaration.position;
    Event::DeclarationIssued { position, hash, intent_hash: hash, plan_id: hash, envelope: Blob(envelope) }
}

/// An admitted host with these declarations issued.
fn host(issued: Vec<Event>) -> HostState {
    let defined = Event::HostDefined { fleet: FleetName::parse("f").unwrap(), uid: HostUid::parse(UID).unwrap() };
    let admitted = Event::HostAdmitted { certificate: Blob(vec![1].into()) };
    let state = [defined, admitted].into_iter().chain(issued).fold(HostState::default(), after);
    assert_eq!(state.status, Status::Admitted);
    state
}

/// Event `number` of chain `chain`: a report on declaration `sequence`, on both files.
fn said((chain, number): (u8, u64), sequence: u64, outcomes: [Outcome; 2]) -> Heard {
    let result = |(name, outcome): (&str, Outcome)| ResourceResult {
        resource: format!("base.{name}"),
        outcome: outcome.into(),
        ..ResourceResult::default()
    };
    let results = ["one", "two"].into_iter().zip(outcomes).map(result).collect();
    let event = HostEvent {
        chain: vec![chain; 16].into(),
        number,
        declaration: Some(DeclarationRef { epoch: 1, sequence, hash: Bytes::new() }),
        body: Some(Body::ApplyReported(ApplyReported { results, complete: true, ..ApplyReported::default() })),
        ..HostEvent::default()
    };
    heard(event).unwrap()
}

/// The state once all of `heard` is in the log, and how many entries that took.
fn learned(state: HostState, heard: &[Heard]) -> (HostState, usize) {
    let entries = Since { heard: heard.to_vec(), unheard: vec![] }.entries(&state);
    let count = entries.len();
    (entries.into_iter().fold(state, after), count)
}

/// What each file is known to hold, by name.
fn contents(state: &HostState) -> Vec<String> {
    let all = state.known.values().map(|known| match &known.resource.body {
        resource::Kind::File(File { body: Some(file::Body::Content(content)), .. }) => Some(content.clone()),
        resource::Kind::File(_)
        | resource::Kind::Directory(_)
        | resource::Kind::Network(_)
        | resource::Kind::Container(_) => None,
    });
    all.map(Option::unwrap).collect()
}

const CHANGED: Outcome = Outcome::Changed;
const SAME: Outcome = Outcome::Unchanged;
const FAILED: Outcome = Outcome::Failed;

#[test]
fn report_that_nobody_waited_for_is_learned() {
    let host = host(vec![issued(1, "a")]);
    let (state, entries) = learned(host, &[said((1, 9), 1, [CHANGED, CHANGED])]);
    assert_eq!((contents(&state), entries), (vec!["a".into(), "a".into()], 1));
    assert_eq!(state.reported.unwrap().said.unwrap().number, 9);
}

#[test]
fn what_the_agent_made_good_by_itself_is_known_as_declared() {
    let first = said((1, 9), 1, [CHANGED, FAILED]);
    let (state, _) = learned(host(vec![issued(1, "a")]), std::slice::from_ref(&first));
    assert_eq!(contents(&state), ["a"]);
    let (state, _) = learned(state, &[first, said((1, 12), 1, [SAME, CHANGED])]);
    assert_eq!(contents(&state), ["a", "a"]);
}

#[test]
fn what_is_in_the_log_is_not_appended_again() {
    let all = [said((1, 9), 1, [CHANGED, FAILED]), said((1, 12), 1, [SAME, CHANGED]), said((2, 3), 1, [SAME, SAME])];
    let (state, entries) = learned(host(vec![issued(1, "a")]), &all);
    assert_eq!(entries, 3);
    assert_eq!(learned(state.clone(), &all), (state.clone(), 0));
    // Also where what came before it is gone from everywhere.
    assert_eq!(learned(state.clone(), &all[2..]), (state, 0));
}

#[test]
fn looks_that_found_nothing_new_leave_one_entry() {
    let looks: Vec<_> = (10..60).map(|number| said((1, number), 1, [SAME, SAME])).collect();
    let (state, _) = learned(host(vec![issued(1, "a")]), &[said((1, 9), 1, [CHANGED, CHANGED])]);
    let (state, entries) = learned(state, &looks);
    assert_eq!((entries, state.reported.unwrap().said.unwrap().number), (1, 59));
}

#[test]
fn report_on_a_declaration_that_was_passed_by_or_is_not_ours_changes_nothing() {
    let state = host(vec![issued(1, "a"), issued(2, "b")]);
    let (state, _) = learned(state, &[said((1, 9), 2, [CHANGED, CHANGED])]);
    let late =
        [said((1, 9), 2, [CHANGED, CHANGED]), said((1, 10), 1, [CHANGED, CHANGED]), said((1, 11), 7, [SAME, SAME])];
    assert_eq!(learned(state.clone(), &late), (state, 0));
}
