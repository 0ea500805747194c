//! The controller's side of an enrolment: one method for each message, in the one order there is.
//!
//! Open, introduced, challenged, answered, granted. Each state takes the one before it by value, so that a token
//! admits one host once and no message can be answered twice. Over a stream that the controller opened itself
//! the token lives in memory only.

use bytes::Bytes;
use ed25519_dalek::SigningKey;
use replicator_protocol::enrolment::{self, EnrolBundle, Token, TokenSecret};
use replicator_protocol::ids::{HostId, HostUid};
use replicator_protocol::refusal::{Code, Refusal};
use replicator_protocol::wire::enrolment::{Abilities, HostCertificate};

use zeroize::Zeroizing;

use super::signing::{self, Signer};
use super::{Keyrings, KeysError, certificates};
use crate::home::FleetFolder;

/// How long a token may be used, in milliseconds.
const TOKEN_LIFE: u64 = 60 * 60 * 1000;

/// An enrolment did not come to its end; the host has no certificate from it.
#[derive(Debug, thiserror::Error)]
pub enum AdmissionError {
    /// The host's message does not belong here.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// A key could not be had.
    #[error(transparent)]
    Keys(#[from] KeysError),
}

impl AdmissionError {
    /// One line that names the next action.
    pub fn hint(&self) -> String {
        match self {
            Self::Refused(refusal) => refusal.code.hint().into(),
            Self::Keys(error) => error.hint(),
        }
    }
}

/// A token that nobody has used yet.
pub struct Admission {
    folder: FleetFolder,
    uid: HostUid,
    token: Token,
    ends: u64,
    key: SigningKey,
}

/// A token in use: the host is challenged.
pub struct Challenged {
    admission: Admission,
    exchange: enrolment::Challenged,
}

/// A host that has proved all of its keys.
pub struct Answered {
    admission: Admission,
    exchange: enrolment::Answered,
    issued_at: u64,
}

/// What an enrolment leaves behind.
pub struct Granted {
    /// The last message, to be sent.
    pub grant: Bytes,
    /// Who the host is now.
    pub certificate: HostCertificate,
    /// The certificate as signed.
    pub certificate_envelope: Bytes,
}

impl Admission {
    /// Mints a token for `host`, which will be `uid`, at `now` (milliseconds since the Unix epoch), and the
    /// bundle the host is handed with it. The token ends after an hour.
    ///
    /// # Errors
    ///
    /// [`AdmissionError::Keys`].
    pub fn open(
        folder: &FleetFolder,
        host: &HostId,
        uid: &HostUid,
        agent_toml: String,
        now: u64,
    ) -> Result<(Self, EnrolBundle), AdmissionError> {
        let keyrings = Keyrings::load(folder)?;
        let token = Token {
            id: *random::<16>()?,
            secret: TokenSecret::new(*random::<32>()?),
            fleet: keyrings.current.fleet().clone(),
            host: host.clone(),
        };
        let bundle = EnrolBundle::new(&token, &keyrings.envelopes, agent_toml);
        let key = signing::load(folder, Signer::Enrol)?;
        let ends = now.saturating_add(TOKEN_LIFE);
        Ok((Self { folder: folder.clone(), uid: uid.clone(), token, ends, key }, bundle))
    }

    /// Reads the host's introduction and challenges it.
    ///
    /// # Errors
    ///
    /// [`AdmissionError::Refused`]; the token is used up.
    pub fn introduced(self, introduction: &Bytes, now: u64) -> Result<Challenged, AdmissionError> {
        if now > self.ends {
            return Err(Refusal::new(Code::Expired).with("got", now).with("have", self.ends).into());
        }
        let introduced = enrolment::introduced(introduction, &self.token)?;
        let exchange = introduced.challenge(*random::<32>()?, &self.key)?;
        Ok(Challenged { admission: self, exchange })
    }
}

impl Challenged {
    /// The challenge, to be sent.
    pub fn challenge(&self) -> &Bytes {
        &self.exchange.envelope
    }

    /// Reads the host's answer, which proves that it holds its sealing key.
    ///
    /// # Errors
    ///
    /// [`AdmissionError::Refused`]; the token is used up.
    pub fn answered(self, answer: &Bytes, now: u64) -> Result<Answered, AdmissionError> {
        Ok(Answered { admission: self.admission, exchange: self.exchange.answered(answer)?, issued_at: now })
    }
}

impl Answered {
    /// What the host says it is able to do.
    pub fn abilities(&self) -> Option<&Abilities> {
        self.exchange.introduced.introduction.abilities.as_ref()
    }

    /// The host's own key for the broker, `U…`: what its account is made for.
    pub fn nats_key(&self) -> &str {
        &self.exchange.introduced.introduction.nats_key
    }

    /// Signs and keeps the host's certificate, and makes the grant that ends the exchange; `nats_jwt` admits
    /// the host to its account.
    ///
    /// # Errors
    ///
    /// [`AdmissionError::Keys`]; enrol again with a new token.
    pub fn grant(self, nats_jwt: String) -> Result<Granted, AdmissionError> {
        let Admission { folder, uid, key, .. } = self.admission;
        let (certificate, envelope) = self.exchange.certify(&uid, self.issued_at, &key);
        certificates::keep(&folder, &uid, &envelope)?;
        let grant = self.exchange.grant(envelope.clone(), nats_jwt, &key);
        Ok(Granted { grant, certificate, certificate_envelope: envelope })
    }
}

/// A uid for a host: 128 random bits, never used again.
///
/// # Errors
///
/// [`KeysError::NoRandomness`].
pub fn new_uid() -> Result<HostUid, KeysError> {
    let text = hex::encode(&random::<16>()?[..]);
    HostUid::parse(&text).map_err(|_| KeysError::Malformed { path: text.into(), want: "a host uid" })
}

fn random<const N: usize>() -> Result<Zeroizing<[u8; N]>, KeysError> {
    let mut bytes = Zeroizing::new([0; N]);
    getrandom::fill(&mut bytes[..]).map_err(KeysError::NoRandomness)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests;
