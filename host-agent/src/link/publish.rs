//! Publishing: events with the broker's acknowledgement, heartbeats without.

use async_nats::{HeaderMap, jetstream};
use bytes::Bytes;
use replicator_protocol::ids::Digest;
use replicator_protocol::subjects;

use super::{Link, LinkError};
use crate::host::point::{Effect, Side, reach};

/// What a batch holds, in its headers: for people who watch, never trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// The kinds of its events, once each.
    pub kinds: String,
    /// The number of its last event.
    pub last: u64,
}

impl Link {
    /// Publishes a signed batch and waits until the broker says that it is stored.
    ///
    /// The same bytes published again within the broker's window are stored once, unless `delivery` differs: what was
    /// asked for again is stored again.
    ///
    /// # Errors
    ///
    /// See [`LinkError`]; the batch may be stored all the same.
    pub async fn publish_events(
        &self,
        envelope: Bytes,
        summary: &Summary,
        delivery: Option<u64>,
    ) -> Result<(), LinkError> {
        let subject = subjects::events(&self.host);
        let mut headers = HeaderMap::new();
        let digest = Digest::of(&envelope);
        let id = delivery.map_or_else(|| digest.to_string(), |delivery| format!("{digest}.{delivery}"));
        headers.insert(async_nats::header::NATS_MESSAGE_ID, id.as_str());
        headers.insert("Replicator-Host", self.host.as_str());
        headers.insert("Replicator-Kinds", summary.kinds.as_str());
        headers.insert("Replicator-Last", summary.last.to_string().as_str());
        let context = jetstream::new(self.client()?);
        let struck = |source: std::io::Error| LinkError::Refused { subject: subject.clone(), source: source.into() };
        reach(Effect::EventsPublish, Side::Before).map_err(struck)?;
        let published = async {
            let acknowledged = context.publish_with_headers(subject.clone(), headers, envelope).await?;
            acknowledged.await
        };
        match tokio::time::timeout(super::ANSWER_WITHIN, published).await {
            Err(_elapsed) => Err(LinkError::NoAnswer { subject }),
            Ok(Ok(_stored)) => reach(Effect::EventsPublish, Side::After).map_err(struck),
            Ok(Err(error)) => Err(LinkError::Refused { subject, source: error.into() }),
        }
    }

    /// Sends a signed heartbeat; whether it arrives is not known.
    ///
    /// # Errors
    ///
    /// See [`LinkError`].
    pub async fn heartbeat(&self, envelope: Bytes) -> Result<(), LinkError> {
        let subject = subjects::heartbeat(&self.host);
        let client = self.client()?;
        let sent = tokio::time::timeout(super::ANSWER_WITHIN, client.publish(subject.clone(), envelope)).await;
        match sent {
            Err(_elapsed) => Err(LinkError::NoAnswer { subject }),
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(LinkError::Refused { subject, source: error.into() }),
        }
    }
}
