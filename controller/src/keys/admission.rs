//! The controller's side of an enrolment: one method for each message, in the one order there is.
//!
//! Open, introduced, challenged, answered, granted. Each state takes the one before it by value, so that no message
//! can be answered twice. That a token admits one host, once, is a matter of the fleet's log: it is issued there and
//! spent there, by an append that only one of all who try can make. Its secret lives in memory only.

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
use crate::state::event::Hash;
use crate::state::fleet::{TOKEN_LIFE, TokenId};
use crate::state::{FleetEvent, FleetState, Log, LogError};

/// Times a lost race for the fleet's log is run again before giving up.
const ATTEMPTS: u32 = 20;

/// An enrolment did not come to its end; the host has no certificate from it.
#[derive(Debug, thiserror::Error)]
pub enum AdmissionError {
    /// The host's message does not belong here.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// A key could not be had.
    #[error(transparent)]
    Keys(#[from] KeysError),
    /// The token could not be issued or spent.
    #[error(transparent)]
    Log(#[from] LogError),
}

impl AdmissionError {
    /// One line that names the next action.
    pub fn hint(&self) -> String {
        match self {
            Self::Refused(refusal) => refusal.code.hint().into(),
            Self::Keys(error) => error.hint(),
            Self::Log(error) => error.hint(),
        }
    }
}

/// A token that nobody has used yet.
pub struct Admission {
    folder: FleetFolder,
    log: Log<FleetState>,
    uid: HostUid,
    token: Token,
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
    /// Issues a token for `host`, which will be `uid`, at `now` (milliseconds since the Unix epoch), and makes the
    /// bundle the host is handed with it. The token ends after an hour; `log` has it when this returns.
    ///
    /// # Errors
    ///
    /// [`AdmissionError`], but for [`AdmissionError::Refused`].
    pub async fn open(
        folder: &FleetFolder,
        log: Log<FleetState>,
        (host, uid): (&HostId, &HostUid),
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
        let issued = FleetEvent::TokenIssued {
            id: TokenId(token.id),
            secret: Hash(token.secret.hash()),
            host: host.clone(),
            uid: uid.clone(),
            ends: now.saturating_add(TOKEN_LIFE),
        };
        log.append_newest(ATTEMPTS, now, |_| Ok::<_, LogError>(Some(issued.clone()))).await?;
        Ok((Self { folder: folder.clone(), log, uid: uid.clone(), token, key }, bundle))
    }

    /// Reads the host's introduction, spends the token, and challenges the host.
    ///
    /// # Errors
    ///
    /// [`AdmissionError::Refused`]: with [`Code::SpentToken`] where anybody spent it before, in this process or
    /// another; with [`Code::ExpiredToken`] after its hour. [`AdmissionError::Log`].
    pub async fn introduced(self, introduction: &Bytes, now: u64) -> Result<Challenged, AdmissionError> {
        // A stranger who knows no secret spends nobody's token.
        let introduced = enrolment::introduced(introduction, &self.token)?;
        let spent = |state: &FleetState| -> Result<_, AdmissionError> {
            usable(state, &self.token, &self.uid, now)?;
            Ok(Some(FleetEvent::TokenSpent { id: TokenId(self.token.id) }))
        };
        self.log.append_newest(ATTEMPTS, now, spent).await?;
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

/// Whether `token` may be used for `uid` at `now`, as the fleet's log has it.
fn usable(state: &FleetState, token: &Token, uid: &HostUid, now: u64) -> Result<(), Refusal> {
    let of_another = |field: &str| Refusal::new(Code::InvalidEnrolment).with("field", field);
    let issued = state.tokens.get(&TokenId(token.id)).ok_or_else(|| of_another("token id"))?;
    if issued.secret != token.secret.hash() || (&issued.host.0, &issued.host.1) != (&token.host, uid) {
        return Err(of_another("token"));
    }
    if issued.spent {
        return Err(Refusal::new(Code::SpentToken).with("token", TokenId(token.id)));
    }
    if now > issued.ends {
        return Err(Refusal::new(Code::ExpiredToken).with("got", now).with("have", issued.ends));
    }
    Ok(())
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
