//! Fetching: the last message on a subject of this host's own, as the broker has stored it.

use async_nats::jetstream;
use async_nats::jetstream::stream::DirectGetErrorKind;
use bytes::Bytes;
use replicator_protocol::subjects;

use super::{Link, LinkError};

impl Link {
    /// The last declaration published for this host.
    ///
    /// # Errors
    ///
    /// See [`LinkError`].
    pub async fn declaration(&self) -> Result<Option<Bytes>, LinkError> {
        self.last(subjects::DECLARATIONS, subjects::declaration(&self.host)).await
    }

    /// The last receipt for this host's events.
    ///
    /// # Errors
    ///
    /// See [`LinkError`].
    pub async fn receipt(&self) -> Result<Option<Bytes>, LinkError> {
        self.last(subjects::RECEIPTS, subjects::receipt(&self.host)).await
    }

    /// Keyring `version`; `None` where there is none yet.
    ///
    /// # Errors
    ///
    /// See [`LinkError`].
    pub async fn keyring(&self, version: u64) -> Result<Option<Bytes>, LinkError> {
        self.last(subjects::KEYRINGS, subjects::keyring(version)).await
    }

    /// A direct get by subject. Asked without the stream's description: hosts may not read that.
    async fn last(&self, stream: &'static str, subject: String) -> Result<Option<Bytes>, LinkError> {
        let context = jetstream::new(self.client()?);
        let refused = |subject: &str, source: Box<dyn std::error::Error + Send + Sync>| LinkError::Refused {
            subject: subject.to_owned(),
            source,
        };
        let stream = context.get_stream_no_info(stream).await.map_err(|error| refused(&subject, error.into()))?;
        let asked = tokio::time::timeout(super::ANSWER_WITHIN, stream.direct_get_last_for_subject(subject.clone()));
        match asked.await {
            Err(_elapsed) => Err(LinkError::NoAnswer { subject }),
            Ok(Ok(message)) => Ok(Some(message.payload)),
            Ok(Err(error)) => match error.kind() {
                DirectGetErrorKind::NotFound => Ok(None),
                DirectGetErrorKind::TimedOut => Err(LinkError::NoAnswer { subject }),
                DirectGetErrorKind::InvalidSubject
                | DirectGetErrorKind::Request
                | DirectGetErrorKind::ErrorResponse(..)
                | DirectGetErrorKind::Other => Err(refused(&subject, error.into())),
            },
        }
    }
}
