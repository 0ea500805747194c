//! The certificates of the fleet's hosts, kept as they were signed and checked whenever they are read.

use std::path::PathBuf;

use bytes::Bytes;
use ed25519_dalek::VerifyingKey;
use replicator_protocol::envelope::{Role, Trust, Unverified, Verified, verify};
use replicator_protocol::ids::HostUid;
use replicator_protocol::keyring::Keyring;
use replicator_protocol::refusal::{Code, Refusal};
use replicator_protocol::wire::enrolment::HostCertificate;
use replicator_protocol::wire::event::Heartbeat;

use super::{KeysError, files};
use crate::home::FleetFolder;
use crate::state;

/// A host's certificate, and the key that verifies what it says.
#[derive(Debug, Clone)]
pub struct Certified {
    /// The certificate.
    pub certificate: Verified<HostCertificate>,
    /// The host's identity key.
    pub identity: VerifyingKey,
}

impl Certified {
    /// The heartbeat in `envelope`, where this host signed it and speaks of itself in it.
    ///
    /// # Errors
    ///
    /// As [`verify`]; [`Code::WrongHost`] where it speaks of another.
    pub fn heartbeat(&self, envelope: Bytes) -> Result<Verified<Heartbeat>, Refusal> {
        let beat: Verified<Heartbeat> = verify(&Unverified::new(envelope), self)?;
        if beat.host == self.certificate.uid {
            Ok(beat)
        } else {
            Err(Refusal::new(Code::WrongHost).with("got", &beat.host).with("have", &self.certificate.uid))
        }
    }
}

impl Trust for Certified {
    fn keys(&self, role: Role) -> Vec<VerifyingKey> {
        match role {
            Role::Host => vec![self.identity],
            Role::Root | Role::Declare | Role::Collect | Role::Enrol => Vec::new(),
        }
    }
}

fn path(folder: &FleetFolder, uid: &HostUid) -> PathBuf {
    folder.root().join("hosts").join(format!("{uid}.certificate"))
}

/// Keeps the signed certificate of `uid`.
///
/// # Errors
///
/// [`KeysError::File`].
pub fn keep(folder: &FleetFolder, uid: &HostUid, envelope: &Bytes) -> Result<(), KeysError> {
    Ok(files::replace(&path(folder, uid), envelope)?)
}

/// Loads the certificate of `uid`, where it has one; it must be signed under `keyring` and carry that uid.
///
/// # Errors
///
/// [`KeysError::File`] or [`KeysError::Refused`].
pub fn load(folder: &FleetFolder, uid: &HostUid, keyring: &Keyring) -> Result<Option<Certified>, KeysError> {
    let Some(envelope) = files::read(&path(folder, uid))? else { return Ok(None) };
    Ok(Some(believe(envelope.into(), uid, keyring)?))
}

/// Checks the certificate `envelope` of `uid`.
///
/// # Errors
///
/// As [`verify`]; [`Code::WrongHost`] where it is another host's, [`Code::WeakKey`].
pub fn believe(envelope: Bytes, uid: &HostUid, keyring: &Keyring) -> Result<Certified, Refusal> {
    let certificate: Verified<HostCertificate> = verify(&Unverified::new(envelope), &keyring.at(state::now()))?;
    if certificate.uid != uid.as_str() || certificate.fleet != keyring.fleet().as_str() {
        return Err(Refusal::new(Code::WrongHost).with("got", &certificate.uid).with("have", uid));
    }
    let weak = || Refusal::new(Code::WeakKey);
    let bytes = <[u8; 32]>::try_from(&certificate.identity_key[..]).map_err(|_| weak())?;
    let identity = VerifyingKey::from_bytes(&bytes).map_err(|_| weak())?;
    Ok(Certified { certificate, identity })
}

/// The hosts with a certificate, sorted.
///
/// # Errors
///
/// [`KeysError::File`].
pub fn list(folder: &FleetFolder) -> Result<Vec<HostUid>, KeysError> {
    let names = files::names(&folder.root().join("hosts"), "certificate")?;
    Ok(names.iter().filter_map(|name| HostUid::parse(name).ok()).collect())
}
