//! What the controller gives the broker: accounts, streams, keyrings and declarations; and what comes back.
//!
//! Comes in: what was made and signed elsewhere. Goes out: the broker's yes, and what hosts report. Never signs.

pub mod accounts;
pub mod publish;
pub mod report;
pub mod streams;

use replicator_protocol::ids::{HostUid, Position};

use crate::keys::KeysError;
use crate::link::LinkError;

pub use publish::{Publisher, Sent};
pub use report::{Outcome, Progress, position_of};

/// What to do where a declaration lies at the broker that this controller's log does not have.
pub(crate) const OTHER_LOG: &str = "see which controller is to declare for the host, and stop the other; where this one's state was put back from a \
                                    backup, put a later one back, or converge as often as declarations were lost: the number counts on";

/// Something could not be published, or read back.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// The broker cannot be reached.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The fleet's keyring or the host's certificate cannot be read.
    #[error(transparent)]
    Keys(#[from] KeysError),
    /// A stream is not as it has to be.
    #[error(transparent)]
    Streams(#[from] streams::StreamsError),
    /// The broker did not say that it holds the message; whether it does is unknown.
    #[error("the broker did not acknowledge `{subject}`")]
    NotAcknowledged {
        /// Where it was published.
        subject: String,
        /// Why.
        source: async_nats::jetstream::context::PublishError,
    },
    /// The broker holds a later declaration for the host, or another of the same number; nothing was published over it.
    #[error("another declaration lies at the broker (got {}, have {})", got.sequence, have.sequence)]
    Overtaken {
        /// What was to be published.
        got: Position,
        /// What lies there.
        have: Position,
    },
    /// What the broker holds cannot be read.
    #[error("cannot read `{subject}` from the broker")]
    Unreadable {
        /// What was asked for.
        subject: String,
        /// Why.
        source: async_nats::jetstream::stream::DirectGetError,
    },
    /// A keyring lies at the broker that is not the fleet's.
    #[error("the broker holds another keyring {version} than this fleet's")]
    ForeignKeyring {
        /// Its version.
        version: u64,
    },
    /// The host has no certificate here.
    #[error("host `{uid}` was never admitted here")]
    NotAdmitted {
        /// Which.
        uid: HostUid,
    },
    /// The host did not report in time.
    #[error("no report on declaration {sequence} came within {seconds} s")]
    NoReport {
        /// On which.
        sequence: u64,
        /// How long it was waited for.
        seconds: u64,
    },
}

impl PublishError {
    /// One line that names the next action.
    pub fn hint(&self) -> String {
        match self {
            Self::Link(error) => error.hint(),
            Self::Keys(error) => error.hint(),
            Self::Streams(error) => error.hint(),
            Self::NotAcknowledged { .. } | Self::Unreadable { .. } => {
                "run the command again: what is published twice counts once; look at the broker's log and disk. One whose \
                 disk was full takes nothing until it is started again"
                    .into()
            }
            Self::Overtaken { .. } => OTHER_LOG.into(),
            Self::ForeignKeyring { .. } => {
                "stop the broker, move its folder `jetstream` away, start it and run the command again".into()
            }
            Self::NotAdmitted { .. } => "run `replicator host up` for it".into(),
            Self::NoReport { .. } => {
                "the host applies it once it is connected; look at it with `replicator events`, and at its agent's log"
                    .into()
            }
        }
    }
}
