//! Signed envelopes: DSSE v1 with Ed25519.
//!
//! Bytes come in as [`Unverified`]; only [`verify`] makes them [`Verified`], and only a verified value can be
//! applied. The order is fixed: size, envelope, signatures, type, body. Nothing of the body is parsed before
//! its signature holds. Source: github.com/secure-systems-lab/dsse, `protocol.md` and `envelope.md`; RFC 8032.

use std::collections::BTreeSet;
use std::ops::Deref;

use bytes::Bytes;
use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use prost::Message as _;

use crate::ids::{Digest, KeyId};
use crate::refusal::{Code, Refusal};
use crate::strict;
use crate::wire::{declaration, enrolment, envelope as wire, event, keyring};

/// Largest envelope, in bytes: half of the broker's default message limit.
pub const ENVELOPE_MAX: usize = 512 * 1024;
/// Most signatures of one envelope: each costs a verification per trusted key.
pub const SIGNATURES_MAX: usize = 16;

/// What a key may sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// The keyring.
    Root,
    /// Declarations.
    Declare,
    /// Receipts.
    Collect,
    /// Grants and challenges of enrolment, and host certificates.
    Enrol,
    /// What one host says: events, heartbeats, enrolment requests.
    Host,
}

/// A message that travels signed: one type name for each meaning, and the role that may say it.
pub trait Payload: prost::Message + Default {
    /// The DSSE payload type.
    const TYPE: &'static str;
    /// The role whose key must have signed.
    const ROLE: Role;
}

macro_rules! payloads {
    ($($message:ty, $name:literal, $role:ident;)*) => {
        $(impl Payload for $message {
            const TYPE: &'static str = concat!("application/vnd.replicator.", $name, ".v1+protobuf");
            const ROLE: Role = Role::$role;
        })*
    };
}

payloads! {
    declaration::Declaration, "declaration", Declare;
    event::EventBatch, "event-batch", Host;
    event::Receipt, "receipt", Collect;
    event::Heartbeat, "heartbeat", Host;
    keyring::Keyring, "keyring", Root;
    enrolment::EnrolRequest, "enrol-request", Host;
    enrolment::EnrolChallenge, "enrol-challenge", Enrol;
    enrolment::EnrolGrant, "enrol-grant", Enrol;
    enrolment::HostCertificate, "host-certificate", Enrol;
}

/// Who is believed.
pub trait Trust {
    /// The keys that are trusted for `role` now: neither expired nor revoked.
    fn keys(&self, role: Role) -> Vec<VerifyingKey>;

    /// How many distinct keys must have signed.
    fn threshold(&self, _role: Role) -> usize {
        1
    }
}

/// Bytes nobody has vouched for yet.
#[derive(Debug, Clone)]
pub struct Unverified(Bytes);

impl Unverified {
    /// Takes bytes as they came.
    #[must_use]
    pub fn new(bytes: Bytes) -> Self {
        Self(bytes)
    }
}

/// A body whose signature, type and form hold. Only [`verify`] makes one.
#[derive(Debug, Clone)]
#[must_use]
pub struct Verified<T> {
    body: T,
    payload: Bytes,
    envelope: Bytes,
    signers: BTreeSet<KeyId>,
}

impl<T> Verified<T> {
    /// SHA-256 of the signed payload, as received.
    #[must_use]
    pub fn payload_hash(&self) -> Digest {
        Digest::of(&self.payload)
    }

    /// SHA-256 of the whole envelope, as received.
    #[must_use]
    pub fn envelope_hash(&self) -> Digest {
        Digest::of(&self.envelope)
    }

    /// The distinct trusted keys whose signatures hold.
    #[must_use]
    pub fn signers(&self) -> &BTreeSet<KeyId> {
        &self.signers
    }
}

impl<T> Deref for Verified<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.body
    }
}

/// The id of `key`.
#[must_use]
pub fn key_id(key: &VerifyingKey) -> KeyId {
    KeyId::of(key.as_bytes())
}

/// DSSE's pre-authentication encoding: what is signed in place of the bare payload.
fn pre_authentication(payload_type: &str, payload: &[u8]) -> Vec<u8> {
    let mut out = format!("DSSEv1 {} {payload_type} {} ", payload_type.len(), payload.len()).into_bytes();
    out.extend_from_slice(payload);
    out
}

/// Signs `message` with each of `keys` and returns the envelope's bytes.
#[must_use]
pub fn sign<T: Payload>(message: &T, keys: &[&SigningKey]) -> Bytes {
    let payload = message.encode_to_vec();
    let signed = pre_authentication(T::TYPE, &payload);
    let signatures = keys
        .iter()
        .map(|key| wire::Signature {
            sig: Bytes::copy_from_slice(&key.sign(&signed).to_bytes()),
            keyid: key_id(&key.verifying_key()).to_string(),
        })
        .collect();
    wire::Envelope { payload: payload.into(), payload_type: T::TYPE.into(), signatures }.encode_to_vec().into()
}

/// Verifies `unverified` for a channel that carries `T`s.
///
/// # Errors
///
/// A [`Refusal`]; nothing of the body was looked at unless its signature holds:
/// [`Code::TooLarge`], [`Code::MalformedEnvelope`], [`Code::NotCanonical`], [`Code::TooManySignatures`],
/// [`Code::WrongKeyId`] (a trusted key made a signature that names another), [`Code::UntrustedKey`] (fewer
/// distinct trusted keys than the threshold), [`Code::WrongType`].
pub fn verify<T: Payload>(unverified: &Unverified, trust: &impl Trust) -> Result<Verified<T>, Refusal> {
    let bytes = &unverified.0;
    if bytes.len() > ENVELOPE_MAX {
        return Err(Refusal::new(Code::TooLarge).with("got", bytes.len()).with("have", ENVELOPE_MAX));
    }
    let envelope = wire::Envelope::decode(bytes.clone()).map_err(|_| Refusal::new(Code::MalformedEnvelope))?;
    if envelope.encode_to_vec() != *bytes {
        return Err(Refusal::new(Code::NotCanonical));
    }
    if envelope.signatures.len() > SIGNATURES_MAX {
        let got = envelope.signatures.len();
        return Err(Refusal::new(Code::TooManySignatures).with("got", got).with("have", SIGNATURES_MAX));
    }
    let signed = pre_authentication(&envelope.payload_type, &envelope.payload);
    let signers = accepted_signers(&envelope.signatures, &signed, &trust.keys(T::ROLE))?;
    let threshold = trust.threshold(T::ROLE).max(1);
    if signers.len() < threshold {
        return Err(Refusal::new(Code::UntrustedKey).with("got", signers.len()).with("have", threshold));
    }
    if envelope.payload_type != T::TYPE {
        return Err(Refusal::new(Code::WrongType).with("expected", T::TYPE));
    }
    let body = strict::decode(&envelope.payload)?;
    Ok(Verified { body, payload: envelope.payload, envelope: bytes.clone(), signers })
}

/// Decodes the payload of an envelope whose signatures nobody has checked.
///
/// Only for a document that names its own signers: what this returns is a claim, to be verified with it.
///
/// # Errors
///
/// [`Code::MalformedEnvelope`] or [`Code::NotCanonical`].
pub(crate) fn unsigned_payload<M: prost::Message + Default>(envelope: &[u8]) -> Result<M, Refusal> {
    if envelope.len() > ENVELOPE_MAX {
        return Err(Refusal::new(Code::TooLarge).with("got", envelope.len()).with("have", ENVELOPE_MAX));
    }
    let envelope = wire::Envelope::decode(envelope).map_err(|_| Refusal::new(Code::MalformedEnvelope))?;
    strict::decode(&envelope.payload)
}

fn accepted_signers(
    signatures: &[wire::Signature],
    signed: &[u8],
    trusted: &[VerifyingKey],
) -> Result<BTreeSet<KeyId>, Refusal> {
    let mut accepted = BTreeSet::new();
    for signature in signatures {
        let Ok(sig) = Signature::from_slice(&signature.sig) else { continue };
        let maker = trusted.iter().filter(|key| !key.is_weak()).find(|key| key.verify_strict(signed, &sig).is_ok());
        let Some(maker) = maker.map(key_id) else { continue };
        if signature.keyid != maker.to_string() {
            return Err(Refusal::new(Code::WrongKeyId));
        }
        accepted.insert(maker);
    }
    Ok(accepted)
}

#[cfg(test)]
mod tests;
