//! First contact between a host and its controller: what each message proves.
//!
//! Four messages, each naming the one before it: introduction (host), challenge (controller), answer (host),
//! grant (controller). The host proves that it holds the token's secret, its identity key and its sealing key;
//! the controller proves that it holds an enrol key of the fleet whose root document the token names. The
//! token's secret keys a proof and is no part of any message. Random bytes are handed in; nothing here waits,
//! stores or counts tokens.

use bytes::Bytes;
use ed25519_dalek::{SigningKey, VerifyingKey};
use hmac::{Hmac, KeyInit as _, Mac as _};
use prost::Message as _;
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::envelope::{Role, Trust, Unverified, Verified, sign, unsigned_payload, verify};
use crate::ids::{Digest, HostUid};
use crate::refusal::{Code, Refusal};
use crate::sealed_box::{SealingPublicKey, SealingSecretKey, push, unwrap, wrap};
use crate::wire::enrolment::{
    Answer, EnrolChallenge, EnrolGrant, EnrolRequest, HostCertificate, Introduction, enrol_request::Step,
};

mod broker;
mod bundle;

pub use broker::Broker;
pub use bundle::{EnrolBundle, FRAME_MAX, Token, TokenSecret};

/// Separates the challenge from every other use of the sealing key.
const CHALLENGE_LABEL: &[u8] = b"replicator enrol challenge v1";
const PROOF_LABEL: &[u8] = b"replicator enrol proof v1";
const RESPONSE_LABEL: &[u8] = b"replicator enrol response v1";

/// One key alone, for a message that brings its own.
struct Own(VerifyingKey);

impl Trust for Own {
    fn keys(&self, role: Role) -> Vec<VerifyingKey> {
        match role {
            Role::Host => vec![self.0],
            Role::Root | Role::Declare | Role::Collect | Role::Enrol => Vec::new(),
        }
    }
}

// The host's side.

/// Signs `introduction` with its identity key, with the proof that the host holds the token's secret.
#[must_use]
pub fn introduce(mut introduction: Introduction, token: &Token, identity: &SigningKey) -> Bytes {
    introduction.token_id = Bytes::copy_from_slice(&token.id);
    introduction.fleet = token.fleet.to_string();
    introduction.host = token.host.to_string();
    introduction.proof = Bytes::copy_from_slice(&proof(token, &introduction).finalize().into_bytes());
    sign(&EnrolRequest { step: Some(Step::Introduction(introduction)) }, &[identity])
}

/// Opens the controller's challenge to `introduction` and signs the answer to it.
///
/// # Errors
///
/// As [`verify`] under `trust`; [`Code::InvalidEnrolment`] where it challenges another
/// introduction; [`Code::CannotOpen`].
pub fn answer(
    challenge: &Bytes,
    introduction: &Bytes,
    (identity, sealing): (&SigningKey, &SealingSecretKey),
    trust: &impl Trust,
) -> Result<Bytes, Refusal> {
    let verified: Verified<EnrolChallenge> = verify(&Unverified::new(challenge.clone()), trust)?;
    let introduced = Digest::of(introduction);
    if verified.introduction != introduced.0[..] {
        return Err(invalid("introduction"));
    }
    let aad = challenge_aad(&verified.token_id, &introduced);
    let secret = unwrap(sealing, CHALLENGE_LABEL, &aad, (&verified.encapsulated_key, &verified.ciphertext))?;
    let response = response(&secret, &introduced, &Digest::of(challenge)).finalize().into_bytes();
    let answer = Answer {
        token_id: verified.token_id.clone(),
        challenge: Bytes::copy_from_slice(&Digest::of(challenge).0),
        response: Bytes::copy_from_slice(&response),
    };
    Ok(sign(&EnrolRequest { step: Some(Step::Answer(answer)) }, &[identity]))
}

/// What a host takes home.
pub struct Granted {
    /// Who this host is now.
    pub certificate: HostCertificate,
    /// The certificate as signed.
    pub certificate_envelope: Bytes,
    /// Admits the host's own broker key; no secret.
    pub nats_jwt: String,
    /// The certificate's uid, checked.
    pub uid: HostUid,
}

/// Reads the grant that follows `answer`, whose certificate must carry this host's names and keys.
///
/// # Errors
///
/// As [`verify`]; [`Code::InvalidEnrolment`] naming what does not belong to this exchange.
pub fn granted(
    grant: &Bytes,
    answer: &Bytes,
    introduction: &Introduction,
    token: &Token,
    trust: &impl Trust,
) -> Result<Granted, Refusal> {
    let verified: Verified<EnrolGrant> = verify(&Unverified::new(grant.clone()), trust)?;
    if verified.answer != Digest::of(answer).0[..] || verified.token_id != token.id[..] {
        return Err(invalid("answer"));
    }
    let certificate: Verified<HostCertificate> = verify(&Unverified::new(verified.certificate.clone()), trust)?;
    let names = (certificate.fleet.as_str(), certificate.host.as_str());
    if names != (token.fleet.as_str(), token.host.as_str()) {
        return Err(invalid("names"));
    }
    let keys = (&certificate.identity_key, &certificate.sealing_key, &certificate.overlay_key, &certificate.nats_key);
    let own =
        (&introduction.identity_key, &introduction.sealing_key, &introduction.overlay_key, &introduction.nats_key);
    if keys != own {
        return Err(invalid("keys"));
    }
    Ok(Granted {
        uid: HostUid::parse(&certificate.uid).map_err(|_| invalid("uid"))?,
        certificate: (*certificate).clone(),
        certificate_envelope: verified.certificate.clone(),
        nats_jwt: verified.nats_jwt.clone(),
    })
}

// The controller's side.

/// A host that has introduced itself, and proved the token and its identity key.
pub struct Introduced {
    /// What it says of itself.
    pub introduction: Introduction,
    /// Verifies what it says from now on.
    pub identity: VerifyingKey,
    /// What its secrets are sealed to.
    pub sealing: SealingPublicKey,
    envelope: Digest,
}

/// The token id an introduction claims, before anything of it is believed: to look the token up by.
///
/// # Errors
///
/// [`Code::MalformedEnvelope`], [`Code::NotCanonical`] or [`Code::InvalidEnrolment`].
pub fn claimed_token(introduction: &Bytes) -> Result<[u8; 16], Refusal> {
    <[u8; 16]>::try_from(&claimed_introduction(introduction)?.token_id[..]).map_err(|_| invalid("token id"))
}

/// Reads an introduction made with `token`.
///
/// # Errors
///
/// [`Code::InvalidEnrolment`] naming the field, [`Code::UntrustedKey`] where the identity key it names did not
/// sign it, [`Code::WrongProof`], [`Code::WeakKey`].
pub fn introduced(envelope: &Bytes, token: &Token) -> Result<Introduced, Refusal> {
    let claimed = claimed_introduction(envelope)?;
    let bytes = <[u8; 32]>::try_from(&claimed.identity_key[..]).map_err(|_| invalid("identity key"))?;
    let identity = VerifyingKey::from_bytes(&bytes).map_err(|_| Refusal::new(Code::WeakKey))?;
    if identity.is_weak() {
        return Err(Refusal::new(Code::WeakKey));
    }
    let _signed: Verified<EnrolRequest> = verify(&Unverified::new(envelope.clone()), &Own(identity))?;
    if claimed.token_id != token.id[..] {
        return Err(invalid("token id"));
    }
    if (claimed.fleet.as_str(), claimed.host.as_str()) != (token.fleet.as_str(), token.host.as_str()) {
        return Err(invalid("names"));
    }
    if claimed.nonce.len() != 32 || claimed.overlay_key.len() != 32 {
        return Err(invalid("nonce or overlay key"));
    }
    proof(token, &claimed).verify_slice(&claimed.proof).map_err(|_| Refusal::new(Code::WrongProof))?;
    let sealing = SealingPublicKey::from_bytes(&claimed.sealing_key)?;
    Ok(Introduced { introduction: claimed, identity, sealing, envelope: Digest::of(envelope) })
}

/// A challenge sent, and what its answer is checked against.
pub struct Challenged {
    /// The signed challenge, to be sent.
    pub envelope: Bytes,
    introduced: Introduced,
    secret: Zeroizing<[u8; 32]>,
}

impl Introduced {
    /// Seals 32 random bytes to the host's sealing key, signed by an enrol key.
    ///
    /// # Errors
    ///
    /// [`Code::WeakKey`].
    pub fn challenge(self, random: [u8; 32], key: &SigningKey) -> Result<Challenged, Refusal> {
        let secret = Zeroizing::new(random);
        let token_id = self.introduction.token_id.clone();
        let aad = challenge_aad(&token_id, &self.envelope);
        let (encapsulated, ciphertext) = wrap(&self.sealing, CHALLENGE_LABEL, &aad, &secret[..])?;
        let challenge = EnrolChallenge {
            token_id,
            introduction: Bytes::copy_from_slice(&self.envelope.0),
            encapsulated_key: Bytes::copy_from_slice(&encapsulated),
            ciphertext: ciphertext.into(),
        };
        Ok(Challenged { envelope: sign(&challenge, &[key]), introduced: self, secret })
    }
}

/// A host that has answered: it holds its sealing key too.
pub struct Answered {
    /// What it said of itself.
    pub introduced: Introduced,
    answer: Digest,
}

impl Challenged {
    /// Checks the answer.
    ///
    /// # Errors
    ///
    /// As [`verify`] under the identity key introduced; [`Code::InvalidEnrolment`], [`Code::WrongProof`].
    pub fn answered(self, envelope: &Bytes) -> Result<Answered, Refusal> {
        let own = Own(self.introduced.identity);
        let request: Verified<EnrolRequest> = verify(&Unverified::new(envelope.clone()), &own)?;
        let Some(Step::Answer(answer)) = &request.step else { return Err(invalid("step")) };
        let challenge = Digest::of(&self.envelope);
        if answer.token_id != self.introduced.introduction.token_id || answer.challenge != challenge.0[..] {
            return Err(invalid("challenge"));
        }
        response(&self.secret[..], &self.introduced.envelope, &challenge)
            .verify_slice(&answer.response)
            .map_err(|_| Refusal::new(Code::WrongProof))?;
        Ok(Answered { introduced: self.introduced, answer: Digest::of(envelope) })
    }
}

impl Answered {
    /// The certificate of the host as `uid`, signed by an enrol key; `issued_at` in milliseconds since 1970.
    #[must_use]
    pub fn certify(&self, uid: &HostUid, issued_at: u64, key: &SigningKey) -> (HostCertificate, Bytes) {
        let told = &self.introduced.introduction;
        let certificate = HostCertificate {
            fleet: told.fleet.clone(),
            host: told.host.clone(),
            uid: uid.to_string(),
            identity_key: told.identity_key.clone(),
            sealing_key: told.sealing_key.clone(),
            overlay_key: told.overlay_key.clone(),
            nats_key: told.nats_key.clone(),
            issued_at,
        };
        let envelope = sign(&certificate, &[key]);
        (certificate, envelope)
    }

    /// The grant that ends the exchange, signed by an enrol key.
    #[must_use]
    pub fn grant(&self, certificate: Bytes, nats_jwt: String, key: &SigningKey) -> Bytes {
        let grant = EnrolGrant {
            token_id: self.introduced.introduction.token_id.clone(),
            answer: Bytes::copy_from_slice(&self.answer.0),
            certificate,
            nats_jwt,
        };
        sign(&grant, &[key])
    }
}

fn invalid(what: &'static str) -> Refusal {
    Refusal::new(Code::InvalidEnrolment).with("field", what)
}

fn claimed_introduction(envelope: &Bytes) -> Result<Introduction, Refusal> {
    let request: EnrolRequest = unsigned_payload(envelope)?;
    match request.step {
        Some(Step::Introduction(introduction)) => Ok(introduction),
        Some(Step::Answer(_)) | None => Err(invalid("step")),
    }
}

fn keyed(key: &[u8; 32], label: &[u8], parts: &[&[u8]]) -> Hmac<Sha256> {
    // A key of one block, filled with zeros: the same MAC as the shorter key (RFC 2104), with no error to handle.
    let mut block = Zeroizing::new([0_u8; 64]);
    block[..32].copy_from_slice(key);
    let mut mac = Hmac::<Sha256>::new((&*block).into());
    let mut message = Vec::new();
    push(&mut message, label);
    parts.iter().for_each(|part| push(&mut message, part));
    mac.update(&message);
    mac
}

fn proof(token: &Token, introduction: &Introduction) -> Hmac<Sha256> {
    let unproved = Introduction { proof: Bytes::new(), ..introduction.clone() };
    keyed(token.secret.bytes(), PROOF_LABEL, &[&unproved.encode_to_vec()])
}

fn response(secret: &[u8], introduction: &Digest, challenge: &Digest) -> Hmac<Sha256> {
    // Hashed first, so that a challenge of any length is a key of one length.
    keyed(&Digest::of(secret).0, RESPONSE_LABEL, &[&introduction.0, &challenge.0])
}

fn challenge_aad(token_id: &[u8], introduction: &Digest) -> Vec<u8> {
    let mut aad = Vec::new();
    push(&mut aad, token_id);
    push(&mut aad, &introduction.0);
    aad
}

#[cfg(test)]
mod tests;
