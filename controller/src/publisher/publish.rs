//! Declarations and keyrings on their way to the broker: as they were signed, once.

use async_nats::Client;
use async_nats::jetstream::stream::{DirectGetErrorKind, Stream};
use async_nats::jetstream::{self, Context};
use bytes::Bytes;
use replicator_protocol::ids::{Digest, HostUid};
use replicator_protocol::subjects;

use super::{PublishError, streams};
use crate::home::FleetFolder;
use crate::keys::Keyrings;
use crate::keys::accounts::Member;
use crate::link;
use crate::point::{self, Effect};

/// A connection over which declarations are published and reports are read.
pub struct Publisher {
    pub(super) folder: FleetFolder,
    pub(super) keyrings: Keyrings,
    context: Context,
}

/// What became of a declaration, and where its report can come at the earliest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sent {
    /// Whether the broker did not have it as the host's last one already.
    pub fresh: bool,
    /// The last of the host's batches before it was published; 0 where its report may be there already.
    pub(super) after: u64,
    pub(super) envelope: Digest,
}

impl Publisher {
    /// Connects to the fleet's broker, and gives it the streams and keyrings it should have.
    ///
    /// # Errors
    ///
    /// [`PublishError`]; nothing was published but streams and keyrings.
    pub async fn connect(folder: &FleetFolder) -> Result<Self, PublishError> {
        let admin = link::connect(folder, Member::Admin).await?;
        streams::ensure(&admin, &streams::wanted()).await?;
        publish_keyrings(&admin, &Keyrings::load(folder)?).await?;
        Self::look(folder).await
    }

    /// Connects to the fleet's broker as it is, and gives it nothing: for those who only read.
    ///
    /// # Errors
    ///
    /// [`PublishError`].
    pub async fn look(folder: &FleetFolder) -> Result<Self, PublishError> {
        let keyrings = Keyrings::load(folder)?;
        let context = jetstream::new(link::connect(folder, Member::Controller).await?);
        Ok(Self { folder: folder.clone(), keyrings, context })
    }

    /// Publishes the signed declaration `envelope` for `uid`, unless it is the host's last one already.
    ///
    /// # Errors
    ///
    /// [`PublishError::NotAcknowledged`]: publish the same bytes again. [`PublishError::Unreadable`].
    pub async fn publish_declaration(&self, uid: &HostUid, envelope: &Bytes) -> Result<Sent, PublishError> {
        let subject = subjects::declaration(uid);
        let digest = Digest::of(envelope);
        if last(&self.context, subjects::DECLARATIONS, &subject).await?.is_some_and(|(_, held)| held == *envelope) {
            return Ok(Sent { fresh: false, after: 0, envelope: digest });
        }
        let reports = last(&self.context, subjects::EVENTS, &subjects::events(uid)).await?;
        publish(&self.context, subject, envelope).await?;
        Ok(Sent { fresh: true, after: reports.map_or(0, |(sequence, _)| sequence), envelope: digest })
    }

    pub(super) async fn last(&self, name: &str, subject: &str) -> Result<Option<(u64, Bytes)>, PublishError> {
        last(&self.context, name, subject).await
    }

    pub(super) async fn stream(&self, name: &str, subject: &str) -> Result<Stream<()>, PublishError> {
        stream(&self.context, name, subject).await
    }
}

/// Publishes every keyring of the fleet that the broker does not hold; returns how many.
///
/// `client` is the administrator's.
///
/// # Errors
///
/// [`PublishError::ForeignKeyring`] where another lies in a version's place; nothing is published over it.
pub async fn publish_keyrings(client: &Client, keyrings: &Keyrings) -> Result<usize, PublishError> {
    let context = jetstream::new(client.clone());
    let mut published = 0;
    for (version, envelope) in (1..).zip(&keyrings.envelopes) {
        let subject = subjects::keyring(version);
        match last(&context, subjects::KEYRINGS, &subject).await? {
            Some((_, held)) if held == *envelope => {}
            Some(_) => return Err(PublishError::ForeignKeyring { version }),
            None => {
                publish(&context, subject, envelope).await?;
                published += 1;
            }
        }
    }
    Ok(published)
}

/// The last message on `subject` of `stream` as the broker holds it.
///
/// # Errors
///
/// [`PublishError::Unreadable`].
pub async fn held(client: &Client, stream: &str, subject: &str) -> Result<Option<Bytes>, PublishError> {
    let held = last(&jetstream::new(client.clone()), stream, subject).await?;
    Ok(held.map(|(_, payload)| payload))
}

/// Publishes `envelope` on `subject`, which a stream takes; the broker has it on disk when this returns.
///
/// # Errors
///
/// [`PublishError::NotAcknowledged`]: publish the same bytes again.
pub async fn put(client: &Client, subject: String, envelope: &Bytes) -> Result<(), PublishError> {
    publish(&jetstream::new(client.clone()), subject, envelope).await
}

/// The last message on `subject`, with its number in the stream.
async fn last(context: &Context, name: &str, subject: &str) -> Result<Option<(u64, Bytes)>, PublishError> {
    let stream = stream(context, name, subject).await?;
    match stream.direct_get_last_for_subject(subject).await {
        Ok(message) => Ok(Some((message.sequence, message.payload))),
        Err(error) if error.kind() == DirectGetErrorKind::NotFound => Ok(None),
        Err(source) => Err(PublishError::Unreadable { subject: subject.to_owned(), source }),
    }
}

async fn stream(context: &Context, name: &str, subject: &str) -> Result<Stream<()>, PublishError> {
    // No information is asked for: the controller's user may not see it, and does not need it.
    let unreadable =
        |error| async_nats::jetstream::stream::DirectGetError::with_source(DirectGetErrorKind::Other, error);
    let stream = context.get_stream_no_info(name).await;
    stream.map_err(|error| PublishError::Unreadable { subject: subject.to_owned(), source: unreadable(error) })
}

/// Publishes `envelope` and waits for the broker to say that it is on disk.
///
/// Without a message id: a receipt that goes back and forth has the bytes of an earlier one, and the broker would
/// drop it for two minutes. What is published twice counts once all the same, since only the last one is read.
async fn publish(context: &Context, subject: String, envelope: &Bytes) -> Result<(), PublishError> {
    let failed = |source| PublishError::NotAcknowledged { subject: subject.clone(), source };
    context.publish(subject.clone(), envelope.clone()).await.map_err(failed)?.await.map_err(failed)?;
    point::behind(Effect::MessagePublish);
    Ok(())
}
