//! Fetching what was published, keyrings before declarations.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use replicator_protocol::keyring::Keyring;
use replicator_protocol::wire::event::KeyringAccepted;
use replicator_protocol::wire::event::event::Body;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::config::jittered;
use crate::inbox::{InForce, Inbox, Received};
use crate::keys::trusted::{TrustError, Trusted};
use crate::ledger::SharedLedger;
use crate::link::{Link, Wake};
use crate::reporter::Vitals;

/// Most keyrings walked at once; the rest are walked at the next wake-up or poll.
const KEYRINGS_AT_ONCE: usize = 1000;
/// How often a declaration is fetched after a wake-up: the broker may wake us before it has stored it.
const FETCHES: u32 = 6;
/// Pause before the second fetch; doubled each time, so that six take three seconds.
const FETCH_AGAIN: Duration = Duration::from_millis(100);

/// What receiving needs, and what it feeds.
pub(super) struct Receiver {
    pub(super) link: Link,
    pub(super) inbox: Inbox,
    pub(super) trusted: Trusted,
    pub(super) ledger: Arc<SharedLedger>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) vitals: Vitals,
    pub(super) in_force: watch::Sender<Option<Arc<InForce>>>,
    pub(super) keyring: watch::Sender<Arc<Keyring>>,
}

/// What a fetch brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fetched {
    New,
    Nothing,
    Failed,
}

impl Receiver {
    /// Fetches whenever it is woken, and every `poll` seconds otherwise, until `stop`.
    pub(super) async fn keep_receiving(mut self, mut wakes: mpsc::Receiver<Wake>, poll: u64, stop: CancellationToken) {
        loop {
            let random = getrandom::u64().unwrap_or_default();
            let wake = tokio::select! {
                wake = wakes.recv() => match wake {
                    Some(wake) => wake,
                    // The link's settings cannot be used: there is nothing to wait for but the end.
                    None => { stop.cancelled().await; return }
                },
                () = tokio::time::sleep(jittered(poll, random)) => Wake::Connected,
                () = stop.cancelled() => return,
            };
            let fetches = match wake {
                Wake::Declaration => FETCHES,
                Wake::Connected | Wake::Keyring => 1,
            };
            for fetch in 0..fetches {
                if fetch > 0 {
                    tokio::time::sleep(FETCH_AGAIN * 2_u32.pow(fetch - 1)).await;
                }
                match self.fetch().await {
                    Fetched::New | Fetched::Failed => break,
                    Fetched::Nothing => {}
                }
            }
        }
    }

    async fn fetch(&mut self) -> Fetched {
        if !self.link.is_up() {
            return Fetched::Failed;
        }
        self.walk_keyrings().await;
        match self.link.declaration().await {
            Ok(Some(envelope)) => self.receive(&envelope),
            Ok(None) => Fetched::Nothing,
            Err(error) => {
                tracing::info!(%error, "no declaration fetched");
                Fetched::Failed
            }
        }
    }

    /// Takes up every keyring after the one in force.
    async fn walk_keyrings(&mut self) {
        for _ in 0..KEYRINGS_AT_ONCE {
            let version = self.trusted.keyring().version() + 1;
            let envelope = match self.link.keyring(version).await {
                Ok(Some(envelope)) => envelope,
                Ok(None) => return,
                Err(error) => {
                    tracing::info!(%error, version, "no keyring fetched");
                    return;
                }
            };
            match self.take_up_keyring(&envelope) {
                Ok(keyring) => tracing::info!(version = keyring.version(), "keyring in force"),
                Err(error) => {
                    tracing::warn!(%error, version, "a keyring is not taken up");
                    return;
                }
            }
        }
    }

    fn take_up_keyring(&mut self, envelope: &Bytes) -> Result<Arc<Keyring>, TrustError> {
        let keyring = Arc::new(self.trusted.accept_next(envelope)?.clone());
        let hash = Bytes::copy_from_slice(&keyring.document().0);
        let accepted = Body::KeyringAccepted(KeyringAccepted { version: keyring.version(), hash });
        if let Err(error) = self.ledger.append(None, vec![accepted]) {
            // It is on disk and in force: only the word of it is missing.
            tracing::error!(%error, "a keyring was not recorded");
        }
        self.keyring.send_replace(keyring.clone());
        Ok(keyring)
    }

    fn receive(&mut self, envelope: &Bytes) -> Fetched {
        match self.inbox.receive(envelope, self.trusted.keyring(), self.clock.wall_time()) {
            Ok(Received::Accepted(in_force)) => {
                tracing::info!(sequence = in_force.reference.sequence, "declaration accepted");
                self.vitals.update(|known| known.seen = Some(in_force.reference.clone()));
                self.in_force.send_replace(Some(in_force));
                Fetched::New
            }
            Ok(Received::Same | Received::Refused { again: true, .. } | Received::Equivocation { again: true }) => {
                Fetched::Nothing
            }
            Ok(Received::Refused { refusal, again: false }) => {
                tracing::warn!(%refusal, hint = refusal.code.hint(), "declaration refused");
                Fetched::New
            }
            Ok(Received::Equivocation { again: false }) => {
                tracing::error!("two declarations carry one number and differ; both are kept, nothing is applied");
                Fetched::New
            }
            Err(error) => {
                tracing::error!(%error, "a declaration could not be taken up");
                Fetched::Failed
            }
        }
    }
}
