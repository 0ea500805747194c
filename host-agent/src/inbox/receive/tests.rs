use prost::Message as _;
use replicator_protocol::envelope::sign;
use replicator_protocol::refusal::Code;
use replicator_protocol::wire::event::Event;

use super::*;
use crate::clock::SystemClock;
use crate::host::docker;
use crate::keys::trusted::Trusted;
use crate::ledger::open_or_set_aside;
use crate::testing::{self, declaration, signed};

struct Host {
    at: tempfile::TempDir,
    ledger: Arc<SharedLedger>,
    inbox: Inbox,
}

fn keyring(epoch: u64) -> Keyring {
    walked(&testing::keyring_document(1, epoch, testing::root_key()))
}

fn walked(document: &Bytes) -> Keyring {
    let at = tempfile::tempdir().unwrap();
    Trusted::keep_all(at.path(), std::slice::from_ref(document)).unwrap();
    Trusted::load(at.path(), Digest::of(document)).unwrap().keyring().clone()
}

/// A machine with a container runtime.
fn runtime() -> Abilities {
    Abilities::new("/", "".into())
}

fn opened(at: tempfile::TempDir) -> Host {
    let layout = Layout::new(at.path());
    layout.make_folders().unwrap();
    let me = testing::membership();
    let (ledger, _) = open_or_set_aside(&layout.ledger(), &me.uid, Arc::new(SystemClock)).unwrap();
    let ledger = Arc::new(SharedLedger::new(ledger));
    let inbox = Inbox::open(&layout, (docker::SOCKET, runtime()), me, ledger.clone()).unwrap();
    Host { at, ledger, inbox }
}

fn fresh() -> Host {
    opened(tempfile::tempdir().unwrap())
}

impl Host {
    fn receive(&mut self, envelope: &Bytes) -> Received {
        self.inbox.receive(envelope, &keyring(1), 0).unwrap()
    }

    fn refused(&mut self, envelope: &Bytes) -> Code {
        let received = self.receive(envelope);
        let Received::Refused { refusal, .. } = received else { panic!("not refused: {received:?}") };
        refusal.code
    }

    fn restarted(self) -> Self {
        let Self { at, ledger, inbox } = self;
        drop((ledger, inbox));
        opened(at)
    }

    fn bodies(&self) -> Vec<Body> {
        let entries = self.ledger.read_after(0, 1000).unwrap();
        entries.iter().filter_map(|entry| Event::decode(&entry.payload[..]).unwrap().body).collect()
    }
}

#[test]
fn accepted_declaration_is_in_force_after_a_restart() {
    let mut host = fresh();
    let envelope = signed(&declaration(1, 1));
    assert!(matches!(host.receive(&envelope), Received::Accepted(_)));
    let host = host.restarted();
    assert_eq!(host.inbox.in_force().unwrap().envelope, envelope);
}

#[test]
fn repeated_declaration_appends_nothing() {
    let mut host = fresh();
    let envelope = signed(&declaration(1, 1));
    host.receive(&envelope);
    let head = host.ledger.head();
    assert!(matches!(host.receive(&envelope), Received::Same));
    assert_eq!(host.ledger.head(), head);
}

#[test]
fn skipped_sequences_are_recorded_as_superseded() {
    let mut host = fresh();
    host.receive(&signed(&declaration(1, 1)));
    host.receive(&signed(&declaration(1, 5)));
    assert!(host.bodies().contains(&Body::DeclarationSuperseded(DeclarationSuperseded { first: 2, last: 4 })));
}

#[test]
fn stale_declaration_is_refused_even_where_the_ledger_is_gone() {
    let mut host = fresh();
    host.receive(&signed(&declaration(1, 1)));
    host.receive(&signed(&declaration(1, 5)));
    assert_eq!(host.refused(&signed(&declaration(1, 4))), Code::StaleSequence);
    let Host { at, ledger, inbox } = host;
    drop((ledger, inbox));
    fs::remove_dir_all(Layout::new(at.path()).state().join("ledger")).unwrap();
    let mut host = opened(at);
    assert_eq!(host.refused(&signed(&declaration(1, 4))), Code::StaleSequence);
    assert_eq!(host.inbox.in_force().unwrap().reference.sequence, 5);
}

#[test]
fn acceptance_the_ledger_was_not_told_of_is_told_at_the_next_start() {
    let mut host = fresh();
    host.receive(&signed(&declaration(1, 1)));
    let layout = Layout::new(host.at.path());
    let envelope = signed(&declaration(1, 2));
    let candidate = verify(&envelope, &keyring(1), &testing::membership(), 0).unwrap();
    let floor = Floor { position: candidate.declaration.position, hash: candidate.hash };
    durable::replace(&kept_at(&layout.declarations(), &floor), &envelope, 0o600).unwrap();
    Anchors::new(layout.anchors()).write(&floor).unwrap();
    let host = host.restarted();
    assert_eq!(host.inbox.in_force().unwrap().reference.sequence, 2);
    let accepted = host.bodies().iter().filter(|body| matches!(body, Body::DeclarationAccepted(_))).count();
    assert_eq!(accepted, 2);
    assert_eq!(host.restarted().bodies().len(), 3, "and only once");
}

#[test]
fn equivocation_keeps_both_and_changes_nothing() {
    let mut host = fresh();
    let first = signed(&declaration(1, 1));
    host.receive(&first);
    let mut other = declaration(1, 1);
    other.spec_revision = "other".into();
    let other = signed(&other);
    assert!(matches!(host.receive(&other), Received::Equivocation { again: false }));
    assert!(matches!(host.receive(&other), Received::Equivocation { again: true }));
    assert_eq!(host.inbox.in_force().unwrap().envelope, first);
    let kept = fs::read_dir(Layout::new(host.at.path()).declarations()).unwrap().count();
    assert_eq!(kept, 2);
    let events = host.bodies().iter().filter(|body| matches!(body, Body::Equivocation(_))).count();
    assert_eq!(events, 1);
}

#[test]
fn refusal_is_one_event_however_often_it_comes() {
    let mut host = fresh();
    let forged = sign(&declaration(1, 1), &[&testing::collect_key()]);
    assert_eq!(host.refused(&forged), Code::UntrustedKey);
    assert_eq!(host.refused(&forged), Code::UntrustedKey);
    let events: Vec<_> = host.bodies().into_iter().filter(|body| matches!(body, Body::DeclarationRefused(_))).collect();
    let [Body::DeclarationRefused(refused)] = &events[..] else { panic!("{events:?}") };
    assert_eq!(refused.code, "untrusted-key");
    assert!(host.inbox.in_force().is_none());
}

#[test]
fn mode_whose_promise_cannot_be_kept_is_refused() {
    let mut host = fresh();
    let adopt = replicator_protocol::wire::declaration::Mode::Adopt.into();
    let other = replicator_protocol::wire::declaration::Declaration { mode: adopt, ..declaration(1, 1) };
    assert_eq!(host.refused(&signed(&other)), Code::UnsupportedMode);
    assert!(matches!(host.receive(&signed(&declaration(1, 1))), Received::Accepted(_)), "the control");
}

#[test]
fn kind_that_the_machine_cannot_apply_is_refused_whole_until_it_can() {
    use replicator_protocol::wire::declaration::{Declaration, Network, Resource, resource};

    let mut host = fresh();
    let socket = host.at.path().join("docker.sock");
    host.inbox.abilities = Abilities::new(&socket.to_string_lossy(), "".into());
    let network = Some(resource::Kind::Network(Network { name: "lan".into() }));
    let network = Resource { module: "m".into(), name: "lan".into(), confirms_link: false, kind: network };
    let declared = signed(&Declaration { resources: vec![network], ..declaration(1, 1) });
    assert_eq!(host.refused(&declared), Code::UnsupportedKind);
    assert!(host.inbox.in_force().is_none());
    fs::write(&socket, "").unwrap();
    assert!(matches!(host.receive(&declared), Received::Accepted(_)), "installed since");
}

#[test]
fn misaddressed_declaration_is_refused() {
    let mut host = fresh();
    let edits: [fn(&mut replicator_protocol::wire::declaration::Declaration); 3] =
        [|d| d.fleet = "other".into(), |d| d.host = "web-2".into(), |d| d.uid = "b".repeat(32)];
    for edit in edits {
        let mut other = declaration(1, 1);
        edit(&mut other);
        assert_eq!(host.refused(&signed(&other)), Code::WrongHost);
    }
    assert!(matches!(host.receive(&signed(&declaration(1, 1))), Received::Accepted(_)), "the control");
}

#[test]
fn key_that_may_speak_about_other_hosts_alone_is_refused() {
    let mut host = fresh();
    let envelope = signed(&declaration(1, 1));
    let (ours, other) = ("a".repeat(32), "b".repeat(32));
    let scoped = |hosts: &[&str]| walked(&testing::scoped_keyring_document(1, 1, testing::root_key(), hosts));
    let refused = host.inbox.receive(&envelope, &scoped(&[&other]), 0).unwrap();
    let Received::Refused { refusal, .. } = refused else { panic!("not refused: {refused:?}") };
    assert_eq!(refusal.code, Code::OutOfScope);
    let accepted = host.inbox.receive(&envelope, &scoped(&[&ours, &other]), 0).unwrap();
    assert!(matches!(accepted, Received::Accepted(_)), "the control: {accepted:?}");
}

#[test]
fn expired_declaration_is_refused_with_a_day_of_patience() {
    let mut host = fresh();
    let mut dated = declaration(1, 1);
    dated.not_after = Some(1000);
    let day = 24 * 60 * 60 * 1000;
    let late = host.inbox.receive(&signed(&dated), &keyring(1), day + 1001).unwrap();
    assert!(matches!(late, Received::Refused { refusal, .. } if refusal.code == Code::Expired));
    let in_time = host.inbox.receive(&signed(&dated), &keyring(1), day + 1000).unwrap();
    assert!(matches!(in_time, Received::Accepted(_)));
}

#[test]
fn new_epoch_of_the_keyring_resets_the_floor() {
    let mut host = fresh();
    host.receive(&signed(&declaration(1, 900)));
    assert_eq!(host.refused(&signed(&declaration(2, 1))), Code::WrongEpoch);
    let accepted = host.inbox.receive(&signed(&declaration(2, 1)), &keyring(2), 0).unwrap();
    assert!(matches!(accepted, Received::Accepted(_)));
}

#[test]
fn what_the_policy_forbids_is_refused_whole_until_the_line_is_there() {
    use replicator_protocol::wire::declaration::{File, Resource, file::Body as Content, resource::Kind};
    let mut host = fresh();
    let mut wanted = declaration(1, 1);
    let file = File {
        path: "/etc/cron.d/x".into(),
        owner: "0".into(),
        group: "0".into(),
        mode: Some(0o644),
        body: Some(Content::Content("x".into())),
        ..File::default()
    };
    wanted.resources =
        vec![Resource { module: "base".into(), name: "x".into(), kind: Some(Kind::File(file)), ..Resource::default() }];
    let envelope = signed(&wanted);
    assert_eq!(host.refused(&envelope), Code::ForbiddenPath);
    assert!(host.inbox.floor().is_none(), "and its number is not taken");
    let layout = Layout::new(host.at.path());
    fs::write(layout.policy(), "allow_paths = ['/etc/cron.d/x']").unwrap();
    assert!(matches!(host.receive(&envelope), Received::Accepted(_)));
}

#[test]
fn policy_that_cannot_be_read_refuses_at_once_and_says_each_reason_once() {
    let mut host = fresh();
    let envelope = signed(&declaration(1, 1));
    let layout = Layout::new(host.at.path());
    fs::write(layout.policy(), "allow_binds = [").unwrap();
    assert_eq!(host.refused(&envelope), Code::Policy);
    assert_eq!(host.refused(&envelope), Code::Policy);
    fs::write(layout.policy(), "allow_bind = []").unwrap();
    assert_eq!(host.refused(&envelope), Code::Policy);
    let refused = |body: Body| {
        let Body::DeclarationRefused(refused) = body else { return None };
        Some((refused.code, refused.fields["error"].clone()))
    };
    let told: Vec<_> = host.bodies().into_iter().filter_map(refused).collect();
    assert_eq!(told.len(), 2, "one for each reason: {told:?}");
    assert!(told.iter().all(|(code, _)| code == "policy") && told[1].1.contains("unknown field"), "{told:?}");
    fs::remove_file(layout.policy()).unwrap();
    assert!(matches!(host.receive(&envelope), Received::Accepted(_)), "and is taken up once it can be");
}

#[test]
fn every_flipped_bit_is_refused() {
    let envelope = signed(&declaration(1, 1));
    for bit in 0..envelope.len() * 8 {
        let mut bytes = envelope.to_vec();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let verified = verify(&bytes.into(), &keyring(1), &testing::membership(), 0);
        assert!(verified.is_err(), "bit {bit}");
    }
}
