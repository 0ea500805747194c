use super::*;
use crate::ids::{FleetName, HostId};
use crate::keyring::Keyring;
use crate::wire::keyring as wire;

struct Host {
    identity: SigningKey,
    sealing: SealingSecretKey,
}

fn host(seed: u8) -> Host {
    Host { identity: SigningKey::from_bytes(&[seed; 32]), sealing: SealingSecretKey::derive(&[seed; 32]) }
}

fn enrol_key() -> SigningKey {
    SigningKey::from_bytes(&[50; 32])
}

fn token(id: u8) -> Token {
    Token {
        id: [id; 16],
        secret: TokenSecret::new([id; 32]),
        fleet: FleetName::parse("lab").unwrap(),
        host: HostId::parse("web-1").unwrap(),
    }
}

fn public(key: &SigningKey) -> Bytes {
    Bytes::copy_from_slice(key.verifying_key().as_bytes())
}

fn root_document() -> Bytes {
    let root = SigningKey::from_bytes(&[40; 32]);
    let enrol =
        wire::Key { public_key: public(&enrol_key()), role: wire::Role::Enrol.into(), not_after: None, hosts: vec![] };
    let keyring = wire::Keyring {
        fleet: "lab".into(),
        version: 1,
        epoch: 1,
        root: vec![public(&root)],
        threshold: 1,
        keys: vec![enrol],
        revoked: vec![],
    };
    sign(&keyring, &[&root])
}

fn keyring() -> Keyring {
    Keyring::accept_root(root_document(), Digest::of(&root_document())).unwrap()
}

fn about(host: &Host) -> Introduction {
    Introduction {
        identity_key: public(&host.identity),
        sealing_key: Bytes::copy_from_slice(&host.sealing.public().to_bytes()),
        overlay_key: Bytes::from_static(&[9; 32]),
        nats_key: "UHOST".into(),
        nonce: Bytes::from_static(&[1; 32]),
        ..Introduction::default()
    }
}

fn own_keys(host: &Host) -> (&SigningKey, &SealingSecretKey) {
    (&host.identity, &host.sealing)
}

fn code<T>(result: Result<T, Refusal>) -> Code {
    result.err().unwrap().code
}

#[test]
fn host_is_enrolled_in_four_messages() {
    let (host, token, keyring) = (host(1), token(7), keyring());
    let introduction = introduce(about(&host), &token, &host.identity);
    assert_eq!(claimed_token(&introduction).unwrap(), token.id);
    let challenged = introduced(&introduction, &token).unwrap().challenge([3; 32], &enrol_key()).unwrap();
    let answer = answer(&challenged.envelope, &introduction, own_keys(&host), &keyring.at(0)).unwrap();
    let answered = challenged.answered(&answer).unwrap();
    let uid = HostUid::parse(&"a".repeat(32)).unwrap();
    let (_, certificate) = answered.certify(&uid, 5, &enrol_key());
    let grant = answered.grant(certificate, "jwt".into(), &enrol_key());
    let sent = answered.introduced.introduction;
    let granted = granted(&grant, &answer, &sent, &token, &keyring.at(0)).unwrap();
    assert_eq!((granted.uid, granted.nats_jwt.as_str()), (uid, "jwt"));
}

#[test]
fn introduction_without_the_tokens_secret_is_refused() {
    let host = host(1);
    let forged = Token { secret: TokenSecret::new([0; 32]), ..token(7) };
    let introduction = introduce(about(&host), &forged, &host.identity);
    assert_eq!(code(introduced(&introduction, &token(7))), Code::WrongProof);
}

#[test]
fn introduction_is_signed_by_the_key_it_brings() {
    let introduction = introduce(about(&host(1)), &token(7), &host(2).identity);
    assert_eq!(code(introduced(&introduction, &token(7))), Code::UntrustedKey);
}

#[test]
fn token_admits_its_own_host_alone() {
    let host = host(1);
    let other = Token { host: HostId::parse("web-2").unwrap(), ..token(7) };
    let introduction = introduce(about(&host), &other, &host.identity);
    assert_eq!(code(introduced(&introduction, &token(7))), Code::InvalidEnrolment);
    let introduction = introduce(about(&host), &token(8), &host.identity);
    assert_eq!(code(introduced(&introduction, &token(7))), Code::InvalidEnrolment);
}

#[test]
fn transcript_replayed_into_another_session_is_refused() {
    let (host, token, keyring) = (host(1), token(7), keyring());
    let introduction = introduce(about(&host), &token, &host.identity);
    let first = introduced(&introduction, &token).unwrap().challenge([3; 32], &enrol_key()).unwrap();
    let second = introduced(&introduction, &token).unwrap().challenge([4; 32], &enrol_key()).unwrap();
    let old = answer(&first.envelope, &introduction, own_keys(&host), &keyring.at(0)).unwrap();
    assert_eq!(code(second.answered(&old)), Code::InvalidEnrolment);
    assert!(first.answered(&old).is_ok(), "the control");

    let renewed =
        introduce(Introduction { nonce: Bytes::from_static(&[2; 32]), ..about(&host) }, &token, &host.identity);
    let challenge = introduced(&introduction, &token).unwrap().challenge([3; 32], &enrol_key()).unwrap();
    assert_eq!(code(answer(&challenge.envelope, &renewed, own_keys(&host), &keyring.at(0))), Code::InvalidEnrolment);
}

#[test]
fn challenge_opens_with_the_sealing_key_introduced_and_no_other() {
    let (host, token, keyring) = (host(1), token(7), keyring());
    let introduction = introduce(about(&host), &token, &host.identity);
    let challenged = introduced(&introduction, &token).unwrap().challenge([3; 32], &enrol_key()).unwrap();
    let wrong = SealingSecretKey::derive(&[2; 32]);
    let opened = answer(&challenged.envelope, &introduction, (&host.identity, &wrong), &keyring.at(0));
    assert_eq!(code(opened), Code::CannotOpen);
}

#[test]
fn challenge_by_a_stranger_is_refused() {
    let (host, token, keyring) = (host(1), token(7), keyring());
    let introduction = introduce(about(&host), &token, &host.identity);
    let stranger = SigningKey::from_bytes(&[51; 32]);
    let challenged = introduced(&introduction, &token).unwrap().challenge([3; 32], &stranger).unwrap();
    let answered = answer(&challenged.envelope, &introduction, own_keys(&host), &keyring.at(0));
    assert_eq!(code(answered), Code::UntrustedKey);
}

#[test]
fn bundle_pins_the_root_document_it_names() {
    let bundle = EnrolBundle::new(&token(7), &[root_document()], String::new());
    assert_eq!(bundle.keyring().unwrap().0.version(), 1);
    assert_eq!(bundle.token().unwrap().id, [7; 16]);
    let other = EnrolBundle { root: Digest::of(b"other").to_string(), ..bundle.clone() };
    assert_eq!(code(other.keyring()), Code::WrongRoot);
    assert_eq!(code(EnrolBundle { keyrings: vec![], ..bundle }.keyring()), Code::InvalidEnrolment);
}
