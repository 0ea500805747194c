use std::time::Duration;

use bytes::Bytes;
use ed25519_dalek::SigningKey;
use replicator_protocol::envelope::sign;
use replicator_protocol::ids::ResourceId;
use replicator_protocol::wire::declaration::{Directory, Network, resource};
use replicator_protocol::wire::enrolment::HostCertificate;
use replicator_protocol::wire::event::Heartbeat;

use super::*;
use crate::home::Home;
use crate::keys::admission::new_uid;
use crate::keys::broker::{Transport, Wanted, init};
use crate::keys::signing::{self, Signer};

const NOW: u64 = 1_800_000_000_000;

/// A fleet with one host, which is `uid` and signs with `identity`, and the collector's store of this controller.
struct Heard {
    at: tempfile::TempDir,
    folder: FleetFolder,
    uid: HostUid,
    identity: SigningKey,
}

impl Heard {
    fn new() -> Self {
        let at = tempfile::tempdir().unwrap();
        let (fleet, listen) = ("lab".parse().unwrap(), "127.0.0.1:4222".parse().unwrap());
        let wanted = Wanted { fleet, listen, transport: Transport::InsecureLoopback };
        let home = Home::at(at.path().join("home")).unwrap();
        let folder = init(&home, &wanted, Duration::from_millis(NOW)).unwrap();
        let (uid, identity) = (new_uid().unwrap(), SigningKey::from_bytes(&[1; 32]));
        let certificate = HostCertificate {
            fleet: "lab".into(),
            host: "web-1".into(),
            uid: uid.to_string(),
            identity_key: Bytes::copy_from_slice(identity.verifying_key().as_bytes()),
            issued_at: NOW,
            ..HostCertificate::default()
        };
        let signed = sign(&certificate, &[&signing::load(&folder, Signer::Enrol).unwrap()]);
        certificates::keep(&folder, &uid, &signed).unwrap();
        Self { at, folder, uid, identity }
    }

    fn store(&self) -> std::path::PathBuf {
        self.at.path().join("events.db")
    }

    /// Has the collector keep a heartbeat with these kinds, signed so.
    fn beat(&self, kinds: &[&str], key: &SigningKey) {
        let kinds = kinds.iter().map(ToString::to_string).collect();
        let beat = Heartbeat { host: self.uid.to_string(), kinds, ..Heartbeat::default() };
        Store::open(&self.store()).unwrap().keep_heartbeat(&self.uid, &sign(&beat, &[key]), NOW).unwrap();
    }

    fn heard(&self, now: u64) -> Option<Abilities> {
        Abilities::heard(&self.folder, &Store::read_only(&self.store()).unwrap(), &self.uid, now)
    }
}

fn resources() -> Vec<Resource> {
    let folder = resource::Kind::Directory(Directory { path: "/x".into(), ..Directory::default() });
    let network = |name: &str| resource::Kind::Network(Network { name: name.into() });
    let all = [("base.folder", folder), ("base.lan", network("lan")), ("base.wan", network("wan"))];
    all.map(|(id, body)| Resource { id: ResourceId::parse(id).unwrap(), confirms_link: false, body }).to_vec()
}

#[test]
fn what_a_host_said_that_it_cannot_apply_is_not_declared_to_it() {
    let heard = Heard::new();
    let host = HostId::parse("web-1").unwrap();
    heard.beat(&["directory", "file"], &heard.identity);
    let refused = heard.heard(NOW).unwrap().demand(&host, &resources()).unwrap_err();
    assert_eq!(refused.to_string(), "`web-1` cannot apply the kinds `network`, such as `base.lan`");
    heard.beat(&["directory", "file", "network"], &heard.identity);
    heard.heard(NOW).unwrap().demand(&host, &resources()).unwrap();
}

#[test]
fn what_was_said_long_ago_or_by_another_or_never_hinders_nothing() {
    let heard = Heard::new();
    drop(Store::open(&heard.store()).unwrap());
    assert_eq!(heard.heard(NOW), None, "nothing was said");
    heard.beat(&[], &heard.identity);
    assert!(heard.heard(NOW + SILENT_AFTER - 1).is_some(), "the control");
    assert_eq!(heard.heard(NOW + SILENT_AFTER), None);
    heard.beat(&[], &SigningKey::from_bytes(&[2; 32]));
    assert_eq!(heard.heard(NOW), None, "signed by somebody else");
}
