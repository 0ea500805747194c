//! Declarations and keyrings on their way to the broker: as they were signed, once.

use async_nats::Client;
use async_nats::jetstream::context::PublishErrorKind;
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::{DirectGetErrorKind, Stream};
use async_nats::jetstream::{self, Context};
use bytes::Bytes;
use replicator_protocol::envelope::{Unverified, Verified, verify};
use replicator_protocol::ids::{Digest, HostUid, Position};
use replicator_protocol::subjects;
use replicator_protocol::wire::declaration::Declaration;

use super::{PublishError, streams};
use crate::home::FleetFolder;
use crate::keys::Keyrings;
use crate::keys::accounts::Member;
use crate::link;
use crate::point::{self, Effect};
use crate::state;

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

    /// Publishes the signed declaration `envelope` at `position` for `uid`, as [`put_declaration`] does.
    ///
    /// # Errors
    ///
    /// See [`put_declaration`].
    pub async fn publish_declaration(
        &self,
        uid: &HostUid,
        position: Position,
        envelope: &Bytes,
    ) -> Result<Sent, PublishError> {
        let reports = last(&self.context, subjects::EVENTS, &subjects::events(uid)).await?;
        let fresh = place(&self.context, &self.keyrings, uid, position, envelope).await?;
        let after = reports.filter(|_| fresh).map_or(0, |(sequence, _)| sequence);
        Ok(Sent { fresh, after, envelope: Digest::of(envelope) })
    }

    pub(super) async fn last(&self, name: &str, subject: &str) -> Result<Option<(u64, Bytes)>, PublishError> {
        last(&self.context, name, subject).await
    }

    pub(super) async fn stream(&self, name: &str, subject: &str) -> Result<Stream<()>, PublishError> {
        stream(&self.context, name, subject).await
    }
}

/// Publishes the signed declaration `envelope` at `position` for `uid`, unless it is the host's last one already.
/// Whether it did. It never takes the place of a later one, nor of another of the same number: a host asks for the last
/// one alone.
///
/// # Errors
///
/// [`PublishError::Overtaken`]: such a one lies there; nothing was published. [`PublishError::NotAcknowledged`]: publish
/// the same bytes again. [`PublishError::Unreadable`].
pub async fn put_declaration(
    client: &Client,
    keyrings: &Keyrings,
    uid: &HostUid,
    position: Position,
    envelope: &Bytes,
) -> Result<bool, PublishError> {
    place(&jetstream::new(client.clone()), keyrings, uid, position, envelope).await
}

async fn place(
    context: &Context,
    keyrings: &Keyrings,
    uid: &HostUid,
    position: Position,
    envelope: &Bytes,
) -> Result<bool, PublishError> {
    let subject = subjects::declaration(uid);
    loop {
        let held = last(context, subjects::DECLARATIONS, &subject).await?;
        if let Some((_, held)) = &held {
            if held == envelope {
                return Ok(false);
            }
            if let Some(have) = declared_at(held, keyrings).filter(|have| *have >= position) {
                return Err(PublishError::Overtaken { got: position, have });
            }
        }
        let after = held.map_or(0, |(sequence, _)| sequence);
        // Where somebody published since, it is another one that lies there: each time round is one of theirs.
        if publish_after(context, subject.clone(), envelope, after).await? {
            return Ok(true);
        }
    }
}

/// The position of the declaration in `envelope`, where it is one of this fleet's.
fn declared_at(envelope: &Bytes, keyrings: &Keyrings) -> Option<Position> {
    let trust = keyrings.current.at(state::now());
    let declaration: Verified<Declaration> = verify(&Unverified::new(envelope.clone()), &trust).ok()?;
    Some(Position { epoch: declaration.epoch, sequence: declaration.sequence })
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

/// Publishes `envelope` on `subject` as [`put`] does, unless its last message is another than `after`, the one that was
/// looked at (0 for none). Whether it did.
///
/// # Errors
///
/// [`PublishError::NotAcknowledged`]: publish the same bytes again.
pub async fn put_after(client: &Client, subject: String, envelope: &Bytes, after: u64) -> Result<bool, PublishError> {
    publish_after(&jetstream::new(client.clone()), subject, envelope, after).await
}

/// The last message on `subject` of `stream` as the broker holds it, with its number in the stream.
///
/// # Errors
///
/// [`PublishError::Unreadable`].
pub async fn held_at(client: &Client, stream: &str, subject: &str) -> Result<Option<(u64, Bytes)>, PublishError> {
    last(&jetstream::new(client.clone()), stream, subject).await
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

/// As [`publish`], where the last message on `subject` is the one numbered `after`. Whether it did.
async fn publish_after(context: &Context, subject: String, envelope: &Bytes, after: u64) -> Result<bool, PublishError> {
    let failed = |source| PublishError::NotAcknowledged { subject: subject.clone(), source };
    let message = PublishMessage::build().payload(envelope.clone()).expected_last_subject_sequence(after);
    match context.send_publish(subject.clone(), message).await.map_err(failed)?.await {
        Ok(_) => {
            point::behind(Effect::MessagePublish);
            Ok(true)
        }
        Err(error) if error.kind() == PublishErrorKind::WrongLastSequence => Ok(false),
        Err(error) => Err(failed(error)),
    }
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
