//! Taking up a declaration: what it says is on disk before anyone acts on it.
//!
//! Order of writes: the envelope, the two anchors, the ledger. A crash between leaves the higher floor, and the
//! ledger is told at the next start.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use replicator_protocol::declaration::Declaration;
use replicator_protocol::ids::{Digest, Position};
use replicator_protocol::keyring::Keyring;
use replicator_protocol::refusal::Refusal;
use replicator_protocol::wire::event::event::Body;
use replicator_protocol::wire::event::{DeclarationAccepted, DeclarationRefused, DeclarationSuperseded, Equivocation};

use super::in_force::{equivocation_at, kept_at};
use super::{AnchorError, Anchors, Floor, InForce, Verdict, decide, reference, skipped, verify};
use crate::abilities::Abilities;
use crate::config::Layout;
use crate::durable::{self, FileError};
use crate::keys::Membership;
use crate::ledger::{AppendError, SharedLedger};
use crate::policy::Policy;

/// The inbox could not do its work; nothing was taken up.
#[derive(Debug, thiserror::Error)]
pub enum InboxError {
    /// The floor could not be read or written.
    #[error(transparent)]
    Anchor(#[from] AnchorError),
    /// An envelope could not be read or kept.
    #[error(transparent)]
    File(#[from] FileError),
    /// The ledger could not be written.
    #[error(transparent)]
    Append(#[from] AppendError),
}

/// What became of an envelope.
#[derive(Debug)]
pub enum Received {
    /// It is in force now.
    Accepted(Arc<InForce>),
    /// It was in force already.
    Same,
    /// It was refused. `again`: the same bytes were refused before, and no event was made of it.
    Refused {
        /// Why.
        refusal: Refusal,
        /// Nothing new.
        again: bool,
    },
    /// It has the number of the one in force and differs. Both are kept, nothing is applied.
    Equivocation {
        /// Nothing new.
        again: bool,
    },
}

/// The one place that decides what is in force.
pub struct Inbox {
    layout: Layout,
    folder: PathBuf,
    anchors: Anchors,
    me: Membership,
    ledger: Arc<SharedLedger>,
    floor: Option<Floor>,
    in_force: Option<Arc<InForce>>,
    /// The envelope that was refused last, and why.
    last_refused: Option<(Digest, Refusal)>,
    /// Where the container runtime listens: what the policy must not give away.
    socket: String,
    /// What this machine can apply.
    abilities: Abilities,
}

impl Inbox {
    /// Finds what is in force: the higher of what anchors and ledger say was accepted last. `socket` is where the
    /// container runtime listens, `abilities` what this machine can apply.
    ///
    /// # Errors
    ///
    /// See [`InboxError`].
    pub fn open(
        layout: &Layout,
        (socket, abilities): (&str, Abilities),
        me: Membership,
        ledger: Arc<SharedLedger>,
    ) -> Result<Self, InboxError> {
        let anchors = Anchors::new(layout.anchors());
        let recorded = last_accepted(&ledger);
        let anchored = match anchors.read() {
            // The ledger, whose chain has been verified, says it as well.
            Err(AnchorError::Damaged(..)) if recorded.is_some() => None,
            read => read?,
        };
        let floor = [anchored, recorded].into_iter().flatten().max_by_key(|floor| floor.position);
        let mut inbox = Self {
            layout: layout.clone(),
            folder: layout.declarations(),
            anchors,
            me,
            ledger,
            floor,
            in_force: None,
            last_refused: None,
            socket: socket.to_owned(),
            abilities,
        };
        let Some(floor) = floor else { return Ok(inbox) };
        if anchored != Some(floor) {
            inbox.anchors.write(&floor)?;
        }
        let kept = durable::read(&kept_at(&inbox.folder, &floor))?.map(Bytes::from);
        inbox.in_force = match kept.map(|envelope| InForce::accepted_before(envelope, &floor)) {
            Some(Ok(in_force)) => Some(Arc::new(in_force)),
            Some(Err(refusal)) => {
                tracing::error!(%refusal, "the declaration in force cannot be read again; waiting for a new one");
                None
            }
            None => None,
        };
        if let Some(in_force) = inbox.in_force.clone().filter(|_| recorded != Some(floor)) {
            inbox.record(None, &in_force)?;
        }
        inbox.remove_older(&floor);
        Ok(inbox)
    }

    /// The declaration in force.
    #[must_use]
    pub fn in_force(&self) -> Option<Arc<InForce>> {
        self.in_force.clone()
    }

    /// The last position accepted.
    #[must_use]
    pub fn floor(&self) -> Option<Floor> {
        self.floor
    }

    /// Takes `envelope` up, or says why not. `now` is in milliseconds since the Unix epoch.
    ///
    /// # Errors
    ///
    /// [`InboxError`]: nothing was taken up, and nothing may be applied on its account.
    pub fn receive(&mut self, envelope: &Bytes, keyring: &Keyring, now: u64) -> Result<Received, InboxError> {
        if self.in_force.as_ref().is_some_and(|in_force| in_force.envelope == *envelope) {
            return Ok(Received::Same);
        }
        let verdict = verify(envelope, keyring, &self.me, now).and_then(|candidate| {
            let position = candidate.declaration.position;
            Ok((decide(self.floor.as_ref(), position, candidate.hash, keyring.epoch())?, candidate))
        });
        match verdict {
            Err(refusal) => self.refuse(envelope, refusal),
            Ok((Verdict::Equivocation, candidate)) => self.keep_both(envelope, candidate.hash),
            // The same declaration signed anew, or one whose envelope was lost from this disk.
            Ok((Verdict::Same, candidate)) if self.in_force.is_none() => self.accept(InForce::of(candidate)),
            Ok((Verdict::Same, _)) => Ok(Received::Same),
            Ok((Verdict::Accept, candidate)) => match self.allowed(&candidate.declaration) {
                Err(refusal) => self.refuse(envelope, refusal),
                Ok(()) => self.accept(InForce::of(candidate)),
            },
        }
    }

    /// Whether this machine can apply all of `declaration`, and its policy allows it. Looked at anew each time: what was
    /// installed and a line that was added count at once.
    fn allowed(&self, declaration: &Declaration) -> Result<(), Refusal> {
        self.abilities.check(declaration)?;
        Policy::load(&self.layout, &self.socket).map_err(|error| error.refusal())?.check(declaration)
    }

    fn accept(&mut self, in_force: InForce) -> Result<Received, InboxError> {
        let (position, hash) = (in_force.declaration.position, in_force.reference.hash.clone());
        let floor = Floor { position, hash: digest(&hash).unwrap_or(Digest([0; 32])) };
        let before = self.floor;
        durable::replace(&kept_at(&self.folder, &floor), &in_force.envelope, 0o600)?;
        self.anchors.write(&floor)?;
        let in_force = Arc::new(in_force);
        if before != Some(floor) {
            // Where this fails, the next fetch takes the same declaration up again.
            self.record(before.as_ref(), &in_force)?;
        }
        self.floor = Some(floor);
        self.in_force = Some(in_force.clone());
        self.remove_older(&floor);
        Ok(Received::Accepted(in_force))
    }

    fn record(&self, before: Option<&Floor>, in_force: &InForce) -> Result<(), InboxError> {
        let declaration = &in_force.declaration;
        let skipped = skipped(before, declaration.position)
            .map(|(first, last)| Body::DeclarationSuperseded(DeclarationSuperseded { first, last }));
        let resources = u32::try_from(declaration.resources.len()).unwrap_or(u32::MAX);
        let accepted = Body::DeclarationAccepted(DeclarationAccepted { resources });
        self.ledger.append(Some(&in_force.reference), skipped.into_iter().chain([accepted]).collect())?;
        Ok(())
    }

    fn refuse(&mut self, envelope: &Bytes, refusal: Refusal) -> Result<Received, InboxError> {
        let hash = Digest::of(envelope);
        let again = self.last_refused.as_ref().is_some_and(|last| *last == (hash, refusal.clone()));
        if !again {
            let fields = refusal.fields.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
            let envelope = Bytes::copy_from_slice(&hash.0);
            let code = refusal.code.to_string();
            let event = Body::DeclarationRefused(DeclarationRefused { code, fields, envelope });
            self.ledger.append(None, vec![event])?;
            self.last_refused = Some((hash, refusal.clone()));
        }
        Ok(Received::Refused { refusal, again })
    }

    fn keep_both(&mut self, envelope: &Bytes, other: Digest) -> Result<Received, InboxError> {
        let path = equivocation_at(&self.folder, &other);
        if durable::read(&path)?.is_some() {
            return Ok(Received::Equivocation { again: true });
        }
        let accepted = self.floor.map(|floor| reference(floor.position, floor.hash));
        let event = Body::Equivocation(Equivocation {
            accepted: accepted.as_ref().map(|accepted| accepted.hash.clone()).unwrap_or_default(),
            other: Bytes::copy_from_slice(&other.0),
        });
        // The event first: a crash between makes a second event, never a kept file nobody was told of.
        self.ledger.append(accepted.as_ref(), vec![event])?;
        durable::replace(&path, envelope, 0o600)?;
        Ok(Received::Equivocation { again: false })
    }

    /// Removes envelopes that are no longer in force. Failing to is no harm: they are never read.
    fn remove_older(&self, floor: &Floor) {
        let current = kept_at(&self.folder, floor);
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let is_equivocation = name.to_string_lossy().starts_with("equivocation-");
            if entry.path() != current && !is_equivocation && fs::remove_file(entry.path()).is_err() {
                tracing::warn!(path = %entry.path().display(), "could not remove an older declaration");
            }
        }
    }
}

fn digest(bytes: &[u8]) -> Option<Digest> {
    bytes.try_into().ok().map(Digest)
}

/// What the ledger says was accepted last.
fn last_accepted(ledger: &SharedLedger) -> Option<Floor> {
    let status = ledger.state().status;
    let accepted = status.accepted.as_ref()?;
    let hash = digest(&hex::decode(&accepted.hash).ok()?)?;
    Some(Floor { position: Position { epoch: accepted.epoch, sequence: accepted.sequence }, hash })
}

#[cfg(test)]
mod tests;
