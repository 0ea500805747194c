use std::time::Duration;

use replicator_protocol::enrolment::{TokenSecret, answer, granted, introduce};
use replicator_protocol::sealed_box::SealingSecretKey;
use replicator_protocol::wire::enrolment::Introduction;

use super::*;
use crate::home::Home;
use crate::keys::broker::{Transport, Wanted, init};
use crate::state::App;

const NOW: u64 = 1_800_000_000_000;

/// A handle of its own on the fleet's log, as another process has.
fn log(at: &tempfile::TempDir) -> Log<FleetState> {
    let (home, app) = (Home::at(at.path().join("home")).unwrap(), App::parse("lab").unwrap());
    Log::local(&home, &app, &HostId::parse("web-1").unwrap()).unwrap().of_fleet()
}

fn fleet(at: &tempfile::TempDir) -> FleetFolder {
    let wanted = Wanted {
        fleet: replicator_protocol::ids::FleetName::parse("lab").unwrap(),
        listen: "127.0.0.1:4222".parse().unwrap(),
        transport: Transport::InsecureLoopback,
    };
    let home = Home::at(at.path().join("home")).unwrap();
    init(&home, &wanted, Duration::from_millis(NOW)).unwrap()
}

struct Host {
    identity: SigningKey,
    sealing: SealingSecretKey,
}

fn host() -> Host {
    Host { identity: SigningKey::from_bytes(&[1; 32]), sealing: SealingSecretKey::derive(&[2; 32]) }
}

fn about(host: &Host) -> Introduction {
    Introduction {
        identity_key: Bytes::copy_from_slice(host.identity.verifying_key().as_bytes()),
        sealing_key: Bytes::copy_from_slice(&host.sealing.public().to_bytes()),
        overlay_key: Bytes::from_static(&[9; 32]),
        nats_key: nkeys::KeyPair::new_user().public_key(),
        nonce: Bytes::from_static(&[1; 32]),
        ..Introduction::default()
    }
}

async fn open(at: &tempfile::TempDir, fleet: &FleetFolder) -> (Admission, EnrolBundle, HostUid) {
    let uid = new_uid().unwrap();
    let name = HostId::parse("web-1").unwrap();
    let (admission, bundle) = Admission::open(fleet, log(at), (&name, &uid), String::new(), NOW).await.unwrap();
    (admission, bundle, uid)
}

fn code(refused: Option<AdmissionError>) -> Code {
    match refused {
        Some(AdmissionError::Refused(refusal)) => refusal.code,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn admitted_host_holds_a_certificate_that_is_kept_and_believed() {
    let at = tempfile::tempdir().unwrap();
    let (fleet, host) = (fleet(&at), host());
    let (admission, bundle, uid) = open(&at, &fleet).await;
    let (token, (keyring, _)) = (bundle.token().unwrap(), bundle.keyring().unwrap());
    let told = about(&host);
    let introduction = introduce(told.clone(), &token, &host.identity);
    let challenged = admission.introduced(&introduction, NOW).await.unwrap();
    let own = (&host.identity, &host.sealing);
    let reply = answer(challenged.challenge(), &introduction, own, &keyring.at(NOW)).unwrap();
    let answered = challenged.answered(&reply, NOW).unwrap();
    assert_eq!(answered.nats_key(), told.nats_key);
    let made = answered.grant("jwt".into()).unwrap();
    let taken = granted(&made.grant, &reply, &Introduction { ..told }, &token, &keyring.at(NOW)).ok().unwrap();
    assert_eq!(taken.uid, uid);

    let kept = certificates::load(&fleet, &uid, &keyring).unwrap().unwrap();
    assert_eq!(kept.identity, host.identity.verifying_key());
    assert_eq!(certificates::list(&fleet).unwrap(), std::slice::from_ref(&uid));
    let other = new_uid().unwrap();
    let refused = certificates::believe(made.certificate_envelope, &other, &keyring).unwrap_err();
    assert_eq!(refused.code, Code::WrongHost);
    std::fs::remove_file(fleet.root().join(format!("hosts/{uid}.certificate"))).unwrap();
    assert!(certificates::load(&fleet, &uid, &keyring).unwrap().is_none());
}

#[tokio::test]
async fn token_ends_after_an_hour() {
    let at = tempfile::tempdir().unwrap();
    let (fleet, host) = (fleet(&at), host());
    let (admission, bundle, _) = open(&at, &fleet).await;
    let introduction = introduce(about(&host), &bundle.token().unwrap(), &host.identity);
    let refused = admission.introduced(&introduction, NOW + TOKEN_LIFE + 1).await;
    assert_eq!(code(refused.err()), Code::ExpiredToken);
}

#[tokio::test]
async fn introduction_made_with_another_token_is_refused() {
    let at = tempfile::tempdir().unwrap();
    let (fleet, host) = (fleet(&at), host());
    let ((admission, _, _), (_, other, _)) = (open(&at, &fleet).await, open(&at, &fleet).await);
    let introduction = introduce(about(&host), &other.token().unwrap(), &host.identity);
    assert_eq!(code(admission.introduced(&introduction, NOW).await.err()), Code::InvalidEnrolment);
}

#[tokio::test]
async fn token_is_refused_the_second_time_in_another_process_too() {
    let at = tempfile::tempdir().unwrap();
    let (fleet, host) = (fleet(&at), host());
    let (admission, bundle, uid) = open(&at, &fleet).await;
    let token = || bundle.token().unwrap();
    let elsewhere = || Admission {
        folder: fleet.clone(),
        log: log(&at),
        uid: uid.clone(),
        token: token(),
        key: signing::load(&fleet, Signer::Enrol).unwrap(),
    };
    let introduction = introduce(about(&host), &token(), &host.identity);
    // Who does not know the secret spends nothing.
    let stranger = Token { secret: TokenSecret::new([9; 32]), ..token() };
    let forged = introduce(about(&host), &stranger, &host.identity);
    assert_eq!(code(elsewhere().introduced(&forged, NOW).await.err()), Code::WrongProof);
    let first = admission.introduced(&introduction, NOW).await;
    assert!(first.is_ok(), "the control: it is good once");
    assert_eq!(code(elsewhere().introduced(&introduction, NOW).await.err()), Code::SpentToken);
    // Both at once: one of them.
    let (one, two, three) = {
        let (_, bundle, uid) = open(&at, &fleet).await;
        let at_once = || Admission { uid: uid.clone(), token: bundle.token().unwrap(), ..elsewhere() };
        let introduction = introduce(about(&host), &bundle.token().unwrap(), &host.identity);
        tokio::join!(
            at_once().introduced(&introduction, NOW),
            at_once().introduced(&introduction, NOW),
            at_once().introduced(&introduction, NOW),
        )
    };
    let refused: Vec<_> =
        [one, two, three].into_iter().filter_map(Result::err).map(|error| code(Some(error))).collect();
    assert_eq!(refused, [Code::SpentToken; 2]);
}

#[tokio::test]
async fn no_secret_of_a_token_is_in_the_log() {
    let at = tempfile::tempdir().unwrap();
    let fleet = fleet(&at);
    let (_, bundle, _) = open(&at, &fleet).await;
    let history = log(&at).read().await.unwrap();
    let text = serde_json::to_string(&history.entries).unwrap();
    let bundle = serde_json::to_value(&bundle).unwrap();
    assert!(text.contains(bundle["token_id"].as_str().unwrap()), "the control");
    assert!(!text.contains(bundle["token_secret"].as_str().unwrap()));
    assert!(text.contains(&bundle_hash(&bundle)), "{text}");
}

/// SHA-256 of the secret in a bundle, hex.
fn bundle_hash(bundle: &serde_json::Value) -> String {
    let secret = hex::decode(bundle["token_secret"].as_str().unwrap()).unwrap();
    replicator_protocol::ids::Digest::of(&secret).to_string()
}
