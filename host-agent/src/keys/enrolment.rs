//! First contact, the host's side: makes keys, proves the token, and keeps what is granted.
//!
//! A bundle and two messages come in; two messages go out, and at the end the host is a member of its fleet.
//! Until the grant holds, nothing but fresh keys is on disk.

use std::fs;

use bytes::Bytes;
use replicator_protocol::declaration::LEVEL;
use replicator_protocol::enrolment::{self, EnrolBundle, Token};
use replicator_protocol::keyring::Keyring;
use replicator_protocol::refusal::{Code, Refusal};
use replicator_protocol::wire::enrolment::{self as wire, Introduction};

use super::KeyError;
use super::host_key::{HostKeys, new_seed};
use super::membership::{Membership, MembershipError};
use super::spent;
use super::trusted::Trusted;
use crate::abilities::Abilities;
use crate::config::{Config, ConfigError, Layout};
use crate::durable::{self, FileError};

/// The host certificate, as signed; beside the keys it speaks of.
const CERTIFICATE: &str = "certificate";

/// This host could not be enrolled. What was a member before still is.
#[derive(Debug, thiserror::Error)]
pub enum EnrolError {
    /// It is enrolled already.
    #[error("this host is enrolled in fleet `{}` as `{}` already", .0.fleet, .0.host)]
    AlreadyEnrolled(Box<Membership>),
    /// A message does not hold.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// A key could not be made or read.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// What was granted could not be kept.
    #[error(transparent)]
    File(#[from] FileError),
    /// The membership could not be read or kept.
    #[error(transparent)]
    Membership(#[from] MembershipError),
    /// The settings in the bundle are none.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

/// An exchange under way.
pub struct Enrolment {
    layout: Layout,
    keys: HostKeys,
    token: Token,
    keyring: Keyring,
    keyrings: Vec<Bytes>,
    agent_toml: String,
    introduction: Introduction,
    introduced: Bytes,
    answered: Option<Bytes>,
    now: u64,
}

impl Enrolment {
    /// Begins: spends the token, makes this host's keys and introduces it. Returns the introduction to send.
    ///
    /// `now` is in milliseconds since the Unix epoch; `abilities` says what this machine can apply,
    /// told where its container runtime listens. A host that
    /// is a member already is enrolled again only where the operator says so (`again`); then a membership or a key that
    /// cannot be read is no obstacle either. Keyrings of the same root that this host has and the bundle has not count:
    /// by them the controller is believed or not.
    ///
    /// # Errors
    ///
    /// See [`EnrolError`]; with the code `spent-token` where this host has used the token before.
    pub fn begin(
        layout: &Layout,
        bundle: &EnrolBundle,
        abilities: impl FnOnce(&str) -> Abilities,
        (now, again): (u64, bool),
    ) -> Result<(Self, Bytes), EnrolError> {
        match Membership::load(&layout.trust()) {
            Ok(_) if again => {}
            Ok(membership) => return Err(EnrolError::AlreadyEnrolled(Box::new(membership))),
            Err(MembershipError::NotEnrolled(_)) => {}
            // It says nothing that could be kept.
            Err(MembershipError::Malformed(_)) if again => {}
            Err(error @ (MembershipError::File(_) | MembershipError::Malformed(_))) => return Err(error.into()),
        }
        let config = Config::parse(&bundle.agent_toml, &layout.config())?;
        let (keyring, mut keyrings) = bundle.keyring()?;
        let (keyring, newer) = Trusted::following(&layout.trust(), keyring)?;
        keyrings.extend(newer);
        let token = bundle.token()?;
        layout.make_folders()?;
        let id = hex::encode(token.id);
        if !spent::spend(&layout.trust(), &id)? {
            return Err(Refusal::new(Code::SpentToken).with("token", id).into());
        }
        if again {
            HostKeys::put_malformed_aside(&layout.keys())?;
        }
        let keys = HostKeys::make(&layout.keys())?;
        let draft = Introduction {
            identity_key: Bytes::copy_from_slice(keys.identity().verifying_key().as_bytes()),
            sealing_key: Bytes::copy_from_slice(&keys.sealing().public().to_bytes()),
            overlay_key: Bytes::copy_from_slice(&keys.overlay_public()),
            nats_key: keys.link()?.public_key(),
            nonce: Bytes::copy_from_slice(&new_seed()?[..]),
            abilities: Some(told(&abilities(config.docker_socket()))),
            ..Introduction::default()
        };
        let introduced = enrolment::introduce(draft.clone(), &token, keys.identity());
        let enrolment = Self {
            layout: layout.clone(),
            keys,
            token,
            keyring,
            keyrings,
            agent_toml: bundle.agent_toml.clone(),
            introduction: draft,
            introduced: introduced.clone(),
            answered: None,
            now,
        };
        Ok((enrolment, introduced))
    }

    /// Answers the challenge. Returns the answer to send.
    ///
    /// # Errors
    ///
    /// [`EnrolError::Refused`].
    pub fn answer(&mut self, challenge: &Bytes) -> Result<Bytes, EnrolError> {
        let own = (self.keys.identity(), self.keys.sealing());
        let answer = enrolment::answer(challenge, &self.introduced, own, &self.keyring.at(self.now))?;
        self.answered = Some(answer.clone());
        Ok(answer)
    }

    /// Keeps what is granted; from here on this host is a member.
    ///
    /// # Errors
    ///
    /// See [`EnrolError`]; the membership is written last, so a half-kept grant is no membership.
    pub fn finish(self, grant: &Bytes) -> Result<Membership, EnrolError> {
        let answered = self.answered.unwrap_or_default();
        let trust = self.keyring.at(self.now);
        let granted = enrolment::granted(grant, &answered, &self.introduction, &self.token, &trust)?;
        let root = self.keyrings.first().map(|root| replicator_protocol::ids::Digest::of(root));
        let root = root.unwrap_or(self.keyring.document());
        let membership = Membership::new(self.token.fleet, self.token.host, granted.uid, root);
        match Membership::load(&self.layout.trust()) {
            Ok(former) if former.uid != membership.uid => set_former_aside(&self.layout, &former)?,
            Ok(_) | Err(_) => {}
        }
        durable::replace(&self.layout.keys().join(CERTIFICATE), &granted.certificate_envelope, 0o600)?;
        durable::replace(&self.layout.link_credential(), granted.nats_jwt.as_bytes(), 0o600)?;
        Trusted::keep_all(&self.layout.trust(), &self.keyrings)?;
        durable::replace(&self.layout.config(), self.agent_toml.as_bytes(), 0o600)?;
        membership.keep(&self.layout.trust())?;
        Ok(membership)
    }
}

/// Puts what belongs to the host's former number aside: another number has another history.
fn set_former_aside(layout: &Layout, former: &Membership) -> Result<(), FileError> {
    let aside = layout.state().join(format!("before-{}", former.uid));
    durable::folder(&aside)?;
    let [first, second] = layout.anchors();
    let ledger = [layout.ledger_files(), layout.ledger_next(), layout.projections()];
    for path in ledger.into_iter().chain([first, second, layout.declarations()]) {
        let Some(name) = path.file_name() else { continue };
        match fs::rename(&path, aside.join(name)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(FileError::new("set aside", &path, error));
            }
            Ok(()) | Err(_) => {}
        }
    }
    layout.make_folders()
}

fn told(abilities: &Abilities) -> wire::Abilities {
    wire::Abilities {
        level: LEVEL,
        kinds: abilities.kinds().iter().map(ToString::to_string).collect(),
        agent_version: env!("CARGO_PKG_VERSION").to_owned(),
        missing: abilities.missing(),
    }
}

#[cfg(test)]
mod tests;
