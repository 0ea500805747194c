//! Batches of events: verified, stored, receipted, acknowledged; in that order.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_nats::Client;
use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, PullConsumer, pull};
use async_nats::jetstream::{self, AckKind, Message};
use bytes::Bytes;
use ed25519_dalek::SigningKey;
use futures_util::StreamExt as _;
use replicator_protocol::envelope::{Unverified, sign, verify};
use replicator_protocol::ids::HostUid;
use replicator_protocol::refusal::{Code, Refusal};
use replicator_protocol::subjects;
use replicator_protocol::wire::event::{EventBatch, Receipt};
use tokio::sync::Notify;

use super::chain::{Fault, Head};
use super::keys::Keys;
use super::metrics::Metrics;
use super::store::{Incoming, Mended, Store, StoreError};
use crate::home::FleetFolder;
use crate::keys::{KeysError, certificates};
use crate::point::{self, Effect};
use crate::publisher::{PublishError, publish};
use crate::state;
use crate::words::chain_of;

/// The durable consumer's name at the broker.
const CONSUMER: &str = "collector";
/// Most batches stored in one commit.
const TOGETHER: usize = 64;
/// How long a fetch waits for the first of them.
const FETCH: Duration = Duration::from_secs(1);
/// How long the broker waits before it hands a batch out again: longer than a commit to a slow disk.
const ACK_WAIT: Duration = Duration::from_secs(30);
/// Pause after something failed.
const PAUSE: Duration = Duration::from_secs(1);

/// What the collector needs.
#[derive(Clone)]
pub(super) struct Parts {
    pub(super) folder: FleetFolder,
    pub(super) keys: Arc<Keys>,
    pub(super) client: Client,
    pub(super) store: Arc<Store>,
    pub(super) metrics: Arc<Metrics>,
    /// Told when the store is another one than before: the broker has to be compared with it.
    pub(super) mended: Arc<Notify>,
}

impl Parts {
    /// Looks after the store's file; whatever was wrong with it is said, and hosts are soon told what it lacks.
    ///
    /// # Errors
    ///
    /// [`StoreError`]: nothing may be stored.
    fn look(&self) -> Result<(), StoreError> {
        self.say(self.store.look(state::now())?);
        Ok(())
    }

    /// After `error`: a store that is damaged is put aside, and a new one begins.
    pub(super) async fn mend(&self, error: &StoreError) {
        if !matches!(error, StoreError::Damaged { .. }) {
            return;
        }
        let parts = self.clone();
        let checked =
            tokio::task::spawn_blocking(move || parts.store.check(state::now()).map(|mended| parts.say(mended)));
        if let Ok(Err(error)) = checked.await {
            tracing::error!(error = %chain_of(&error), "the store is damaged and could not be put aside");
        }
    }

    fn say(&self, mended: Option<Mended>) {
        if let Some(mended) = mended {
            tracing::error!("{mended}");
            self.metrics.mended();
            self.mended.notify_one();
        }
    }
}

/// One round could not be finished; what was not acknowledged comes again.
#[derive(Debug, thiserror::Error)]
enum RoundError {
    #[error("cannot fetch batches from the broker")]
    Fetch(#[source] async_nats::Error),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("cannot store what came: the thread that stores has ended")]
    Thread(#[source] tokio::task::JoinError),
    #[error(transparent)]
    Keys(#[from] KeysError),
    #[error(transparent)]
    Receipt(#[from] PublishError),
}

/// Collects for as long as it is polled.
pub(super) async fn collect(parts: Parts) {
    let mut consumer = None;
    let mut last_problem = String::new();
    loop {
        let bound = match consumer.take() {
            Some(bound) => Ok(bound),
            None => bind(&parts.client).await,
        };
        let outcome = match bound {
            Ok(bound) => round(&parts, &bound).await.map(|()| bound),
            Err(error) => Err(error),
        };
        match outcome {
            Ok(bound) => {
                consumer = Some(bound);
                last_problem.clear();
            }
            Err(error) => {
                if let RoundError::Store(error) = &error {
                    parts.mend(error).await;
                }
                let problem = chain_of(&error);
                if problem != last_problem {
                    tracing::warn!(error = %problem, "collecting was interrupted; trying again");
                    last_problem = problem;
                }
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// Finds or makes the consumer: a broker that was rebuilt has none.
async fn bind(client: &Client) -> Result<PullConsumer, RoundError> {
    let config = pull::Config {
        durable_name: Some(CONSUMER.into()),
        deliver_policy: DeliverPolicy::All,
        ack_policy: AckPolicy::Explicit,
        ack_wait: ACK_WAIT,
        max_ack_pending: 1024,
        ..pull::Config::default()
    };
    let bound = jetstream::new(client.clone()).create_consumer_on_stream(config, subjects::EVENTS).await;
    let bound = bound.map_err(|error| RoundError::Fetch(error.into()))?;
    point::behind(Effect::ConsumerMake);
    Ok(bound)
}

async fn round(parts: &Parts, consumer: &PullConsumer) -> Result<(), RoundError> {
    let looking = parts.clone();
    tokio::task::spawn_blocking(move || looking.look()).await.map_err(RoundError::Thread)??;
    let fetched = consumer.fetch().max_messages(TOGETHER).expires(FETCH).messages().await;
    let mut fetched = fetched.map_err(|error| RoundError::Fetch(error.into()))?;
    let mut messages = Vec::new();
    while let Some(message) = fetched.next().await {
        messages.push(message.map_err(RoundError::Fetch)?);
    }
    if messages.is_empty() {
        parts.metrics.round();
        return Ok(());
    }
    if let Err(error) = settle(parts, &messages).await {
        for message in &messages {
            // Where this cannot be said either, the broker hands them out again by itself, later.
            let _ = message.ack_with(AckKind::Nak(Some(PAUSE))).await;
        }
        return Err(error);
    }
    for message in &messages {
        message.ack().await.map_err(RoundError::Fetch)?;
        point::behind(Effect::BatchAcknowledge);
    }
    parts.metrics.round();
    Ok(())
}

/// Verifies, stores and receipts all of `messages`.
async fn settle(parts: &Parts, messages: &[Message]) -> Result<(), RoundError> {
    let incoming = messages.iter().filter_map(|message| match read(parts, message) {
        Ok(incoming) => incoming,
        Err(error) => {
            // One host whose certificate cannot be read holds nobody else up: without a receipt it sends again.
            let refusal = if let KeysError::Refused(refusal) = &error { Some(refusal) } else { None };
            parts.metrics.fault(refusal.map_or("unreadable-certificate", |refusal| refusal.code.as_str()));
            tracing::error!(subject = %message.subject, %error, "a host's certificate cannot be read; its events wait");
            None
        }
    });
    let incoming: Vec<Incoming> = incoming.collect();
    for (host, head) in store(parts, incoming).await? {
        receipt(parts, &host, &head).await?;
    }
    Ok(())
}

/// Verifies one message under the certificate of the host whose subject it came on.
///
/// # Errors
///
/// Only what says nothing about the message: that the host's certificate cannot be read now.
fn read(parts: &Parts, message: &Message) -> Result<Option<Incoming>, KeysError> {
    let Some(host) = subjects::host_of(subjects::EVERY_EVENT, &message.subject) else {
        return Ok(None);
    };
    let envelope = message.payload.clone();
    let batch = match certificates::load(&parts.folder, &host, &parts.keys.keyrings().current)? {
        Some(certified) => {
            verify::<EventBatch>(&Unverified::new(envelope.clone()), &certified).map(|batch| (*batch).clone())
        }
        None => Err(Refusal::new(Code::UntrustedKey).with("host", &host)),
    };
    Ok(Some(Incoming { host, batch: batch.map_err(Fault::Refused), envelope }))
}

/// Stores all of `incoming` in one commit and returns the heads to be receipted.
async fn store(parts: &Parts, incoming: Vec<Incoming>) -> Result<BTreeMap<HostUid, Head>, RoundError> {
    let storing = parts.clone();
    let stored = tokio::task::spawn_blocking(move || {
        // Right before: what is stored in a file that is gone is receipted and lost.
        storing.look()?;
        let kept = storing.store.append(&incoming, state::now())?;
        Ok::<_, StoreError>((incoming, kept))
    });
    let (incoming, kept) = stored.await.map_err(RoundError::Thread)??;
    let mut heads = BTreeMap::new();
    for (one, kept) in incoming.into_iter().zip(kept) {
        parts.metrics.stored(kept.new);
        if let Some(fault) = &kept.fault {
            parts.metrics.fault(fault.code());
            tracing::warn!(host = %one.host, code = fault.code(), "a batch was not stored: {}", fault.says());
        }
        if let Some(head) = kept.head {
            heads.insert(one.host, head);
        }
    }
    Ok(heads)
}

/// Signs and publishes how far `host` is stored. Where no key would be believed the next comparison does, once one is.
async fn receipt(parts: &Parts, host: &HostUid, head: &Head) -> Result<(), RoundError> {
    let Some(key) = parts.keys.collect() else { return Ok(()) };
    publish::put(&parts.client, subjects::receipt(host), &signed(host, head, &key)).await?;
    parts.metrics.receipt();
    Ok(())
}

/// The signed receipt of `host` for everything up to `head`.
pub(super) fn signed(host: &HostUid, head: &Head, key: &SigningKey) -> Bytes {
    let receipt = Receipt {
        host: host.to_string(),
        chain: Bytes::copy_from_slice(&head.chain),
        number: head.number,
        hash: Bytes::copy_from_slice(&head.hash.0),
    };
    sign(&receipt, &[key])
}
