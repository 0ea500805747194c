//! Heartbeats: the last one of each host is kept, once its host has signed it.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use replicator_protocol::subjects;

use super::collector::Parts;
use crate::keys::certificates;
use crate::state;

/// Pause before listening again where the broker could not be asked.
const PAUSE: Duration = Duration::from_secs(1);

/// Listens for as long as it is polled.
pub(super) async fn listen(parts: Parts) {
    loop {
        match parts.client.subscribe(subjects::EVERY_HEARTBEAT).await {
            Ok(mut heard) => {
                while let Some(message) = heard.next().await {
                    take(&parts, &message).await;
                }
            }
            Err(error) => tracing::warn!(%error, "cannot listen for heartbeats; trying again"),
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn take(parts: &Parts, message: &async_nats::Message) {
    let Some(host) = subjects::host_of(subjects::EVERY_HEARTBEAT, &message.subject) else { return };
    let certified = match certificates::load(&parts.folder, &host, &parts.keys.keyrings().current) {
        Ok(Some(certified)) => certified,
        Ok(None) => return,
        Err(error) => {
            tracing::warn!(%host, %error, "the certificate of a host cannot be read");
            return;
        }
    };
    let beat = match certified.heartbeat(message.payload.clone()) {
        Ok(beat) => beat,
        Err(refusal) => {
            parts.metrics.fault(refusal.code.as_str());
            tracing::warn!(%host, %refusal, "a heartbeat is not believed");
            return;
        }
    };
    let now = state::now();
    parts.metrics.heartbeat(&host, now, beat.clock);
    let (store, envelope) = (Arc::clone(&parts.store), message.payload.clone());
    let kept = tokio::task::spawn_blocking(move || store.keep_heartbeat(&host, &envelope, now)).await;
    if let Ok(Err(error)) = kept {
        tracing::warn!(%error, "a heartbeat was not kept");
    }
}
