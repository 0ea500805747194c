//! What can happen to a host as the controller sees it: the closed list, and how an entry is written.

use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use prost::Message as _;
use replicator_protocol::ids::{Digest, FleetName, HostUid, Position};
use replicator_protocol::wire::event::{ApplyReported, Event as HostEvent};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Event {
    /// The host has a number, never used before and never again.
    HostDefined {
        /// Its fleet.
        fleet: FleetName,
        /// Its number.
        uid: HostUid,
    },
    /// The host holds a certificate for its keys.
    HostAdmitted {
        /// The signed certificate envelope.
        certificate: Blob,
    },
    /// An agent is set up on the machine: recorded first, so that whoever comes next knows where to look for it.
    AgentSetUp {
        /// What keeps it running: `systemd` or `detached`.
        supervisor: Supervisor,
        /// The folder all of its paths lie under.
        root: PathBuf,
    },
    /// A declaration has its number. It may or may not have been published.
    DeclarationIssued {
        /// Its number.
        position: Position,
        /// SHA-256 of the signed payload: what the host will call it by.
        hash: Hash,
        /// Over everything compiled, secrets by name and generation.
        intent_hash: Hash,
        /// Names the plan it came from.
        plan_id: Hash,
        /// The signed envelope: what is published, now and at every later time.
        envelope: Blob,
    },
    /// The broker holds it.
    DeclarationPublished {
        /// Which.
        position: Position,
    },
    /// The host's signed report on it was seen.
    ApplySeen {
        /// On which declaration.
        position: Position,
        /// The report (`ApplyReported`, encoded).
        report: Blob,
        /// Where the host said it; entries of form 1 do not tell.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        said: Option<Said>,
    },
    /// Nothing more is declared for the host: what is left is to end its agent and its account.
    RetirementBegun {
        /// Its number.
        uid: HostUid,
    },
    /// The host is gone, its account with it.
    HostRetired {
        /// Its number.
        uid: HostUid,
    },
}

impl Event {
    /// [`Event::ApplySeen`] of `report`, as the host said it.
    pub fn apply_seen(position: Position, report: &ApplyReported, said: Said) -> Self {
        Self::ApplySeen { position, report: Blob(report.encode_to_vec().into()), said: Some(said) }
    }

    /// What happened, in words for whoever lost a race against it.
    pub fn says(&self) -> String {
        match self {
            Self::HostDefined { .. } => "defined the host".into(),
            Self::HostAdmitted { .. } => "admitted the host".into(),
            Self::AgentSetUp { .. } => "set up the agent".into(),
            Self::DeclarationIssued { position, .. } => format!("issued declaration {}", position.sequence),
            Self::DeclarationPublished { position } => format!("published declaration {}", position.sequence),
            Self::ApplySeen { position, .. } => format!("saw the report on declaration {}", position.sequence),
            Self::RetirementBegun { .. } => "began to retire the host".into(),
            Self::HostRetired { .. } => "retired the host".into(),
        }
    }
}

/// What keeps an agent running.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Supervisor {
    /// A unit of systemd.
    Systemd,
    /// Nobody: a process of its own session that does not survive a reboot.
    Detached,
}

impl std::fmt::Display for Supervisor {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            Self::Systemd => "systemd",
            Self::Detached => "detached",
        })
    }
}

/// Where a host said something: the place in its ledger, and when by its own clock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Said {
    /// The chain.
    pub chain: Blob,
    /// The event's number.
    pub number: u64,
    /// Milliseconds since the Unix epoch; for people.
    pub at: u64,
}

impl Said {
    /// Where `event` stands.
    pub fn of(event: &HostEvent) -> Self {
        Self { chain: Blob(event.chain.clone()), number: event.number, at: event.wall_time }
    }
}

/// The form in which entries are written. Those of form 1, which does not tell where a host said what it reported,
/// and of form 2, which knows no beginning of a retirement, are read as they are.
pub const FORM: u32 = 3;

/// One object of a log: of a host's, unless said otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry<E = Event> {
    /// The form of this object.
    pub version: u32,
    /// Milliseconds since the Unix epoch, UTC; for people.
    pub at: u64,
    /// Who appended it: `user@machine`.
    pub by: String,
    /// What happened.
    pub event: E,
}

/// Bytes, base64 in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blob(pub bytes::Bytes);

impl Serialize for Blob {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&STANDARD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Blob {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        STANDARD.decode(text).map(|bytes| Self(bytes.into())).map_err(serde::de::Error::custom)
    }
}

/// A digest, hex in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hash(pub Digest);

impl Serialize for Hash {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.0.to_string())
    }
}

impl<'de> Deserialize<'de> for Hash {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let mut out = [0; 32];
        let text = String::deserialize(from)?;
        hex::decode_to_slice(text, &mut out).map_err(serde::de::Error::custom)?;
        Ok(Self(Digest(out)))
    }
}
