use std::time::Duration;

use replicator_protocol::enrolment::{answer, granted, introduce};
use replicator_protocol::sealed_box::SealingSecretKey;
use replicator_protocol::wire::enrolment::Introduction;

use super::*;
use crate::home::Home;
use crate::keys::broker::{Transport, Wanted, init};

const NOW: u64 = 1_800_000_000_000;

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

fn open(fleet: &FleetFolder) -> (Admission, EnrolBundle, HostUid) {
    let uid = new_uid().unwrap();
    let name = HostId::parse("web-1").unwrap();
    let (admission, bundle) = Admission::open(fleet, &name, &uid, String::new(), NOW).unwrap();
    (admission, bundle, uid)
}

#[test]
fn admitted_host_holds_a_certificate_that_is_kept_and_believed() {
    let at = tempfile::tempdir().unwrap();
    let (fleet, host) = (fleet(&at), host());
    let (admission, bundle, uid) = open(&fleet);
    let (token, (keyring, _)) = (bundle.token().unwrap(), bundle.keyring().unwrap());
    let told = about(&host);
    let introduction = introduce(told.clone(), &token, &host.identity);
    let challenged = admission.introduced(&introduction, NOW).unwrap();
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
    certificates::forget(&fleet, &uid).unwrap();
    assert!(certificates::load(&fleet, &uid, &keyring).unwrap().is_none());
}

#[test]
fn token_ends_after_an_hour() {
    let at = tempfile::tempdir().unwrap();
    let (fleet, host) = (fleet(&at), host());
    let (admission, bundle, _) = open(&fleet);
    let introduction = introduce(about(&host), &bundle.token().unwrap(), &host.identity);
    let refused = admission.introduced(&introduction, NOW + TOKEN_LIFE + 1).err().unwrap();
    assert!(matches!(refused, AdmissionError::Refused(refusal) if refusal.code == Code::Expired));
}

#[test]
fn introduction_made_with_another_token_is_refused() {
    let at = tempfile::tempdir().unwrap();
    let (fleet, host) = (fleet(&at), host());
    let ((admission, _, _), (_, other, _)) = (open(&fleet), open(&fleet));
    let introduction = introduce(about(&host), &other.token().unwrap(), &host.identity);
    assert!(matches!(admission.introduced(&introduction, NOW), Err(AdmissionError::Refused(_))));
}
