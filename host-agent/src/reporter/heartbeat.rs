//! The sign of life: what this host has seen, has applied and is doing.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use ed25519_dalek::SigningKey;
use replicator_protocol::declaration::LEVEL;
use replicator_protocol::envelope::sign;
use replicator_protocol::ids::HostUid;
use replicator_protocol::resources::Kind;
use replicator_protocol::wire::event::{DeclarationRef, Heartbeat};
use tokio_util::sync::CancellationToken;

use super::sender::Parts;
use crate::abilities::Abilities;
use crate::config::jittered;
use crate::ledger::Head;

/// What the daemon knows of itself, shared with the one who tells it.
#[derive(Debug, Clone, Default)]
pub struct Vitals(Arc<Mutex<Known>>);

/// The values behind [`Vitals`].
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Known {
    /// The declaration accepted last.
    pub seen: Option<DeclarationRef>,
    /// The declaration applied to its end last.
    pub applied: Option<DeclarationRef>,
    /// When a look or an apply ended last; milliseconds since the Unix epoch.
    pub last_loop: u64,
    /// The mode of the declaration in force.
    pub mode: String,
}

impl Vitals {
    /// Changes what is known.
    pub fn update(&self, change: impl FnOnce(&mut Known)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// What is known now.
    #[must_use]
    pub fn known(&self) -> Known {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Composes a heartbeat of a host that can apply `kinds`; `clock` is in milliseconds since the Unix epoch.
#[must_use]
pub fn compose(
    host: &HostUid,
    (known, kinds): (Known, &[Kind]),
    (head, settled): (Head, u64),
    (clock, supervisor): (u64, &str),
) -> Heartbeat {
    Heartbeat {
        host: host.to_string(),
        seen: known.seen,
        applied: known.applied,
        last_loop: known.last_loop,
        chain: Bytes::copy_from_slice(&head.chain),
        head_number: head.number,
        head_hash: Bytes::copy_from_slice(&head.hash.0),
        clock,
        agent_version: env!("CARGO_PKG_VERSION").to_owned(),
        level: LEVEL,
        kinds: kinds.iter().map(ToString::to_string).collect(),
        mode: known.mode,
        supervisor: supervisor.to_owned(),
        settled_number: settled,
    }
}

/// Sends a heartbeat every `interval` seconds, a fifth more or less, and whenever the link comes up, until `stop`.
pub async fn keep_beating(
    mut parts: Parts,
    (interval, abilities, supervisor): (u64, Abilities, String),
    stop: CancellationToken,
) {
    loop {
        // A machine on which nothing happens appends nothing, and would not find its ledger missing.
        parts.ledger.look();
        if parts.link.is_up() {
            let settled = parts.ledger.settled().unwrap_or_default();
            let (head, clock) = (parts.ledger.head(), parts.clock.wall_time());
            let known = (parts.vitals.known(), &abilities.kinds()[..]);
            let message = compose(&parts.host, known, (head, settled), (clock, &supervisor));
            let identity: &SigningKey = parts.keys.identity();
            if let Err(error) = parts.link.heartbeat(sign(&message, &[identity])).await {
                tracing::debug!(%error, "no heartbeat sent");
            }
        }
        let random = getrandom::u64().unwrap_or_default();
        tokio::select! {
            () = tokio::time::sleep(jittered(interval, random)) => {}
            () = parts.link.changed() => {}
            () = stop.cancelled() => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use replicator_protocol::ids::Digest;

    use super::*;
    use crate::testing::membership;

    #[test]
    fn heartbeat_says_where_the_ledger_stands_and_what_the_host_speaks() {
        let vitals = Vitals::default();
        vitals.update(|known| known.last_loop = 7);
        let head = Head { chain: [1; 16], number: 12, hash: Digest([2; 32]) };
        let known = (vitals.known(), &[Kind::Directory, Kind::File][..]);
        let message = compose(&membership().uid, known, (head, 10), (99, "detached"));
        assert_eq!((message.head_number, message.settled_number, message.last_loop), (12, 10, 7));
        assert_eq!(message.kinds, ["directory", "file"]);
    }
}
