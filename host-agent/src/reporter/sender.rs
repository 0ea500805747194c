//! Sending the ledger on: batch by batch, woken by appends, until receipts have settled it.

use std::sync::Arc;
use std::time::Duration;

use replicator_protocol::envelope::sign;
use replicator_protocol::ids::HostUid;
use replicator_protocol::keyring::Keyring;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{EVENTS_MAX, Outbox, Vitals, cut, settle};
use crate::clock::Clock;
use crate::config::jittered;
use crate::keys::host_key::HostKeys;
use crate::ledger::SharedLedger;
use crate::link::Link;

/// How long events are gathered into one batch after the first: well under the second within which they go.
const GATHER: Duration = Duration::from_millis(200);
/// First and longest pause between looking for a receipt or trying to send again, in seconds.
const PAUSE: (u64, u64) = (1, 60);

/// What sending needs.
#[derive(Clone)]
pub struct Parts {
    /// This host.
    pub host: HostUid,
    /// Signs.
    pub keys: Arc<HostKeys>,
    /// What is sent.
    pub ledger: Arc<SharedLedger>,
    /// Where it goes.
    pub link: Link,
    /// Whose receipts count.
    pub keyring: watch::Receiver<Arc<Keyring>>,
    /// Times.
    pub clock: Arc<dyn Clock>,
    /// For heartbeats.
    pub vitals: Vitals,
}

/// Sends events and takes receipts until `stop`; then sends once more what is left.
pub async fn keep_reporting(mut parts: Parts, stop: CancellationToken) {
    let mut outbox = Outbox::new(parts.ledger.settled().unwrap_or_default());
    let mut appended = parts.ledger.watch();
    appended.mark_changed();
    let mut pause = PAUSE.0;
    let mut next_try = Instant::now();
    loop {
        tokio::select! {
            changed = appended.changed() => match changed {
                Ok(()) => tokio::time::sleep(GATHER).await,
                Err(_gone) => return,
            },
            () = parts.link.changed() => {}
            () = tokio::time::sleep_until(next_try) => {}
            () = stop.cancelled() => {
                flush(&parts, &mut outbox).await;
                return;
            }
        }
        let before = outbox.settled();
        let sent = flush(&parts, &mut outbox).await;
        take_receipt(&parts, &mut outbox).await;
        if outbox.overdue(parts.clock.monotonic_time()) {
            tracing::warn!(settled = outbox.settled(), "no receipt in time; sending again");
        }
        pause = if sent || outbox.settled() != before { PAUSE.0 } else { (pause * 2).min(PAUSE.1) };
        let unfinished = outbox.is_waiting() || outbox.sent() < parts.ledger.head().number;
        let wait = if unfinished { pause } else { PAUSE.1 };
        next_try = Instant::now() + jittered(wait, getrandom::u64().unwrap_or_default());
    }
}

/// Sends every batch that has not been sent. Returns whether any was acknowledged.
async fn flush(parts: &Parts, outbox: &mut Outbox) -> bool {
    let mut any = false;
    while parts.link.is_up() {
        let entries = match parts.ledger.read_after(outbox.sent(), u32::try_from(EVENTS_MAX).unwrap_or(u32::MAX)) {
            Ok(entries) => entries,
            Err(error) => {
                tracing::error!(%error, "the ledger cannot be sent on");
                return any;
            }
        };
        let Some(batch) = cut(&parts.host, parts.ledger.head().chain, &entries) else { return any };
        let envelope = sign(&batch.message, &[parts.keys.identity()]);
        match parts.link.publish_events(envelope, &batch.summary, outbox.delivery()).await {
            Ok(()) => {
                outbox.acknowledged(batch.last, parts.clock.monotonic_time());
                any = true;
            }
            Err(error) => {
                tracing::info!(%error, last = batch.last, "events not sent; trying again");
                return any;
            }
        }
    }
    any
}

async fn take_receipt(parts: &Parts, outbox: &mut Outbox) {
    if !parts.link.is_up() {
        return;
    }
    let envelope = match parts.link.receipt().await {
        Ok(Some(envelope)) => envelope,
        Ok(None) => return,
        Err(error) => {
            tracing::debug!(%error, "no receipt fetched");
            return;
        }
    };
    let keyring = parts.keyring.borrow().clone();
    match settle(&envelope, (&parts.host, &parts.ledger), &keyring, parts.clock.wall_time()) {
        Ok(settled) if settled != outbox.settled() => outbox.receipt(settled, parts.clock.monotonic_time()),
        Ok(_unchanged) => {}
        Err(error) => tracing::warn!(%error, "a receipt settles nothing"),
    }
}
