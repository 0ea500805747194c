//! Which key holds which role, as the root keys say.
//!
//! Version 1 is the root document: a host pins its SHA-256 at enrolment. Each later version is signed by the
//! threshold of its own root keys and of those before it, so that a host walks versions one by one.

use std::collections::BTreeSet;

use bytes::Bytes;
use ed25519_dalek::VerifyingKey;

use crate::envelope::{Role, Trust, Unverified, Verified, key_id, unsigned_payload, verify};
use crate::ids::{Digest, FleetName, HostUid, KeyId};
use crate::refusal::{Code, Refusal};
use crate::wire::keyring as wire;

/// Most keys of one keyring; a verification is tried with each.
const KEYS_MAX: usize = 64;

/// A keyring that is believed.
#[derive(Debug, Clone)]
pub struct Keyring {
    fleet: FleetName,
    version: u64,
    epoch: u64,
    root: Vec<VerifyingKey>,
    threshold: usize,
    keys: Vec<Key>,
    document: Digest,
}

#[derive(Debug, Clone)]
struct Key {
    public: VerifyingKey,
    role: Role,
    not_after: Option<u64>,
    hosts: BTreeSet<HostUid>,
}

/// A keyring at one moment: what its keys are trusted for now.
#[derive(Debug, Clone, Copy)]
pub struct At<'k> {
    keyring: &'k Keyring,
    now: u64,
}

/// Root keys alone, for checking a keyring against those who sign it.
struct RootKeys<'k> {
    keys: &'k [VerifyingKey],
    threshold: usize,
}

impl Trust for RootKeys<'_> {
    fn keys(&self, role: Role) -> Vec<VerifyingKey> {
        match role {
            Role::Root => self.keys.to_vec(),
            Role::Declare | Role::Collect | Role::Enrol | Role::Host => Vec::new(),
        }
    }

    fn threshold(&self, _role: Role) -> usize {
        self.threshold
    }
}

impl Keyring {
    /// Accepts version 1, whose envelope must have the digest that was pinned.
    ///
    /// # Errors
    ///
    /// [`Code::WrongRoot`] where it is another document; else as [`verify`], [`Code::InvalidKeyring`].
    pub fn accept_root(envelope: Bytes, pinned: Digest) -> Result<Self, Refusal> {
        let got = Digest::of(&envelope);
        if got != pinned {
            return Err(Refusal::new(Code::WrongRoot).with("got", got).with("have", pinned));
        }
        let keyring = Self::signed_by_itself(&envelope)?;
        if keyring.version != 1 {
            return Err(Refusal::new(Code::InvalidKeyring).with("got", keyring.version).with("have", 1));
        }
        Ok(keyring)
    }

    /// Accepts the version after this one.
    ///
    /// # Errors
    ///
    /// [`Code::KeyringOutOfOrder`] for any other version, [`Code::InvalidKeyring`] for another fleet or a lower
    /// epoch, [`Code::UntrustedKey`] where either threshold is missed. This keyring stays in force.
    pub fn accept_next(&self, envelope: &Bytes) -> Result<Self, Refusal> {
        let before = RootKeys { keys: &self.root, threshold: self.threshold };
        let _signed: Verified<wire::Keyring> = verify(&Unverified::new(envelope.clone()), &before)?;
        let next = Self::signed_by_itself(envelope)?;
        if next.version != self.version + 1 {
            return Err(Refusal::new(Code::KeyringOutOfOrder).with("got", next.version).with("have", self.version));
        }
        if next.fleet != self.fleet || next.epoch < self.epoch {
            return Err(Refusal::new(Code::InvalidKeyring).with("got", &next.fleet).with("have", &self.fleet));
        }
        Ok(next)
    }

    fn signed_by_itself(envelope: &Bytes) -> Result<Self, Refusal> {
        let invalid = || Refusal::new(Code::InvalidKeyring);
        // Its own root keys stand inside it: read once to learn them, then believed only if they signed it.
        let claimed: wire::Keyring = unsigned_payload(envelope)?;
        let root = public_keys(&claimed.root)?;
        let threshold = usize::try_from(claimed.threshold).map_err(|_| invalid())?;
        if root.is_empty() || threshold == 0 || threshold > root.len() || claimed.keys.len() + root.len() > KEYS_MAX {
            return Err(invalid());
        }
        let itself = RootKeys { keys: &root, threshold };
        let body: Verified<wire::Keyring> = verify(&Unverified::new(envelope.clone()), &itself)?;
        let revoked: BTreeSet<&[u8]> = body.revoked.iter().map(|id| &id[..]).collect();
        let mut keys = Vec::with_capacity(body.keys.len());
        for key in &body.keys {
            let key = checked_key(key)?;
            if !revoked.contains(&key_id(&key.public).0[..]) {
                keys.push(key);
            }
        }
        let fleet = FleetName::parse(&body.fleet).map_err(|_| invalid())?;
        Ok(Self {
            fleet,
            version: body.version,
            epoch: body.epoch,
            root,
            threshold,
            keys,
            document: Digest::of(envelope),
        })
    }

    /// The fleet it speaks for.
    #[must_use]
    pub fn fleet(&self) -> &FleetName {
        &self.fleet
    }

    /// From 1, one by one.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The epoch declarations stand in.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// SHA-256 of the envelope it came in.
    #[must_use]
    pub fn document(&self) -> Digest {
        self.document
    }

    /// Its keys as trusted at `now`, in milliseconds since the Unix epoch.
    #[must_use]
    pub fn at(&self, now: u64) -> At<'_> {
        At { keyring: self, now }
    }

    /// Whether one of `signers` may speak in `role` about `host`.
    #[must_use]
    pub fn scope_allows(&self, role: Role, signers: &BTreeSet<KeyId>, host: &HostUid) -> bool {
        self.keys
            .iter()
            .filter(|key| key.role == role && signers.contains(&key_id(&key.public)))
            .any(|key| key.hosts.is_empty() || key.hosts.contains(host))
    }
}

impl Trust for At<'_> {
    fn keys(&self, role: Role) -> Vec<VerifyingKey> {
        let alive = |key: &&Key| key.role == role && key.not_after.is_none_or(|end| self.now <= end);
        self.keyring.keys.iter().filter(alive).map(|key| key.public).collect()
    }
}

fn public_keys(keys: &[Bytes]) -> Result<Vec<VerifyingKey>, Refusal> {
    if keys.windows(2).any(|pair| pair[0] >= pair[1]) {
        return Err(Refusal::new(Code::InvalidKeyring));
    }
    keys.iter().map(|key| public_key(key)).collect()
}

fn public_key(bytes: &[u8]) -> Result<VerifyingKey, Refusal> {
    let weak = || Refusal::new(Code::WeakKey);
    let key = VerifyingKey::from_bytes(bytes.try_into().map_err(|_| weak())?).map_err(|_| weak())?;
    if key.is_weak() { Err(weak()) } else { Ok(key) }
}

fn checked_key(key: &wire::Key) -> Result<Key, Refusal> {
    let invalid = || Refusal::new(Code::InvalidKeyring);
    let role = match wire::Role::try_from(key.role).map_err(|_| invalid())? {
        wire::Role::Declare => Role::Declare,
        wire::Role::Collect => Role::Collect,
        wire::Role::Enrol => Role::Enrol,
        wire::Role::Root | wire::Role::Host | wire::Role::Unspecified => return Err(invalid()),
    };
    let hosts = key.hosts.iter().map(|uid| HostUid::parse(uid)).collect::<Result<_, _>>().map_err(|_| invalid())?;
    Ok(Key { public: public_key(&key.public_key)?, role, not_after: key.not_after, hosts })
}

#[cfg(test)]
mod tests;
