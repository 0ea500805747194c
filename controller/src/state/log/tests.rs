use prost::Message as _;
use replicator_protocol::change::{self, Facts};
use replicator_protocol::declaration::{Declaration, Mode};
use replicator_protocol::envelope;
use replicator_protocol::ids::{Digest, FleetName, HostUid, Position, ResourceId};
use replicator_protocol::resources::Resource;
use replicator_protocol::wire::declaration::{File, file::Body, resource};
use replicator_protocol::wire::event::{Action, ApplyReported, Outcome, ResourceResult};

use super::*;
use crate::state::event::{Blob, Hash};
use crate::state::{Event, Status};

const UID: &str = "00112233445566778899aabbccddeeff";

fn fixture() -> (tempfile::TempDir, Objects) {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::at(folder.path().join("home")).unwrap();
    let objects = Objects::local(&home, home.state(), "state").unwrap();
    (folder, objects)
}

fn log(objects: &Objects, by: &str) -> Log {
    Log::new(objects.clone(), &App::parse("demo").unwrap(), &HostId::parse("acme").unwrap(), by.into())
}

fn defined() -> Event {
    Event::HostDefined { fleet: FleetName::parse("f").unwrap(), uid: HostUid::parse(UID).unwrap() }
}

fn admitted() -> Event {
    Event::HostAdmitted { certificate: Blob(vec![1].into()) }
}

fn declaration(sequence: u64, files: &[(&str, &str)]) -> Declaration {
    let file = |(name, content): &(&str, &str)| Resource {
        id: ResourceId::parse(&format!("base.{name}")).unwrap(),
        confirms_link: false,
        body: resource::Kind::File(File {
            path: format!("/x/{name}"),
            body: Some(Body::Content((*content).into())),
            ..File::default()
        }),
    };
    Declaration {
        fleet: FleetName::parse("f").unwrap(),
        host: HostId::parse("acme").unwrap(),
        uid: HostUid::parse(UID).unwrap(),
        position: Position { epoch: 1, sequence },
        issued_at: 0,
        not_after: None,
        mode: Mode::Converge,
        plan_id: vec![0; 32].into(),
        previous: bytes::Bytes::new(),
        spec_revision: String::new(),
        names: vec![],
        carried_ports: vec![],
        resources: files.iter().map(file).collect(),
        acknowledged: vec![],
    }
}

fn issued(declaration: &Declaration) -> Event {
    let key = ed25519_dalek::SigningKey::from_bytes(&[7; 32]);
    let hash = Hash(Digest([0; 32]));
    let envelope = Blob(envelope::sign(&declaration.to_wire(), &[&key]));
    Event::DeclarationIssued { position: declaration.position, hash, intent_hash: hash, plan_id: hash, envelope }
}

fn seen(sequence: u64, results: &[(&str, Outcome)]) -> Event {
    let result = |(name, outcome): &(&str, Outcome)| ResourceResult {
        resource: format!("base.{name}"),
        action: Action::Change.into(),
        outcome: (*outcome).into(),
        ..ResourceResult::default()
    };
    let report = ApplyReported { results: results.iter().map(result).collect(), ..ApplyReported::default() };
    Event::ApplySeen {
        position: Position { epoch: 1, sequence },
        report: Blob(report.encode_to_vec().into()),
        said: None,
    }
}

async fn after(log: &Log, events: Vec<Event>) -> History {
    let mut history = log.read().await.unwrap();
    for event in events {
        history = log.append(history, event, 5).await.unwrap();
    }
    history
}

#[tokio::test]
async fn log_is_read_on_from_where_it_was_reached_and_anew_where_another_lies_there() {
    let (folder, objects) = fixture();
    let log = log(&objects, "one");
    let history = log.append(History::default(), defined(), 1).await.unwrap();
    let first = log.read_on(Reached::default()).await.unwrap();
    assert_eq!(first.state, history.state);
    let history = log.append(history, admitted(), 2).await.unwrap();
    let second = log.read_on(first.clone()).await.unwrap();
    assert_eq!(second.state, history.state);
    assert_eq!(log.read_on(second.clone()).await.unwrap(), second);
    // What a tool that copies folders leaves there is no entry.
    std::fs::write(folder.path().join("home/state/demo/acme/log/.DS_Store"), "").unwrap();
    std::fs::write(folder.path().join("home/state/demo/acme/log/00000000000000000001.bak"), "").unwrap();
    assert_eq!(log.read().await.unwrap(), history);
    // Read on, and not from its beginning: what lies before is not looked at again.
    let objects_of = folder.path().join("home/state/demo/acme/log");
    let object = |number: u64| objects_of.join(format!("{number:020}"));
    let whole = std::fs::read(object(1)).unwrap();
    std::fs::write(object(1), "damaged").unwrap();
    assert_eq!(log.read_on(second.clone()).await.unwrap(), second);
    // A backup is shorter.
    std::fs::write(object(1), whole).unwrap();
    std::fs::remove_file(object(2)).unwrap();
    assert_eq!(log.read_on(second.clone()).await.unwrap(), first);
    // And it may have grown again, otherwise.
    let other = log.append(log.read().await.unwrap(), admitted(), 3).await.unwrap();
    assert_eq!(log.read_on(second).await.unwrap().state, other.state);
    std::fs::remove_file(object(1)).unwrap();
    let missing = log.read_on(Reached::default()).await.unwrap_err();
    assert!(matches!(missing, LogError::Gap { number: 1, .. }), "{missing}");
}

#[tokio::test]
async fn replay_gives_what_appending_gave() {
    let (_folder, objects) = fixture();
    let log = log(&objects, "a@x");
    let first = declaration(1, &[("one", "1")]);
    let history = after(&log, vec![defined(), admitted(), issued(&first), seen(1, &[("one", Outcome::Changed)])]).await;
    assert_eq!(log.read().await.unwrap(), history);
    assert_eq!((history.head(), history.state.status), (4, Status::Admitted));
}

#[tokio::test(flavor = "multi_thread")]
async fn append_to_the_newest_looks_again_after_each_lost_race_and_gives_up_at_last() {
    let (_folder, objects) = fixture();
    let (one, two) = (log(&objects, "ann@one"), log(&objects, "bob@two"));
    one.append(History::default(), defined(), 1).await.unwrap();
    let looks = std::cell::Cell::new(0);
    // Each look is followed by somebody else's entry, up to the third.
    let beaten = |times| {
        let (two, looks) = (&two, &looks);
        looks.set(0);
        move |_: &HostState| -> Result<Option<Event>, LogError> {
            looks.set(looks.get() + 1);
            if looks.get() <= times {
                let append = async { two.append(two.read().await?, admitted(), 2).await };
                tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(append))?;
            }
            Ok(Some(admitted()))
        }
    };
    one.append_newest(3, 3, beaten(2)).await.unwrap();
    assert_eq!((looks.get(), one.read().await.unwrap().head()), (3, 4));
    let gave_up = one.append_newest(3, 3, beaten(3)).await;
    assert!(matches!(gave_up, Err(LogError::Lost { number: 7, .. })), "{gave_up:?}");
    one.append_newest(3, 3, |_| Ok::<_, LogError>(None)).await.unwrap();
    assert_eq!(one.read().await.unwrap().head(), 7, "nothing was to be appended");
}

#[tokio::test]
async fn of_two_controllers_one_wins_and_the_other_is_told_who_when_and_what() {
    let (_folder, objects) = fixture();
    let (one, two) = (log(&objects, "ann@one"), log(&objects, "bob@two"));
    let same = one.read().await.unwrap();
    let won = one.append(same.clone(), defined(), 41).await.unwrap();
    let Err(LogError::Lost { number, by, at, what, .. }) = two.append(same, defined(), 42).await else {
        panic!("both won");
    };
    assert_eq!((number, by.as_str(), at, what.as_str()), (1, "ann@one", 41, "defined the host"));
    assert_eq!(two.read().await.unwrap(), won);
}

#[tokio::test]
async fn number_issued_twice_is_not_allowed_and_nothing_is_written() {
    let (_folder, objects) = fixture();
    let log = log(&objects, "a@x");
    let history = after(&log, vec![defined(), admitted(), issued(&declaration(1, &[]))]).await;
    for sequence in [1, 3] {
        let again = log.append(history.clone(), issued(&declaration(sequence, &[])), 6).await;
        assert!(matches!(again, Err(LogError::Illegal { .. })), "{sequence}");
    }
    assert_eq!(log.read().await.unwrap().head(), 3);
    assert_eq!(history.state.next_position().sequence, 2);
}

#[tokio::test]
async fn missing_entry_is_noticed() {
    let (folder, objects) = fixture();
    let log = log(&objects, "a@x");
    after(&log, vec![defined(), admitted(), issued(&declaration(1, &[]))]).await;
    std::fs::remove_file(folder.path().join("home/state/demo/acme/log/00000000000000000002")).unwrap();
    assert!(matches!(log.read().await, Err(LogError::Gap { number: 2, .. })));
}

#[tokio::test]
async fn failed_resource_is_known_as_it_was_before() {
    let (_folder, objects) = fixture();
    let log = log(&objects, "a@x");
    let (first, second) =
        (declaration(1, &[("one", "1"), ("two", "1")]), declaration(2, &[("one", "2"), ("two", "2")]));
    let history = after(
        &log,
        vec![
            defined(),
            admitted(),
            issued(&first),
            seen(1, &[("one", Outcome::Changed), ("two", Outcome::Changed)]),
            issued(&second),
            seen(2, &[("one", Outcome::Changed), ("two", Outcome::Failed)]),
        ],
    )
    .await;
    let facts = |name: &str| history.state.known[&ResourceId::parse(name).unwrap()].facts.clone();
    assert_eq!(facts("base.one"), change::wanted(&second.resources, <[u8]>::to_vec)[0]);
    assert_eq!(facts("base.two"), change::wanted(&first.resources, <[u8]>::to_vec)[1]);
    let change = change::compare(Some(&facts("base.two")), &Facts::of(&second.resources[1], <[u8]>::to_vec), None);
    assert_eq!(change.action, Action::Change);
    let gone = after(&log, vec![issued(&declaration(3, &[])), seen(3, &[("one", Outcome::Removed)])]).await;
    assert_eq!(gone.state.known.len(), 1);
}

#[tokio::test]
async fn retired_host_is_defined_again_under_another_number_only() {
    let (_folder, objects) = fixture();
    let log = log(&objects, "a@x");
    let retired = Event::HostRetired { uid: HostUid::parse(UID).unwrap() };
    let history = after(&log, vec![defined(), admitted(), retired]).await;
    assert!(matches!(log.append(history.clone(), defined(), 6).await, Err(LogError::Illegal { .. })));
    let uid = HostUid::parse(&UID.replace('f', "0")).unwrap();
    let again = Event::HostDefined { fleet: FleetName::parse("f").unwrap(), uid };
    assert_eq!(log.append(history, again, 6).await.unwrap().state.status, Status::Defined);
}

#[tokio::test]
async fn host_that_goes_is_declared_nothing_and_ends_retired() {
    let (_folder, objects) = fixture();
    let log = log(&objects, "a@x");
    let uid = || HostUid::parse(UID).unwrap();
    let begun = Event::RetirementBegun { uid: uid() };
    let history = after(&log, vec![defined(), admitted(), issued(&declaration(1, &[])), begun.clone()]).await;
    assert_eq!((history.state.status, history.state.last_issued()), (Status::Retiring, None));
    for illegal in [begun, issued(&declaration(2, &[])), admitted(), defined()] {
        assert!(matches!(log.append(history.clone(), illegal, 6).await, Err(LogError::Illegal { .. })));
    }
    let gone = log.append(history, Event::HostRetired { uid: uid() }, 6).await.unwrap();
    assert_eq!(gone.state.status, Status::Retired);
}
