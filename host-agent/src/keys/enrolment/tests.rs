use replicator_protocol::enrolment::{TokenSecret, introduced};

use super::*;
use crate::testing;

fn all(_socket: &str) -> Abilities {
    Abilities::new("/", "".into())
}

const TOML: &str = "[broker]\nurls = ['nats://127.0.0.1:4222']\ninsecure_loopback = true\n";

fn token(id: u8) -> Token {
    let me = testing::membership();
    Token { id: [id; 16], secret: TokenSecret::new([2; 32]), fleet: me.fleet, host: me.host }
}

fn bundle(id: u8) -> EnrolBundle {
    EnrolBundle::new(&token(id), &[testing::keyring_document(1, 1, testing::root_key())], TOML.into())
}

fn enrolled(layout: &Layout, id: u8, again: bool) -> Result<Membership, EnrolError> {
    let (mut host, introduction) = Enrolment::begin(layout, &bundle(id), all, (0, again))?;
    let key = testing::enrol_key();
    let challenged = introduced(&introduction, &token(id))?.challenge([5; 32], &key)?;
    let answer = host.answer(&challenged.envelope)?;
    let answered = challenged.answered(&answer)?;
    let (_, certificate) = answered.certify(&testing::membership().uid, 1, &key);
    host.finish(&answered.grant(certificate, "jwt".into(), &key))
}

#[test]
fn enrolled_host_knows_who_it_is_and_whom_it_believes() {
    let at = tempfile::tempdir().unwrap();
    let layout = Layout::new(at.path());
    let membership = enrolled(&layout, 1, false).unwrap();
    assert_eq!(membership, testing::membership());
    assert_eq!(Membership::load(&layout.trust()).unwrap(), membership);
    assert_eq!(Trusted::load(&layout.trust(), membership.root().unwrap()).unwrap().keyring().version(), 1);
    assert!(Config::load(&layout).is_ok());
    assert_eq!(std::fs::read(layout.link_credential()).unwrap(), b"jwt");
}

#[test]
fn enrolling_again_needs_the_operators_word() {
    let at = tempfile::tempdir().unwrap();
    let layout = Layout::new(at.path());
    enrolled(&layout, 1, false).unwrap();
    assert!(matches!(enrolled(&layout, 2, false), Err(EnrolError::AlreadyEnrolled(_))));
    assert!(enrolled(&layout, 2, true).is_ok(), "what was refused spent nothing");
}

#[test]
fn what_cannot_be_read_is_made_anew_on_the_operators_word_alone() {
    let at = tempfile::tempdir().unwrap();
    let layout = Layout::new(at.path());
    enrolled(&layout, 1, false).unwrap();
    std::fs::write(layout.trust().join("membership.json"), "{").unwrap();
    std::fs::write(layout.keys().join("sealing"), "short").unwrap();
    assert!(enrolled(&layout, 2, false).is_err());
    assert_eq!(enrolled(&layout, 3, true).unwrap(), testing::membership());
    HostKeys::load(&layout.keys()).unwrap();
    let aside = std::fs::read(layout.keys().join("aside.sealing-1")).unwrap();
    assert_eq!(aside, b"short", "what was there is not lost");
}

#[test]
fn older_bundle_does_not_undo_what_a_newer_keyring_revoked() {
    let at = tempfile::tempdir().unwrap();
    let layout = Layout::new(at.path());
    let membership = enrolled(&layout, 1, false).unwrap();
    let trusted = || Trusted::load(&layout.trust(), membership.root().unwrap()).unwrap();
    trusted().accept_next(&testing::keyring_document(2, 1, testing::root_key())).unwrap();
    enrolled(&layout, 2, true).unwrap();
    assert_eq!(trusted().keyring().version(), 2);
}

#[test]
fn token_that_was_used_here_is_refused_whatever_came_of_it() {
    let at = tempfile::tempdir().unwrap();
    let layout = Layout::new(at.path());
    let code = |result: Result<Membership, EnrolError>| match result {
        Err(EnrolError::Refused(refusal)) => refusal.code,
        other => panic!("{other:?}"),
    };
    Enrolment::begin(&layout, &bundle(1), all, (0, false)).map(drop).unwrap();
    assert_eq!(code(enrolled(&layout, 1, false)), Code::SpentToken, "it was cut off, and is spent");
    enrolled(&layout, 2, false).unwrap();
    assert_eq!(code(enrolled(&layout, 2, true)), Code::SpentToken);
    assert!(enrolled(&layout, 3, true).is_ok(), "the control: with a new token it is enrolled again");
}

#[test]
fn grant_by_a_stranger_makes_no_member() {
    let at = tempfile::tempdir().unwrap();
    let layout = Layout::new(at.path());
    let (mut host, introduction) = Enrolment::begin(&layout, &bundle(1), all, (0, false)).unwrap();
    let key = testing::enrol_key();
    let challenged = introduced(&introduction, &token(1)).unwrap().challenge([5; 32], &key).unwrap();
    let answered = {
        let answer = host.answer(&challenged.envelope).unwrap();
        challenged.answered(&answer).unwrap()
    };
    let (_, certificate) = answered.certify(&testing::membership().uid, 1, &key);
    let forged = answered.grant(certificate, "jwt".into(), &testing::declare_key());
    assert!(matches!(host.finish(&forged), Err(EnrolError::Refused(Refusal { code: Code::UntrustedKey, .. }))));
    assert!(matches!(Membership::load(&layout.trust()), Err(MembershipError::NotEnrolled(_))));
}
