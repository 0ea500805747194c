//! The declaration in force, with the bytes it came in.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use prost::Message as _;
use replicator_protocol::declaration::Declaration;
use replicator_protocol::ids::{Digest, Position};
use replicator_protocol::refusal::{Code, Refusal};
use replicator_protocol::strict;
use replicator_protocol::wire::envelope::Envelope;
use replicator_protocol::wire::event::DeclarationRef;

use super::{Candidate, Floor};

/// What this host was told last and accepted.
#[derive(Debug, Clone, PartialEq)]
pub struct InForce {
    /// The checked declaration; secrets in it are sealed.
    pub declaration: Declaration,
    /// Names it in events.
    pub reference: DeclarationRef,
    /// The envelope as it came.
    pub envelope: Bytes,
}

/// Names a declaration in events.
#[must_use]
pub fn reference(position: Position, hash: Digest) -> DeclarationRef {
    DeclarationRef { epoch: position.epoch, sequence: position.sequence, hash: Bytes::copy_from_slice(&hash.0) }
}

impl InForce {
    pub(super) fn of(candidate: Candidate) -> Self {
        let reference = reference(candidate.declaration.position, candidate.hash);
        Self { declaration: candidate.declaration, reference, envelope: candidate.envelope }
    }

    /// Reads an envelope of this host's own disk again, which was verified when it was accepted as `floor`.
    ///
    /// No key is asked: one that has been revoked since takes nothing back that was accepted before. The hash of
    /// what was accepted is.
    ///
    /// # Errors
    ///
    /// [`Code::MalformedEnvelope`] where these are other bytes; as [`Declaration::from_wire`].
    pub(super) fn accepted_before(envelope: Bytes, floor: &Floor) -> Result<Self, Refusal> {
        let malformed = || Refusal::new(Code::MalformedEnvelope);
        let payload = Envelope::decode(envelope.clone()).map_err(|_| malformed())?.payload;
        if Digest::of(&payload) != floor.hash {
            return Err(malformed());
        }
        let declaration = Declaration::from_wire(&strict::decode(&payload)?)?;
        if declaration.position != floor.position {
            return Err(malformed());
        }
        Ok(Self { reference: reference(floor.position, floor.hash), declaration, envelope })
    }
}

/// Where the envelope accepted as `floor` is kept, as it came.
pub(super) fn kept_at(folder: &Path, floor: &Floor) -> PathBuf {
    folder.join(format!("{}-{}", floor.position.epoch, floor.position.sequence))
}

/// Where the other declaration of one number is kept.
pub(super) fn equivocation_at(folder: &Path, hash: &Digest) -> PathBuf {
    folder.join(format!("equivocation-{hash}"))
}
