//! What a host is handed to introduce itself with.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::invalid;
use crate::ids::{Digest, FleetName, HostId};
use crate::keyring::Keyring;
use crate::refusal::Refusal;

/// Largest frame of the exchange over stdin and stdout, in bytes: a bundle holds every keyring of the fleet.
pub const FRAME_MAX: usize = 4 * 1024 * 1024;

/// The token's secret: 32 random bytes. No `Debug`; it is serialized once, into the [`EnrolBundle`].
#[derive(Clone)]
pub struct TokenSecret(Zeroizing<[u8; 32]>);

impl TokenSecret {
    /// Takes the bytes over.
    #[must_use]
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    pub(super) fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// SHA-256 of the secret: all a controller stores of it.
    #[must_use]
    pub fn hash(&self) -> Digest {
        Digest::of(&self.0[..])
    }
}

impl Serialize for TokenSecret {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&Zeroizing::new(hex::encode(&self.0[..])))
    }
}

impl<'de> Deserialize<'de> for TokenSecret {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Zeroizing::new(String::deserialize(deserializer)?);
        let mut bytes = Zeroizing::new([0; 32]);
        // The text is not repeated in the error: it may be most of a secret.
        hex::decode_to_slice(&*text, &mut bytes[..])
            .map_err(|_| serde::de::Error::custom("a token secret is 64 hex digits"))?;
        Ok(Self(bytes))
    }
}

/// What admits one host, once.
#[derive(Clone)]
pub struct Token {
    /// 128 random bits; public.
    pub id: [u8; 16],
    /// Keys the proofs.
    pub secret: TokenSecret,
    /// The fleet it is for.
    pub fleet: FleetName,
    /// The host it is for.
    pub host: HostId,
}

/// What a host is handed before it introduces itself: over SSH, or on this machine over its stdin.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnrolBundle {
    /// The fleet.
    pub fleet: FleetName,
    /// The host's name for people.
    pub host: HostId,
    /// The token's id, 32 hex digits.
    pub token_id: String,
    /// The token's secret, 64 hex digits.
    pub token_secret: TokenSecret,
    /// SHA-256 of the root document, 64 hex digits: pinned from now on.
    pub root: String,
    /// Envelopes of every keyring in hex, from version 1, one by one.
    pub keyrings: Vec<String>,
    /// The host's `agent.toml`.
    pub agent_toml: String,
}

impl EnrolBundle {
    /// Puts `token` and the fleet's `keyrings`, from version 1, into a bundle.
    #[must_use]
    pub fn new(token: &Token, keyrings: &[Bytes], agent_toml: String) -> Self {
        let root = keyrings.first().map(|root| Digest::of(root).to_string()).unwrap_or_default();
        Self {
            fleet: token.fleet.clone(),
            host: token.host.clone(),
            token_id: hex::encode(token.id),
            token_secret: token.secret.clone(),
            root,
            keyrings: keyrings.iter().map(hex::encode).collect(),
            agent_toml,
        }
    }

    /// The token.
    ///
    /// # Errors
    ///
    /// [`crate::refusal::Code::InvalidEnrolment`] where its id is none.
    pub fn token(&self) -> Result<Token, Refusal> {
        let mut id = [0; 16];
        hex::decode_to_slice(&self.token_id, &mut id).map_err(|_| invalid("token id"))?;
        Ok(Token { id, secret: self.token_secret.clone(), fleet: self.fleet.clone(), host: self.host.clone() })
    }

    /// The digest of the root document the token names.
    ///
    /// # Errors
    ///
    /// [`crate::refusal::Code::InvalidEnrolment`] where it is none.
    pub fn root(&self) -> Result<Digest, Refusal> {
        let mut root = [0; 32];
        hex::decode_to_slice(&self.root, &mut root).map_err(|_| invalid("root"))?;
        Ok(Digest(root))
    }

    /// Walks the keyrings from the pinned root, and returns the last with the envelopes in order.
    ///
    /// # Errors
    ///
    /// As [`Keyring::accept_root`] and [`Keyring::accept_next`]; [`crate::refusal::Code::InvalidEnrolment`] where there is none
    /// or it is of another fleet.
    pub fn keyring(&self) -> Result<(Keyring, Vec<Bytes>), Refusal> {
        let decoded = self.keyrings.iter().map(|text| hex::decode(text).map(Bytes::from));
        let envelopes = decoded.collect::<Result<Vec<_>, _>>().map_err(|_| invalid("keyrings"))?;
        let (first, later) = envelopes.split_first().ok_or_else(|| invalid("keyrings"))?;
        let root = Keyring::accept_root(first.clone(), self.root()?)?;
        let keyring = later.iter().try_fold(root, |keyring, next| keyring.accept_next(next))?;
        if *keyring.fleet() != self.fleet {
            return Err(invalid("fleet"));
        }
        Ok((keyring, envelopes))
    }
}
