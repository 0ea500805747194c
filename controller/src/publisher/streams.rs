//! The four streams of a fleet: made where they are missing, compared field by field where they are there.
//!
//! JetStream is transport and short history. Deleting and purging are denied as guards against accidents only.

use std::time::Duration;

use async_nats::Client;
use async_nats::jetstream::context::{CreateStreamError, GetStreamError, GetStreamErrorKind, UpdateStreamError};
use async_nats::jetstream::stream::{Config, DiscardPolicy, StorageType};
use async_nats::jetstream::{self, ErrorCode};
use replicator_protocol::subjects;

/// Declarations kept for each host: enough to see what came before.
const DECLARATIONS_KEPT: i64 = 8;
/// Batches kept for each host; above it that host alone is refused, and keeps them in its own ledger.
const BATCHES_KEPT: i64 = 4096;
/// How long batches are kept: a collector may be away for a week.
const BATCHES_AGE: Duration = Duration::from_hours(7 * 24);
/// Most bytes of all batches together.
const BATCHES_BYTES: i64 = 2 * 1024 * 1024 * 1024;
/// Largest message, in bytes: the largest envelope, and its headers.
const MESSAGE_MAX: i32 = 640 * 1024;

/// A stream could not be made, or is not as it has to be.
#[derive(Debug, thiserror::Error)]
pub enum StreamsError {
    /// The broker could not be asked.
    #[error("cannot look at the stream `{name}`")]
    Look {
        /// Which.
        name: String,
        /// Why.
        source: GetStreamError,
    },
    /// The broker refused to make it.
    #[error("cannot make the stream `{name}`")]
    Make {
        /// Which.
        name: String,
        /// Why.
        source: CreateStreamError,
    },
    /// The broker refused to put it right.
    #[error("cannot put the stream `{name}` right")]
    Update {
        /// Which.
        name: String,
        /// Why.
        source: UpdateStreamError,
    },
    /// The broker made something else of it.
    #[error("the stream `{name}` differs in {fields} from what was asked for")]
    Differs {
        /// Which.
        name: String,
        /// The fields.
        fields: String,
    },
}

impl StreamsError {
    /// One line that names the next action.
    pub fn hint(&self) -> String {
        match self {
            Self::Look { .. } => "look at the broker's log; JetStream has to be on and its disk writable".into(),
            Self::Make { .. } | Self::Update { .. } => "look at the broker's log, and at the room on its disk".into(),
            Self::Differs { .. } => {
                "install a current nats-server; older ones silently ignore what they do not know".into()
            }
        }
    }
}

/// What became of the streams.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ensured {
    /// Made: the broker did not have them.
    pub made: Vec<String>,
    /// Put right: somebody had changed them.
    pub corrected: Vec<String>,
}

/// The configurations, as they have to be.
pub fn wanted() -> [Config; 4] {
    let stream = |name: &str, subject: &str| Config {
        name: name.into(),
        subjects: vec![subject.into()],
        storage: StorageType::File,
        max_bytes: -1,
        max_messages: -1,
        max_messages_per_subject: -1,
        max_message_size: MESSAGE_MAX,
        num_replicas: 1,
        deny_delete: true,
        deny_purge: true,
        allow_direct: true,
        ..Config::default()
    };
    [
        Config { max_messages_per_subject: DECLARATIONS_KEPT, ..stream(subjects::DECLARATIONS, "decl.*") },
        Config {
            max_messages_per_subject: BATCHES_KEPT,
            max_age: BATCHES_AGE,
            max_bytes: BATCHES_BYTES,
            discard: DiscardPolicy::New,
            discard_new_per_subject: true,
            ..stream(subjects::EVENTS, "evt.*")
        },
        Config { max_messages_per_subject: 1, ..stream(subjects::RECEIPTS, "rcpt.*") },
        stream(subjects::KEYRINGS, &subjects::keyrings()),
    ]
}

/// Makes the streams that are missing, puts right those that were changed, and reads each one back.
///
/// `client` is the administrator's.
///
/// # Errors
///
/// [`StreamsError`]; those before it are right.
pub async fn ensure(client: &Client) -> Result<Ensured, StreamsError> {
    let context = jetstream::new(client.clone());
    let mut ensured = Ensured::default();
    for wanted in wanted() {
        let name = wanted.name.clone();
        let mut have = match context.get_stream(&name).await {
            Ok(stream) => stream.cached_info().config.clone(),
            Err(error) if is_missing(&error) => {
                let made = context.create_stream(wanted.clone()).await;
                let made = made.map_err(|source| StreamsError::Make { name: name.clone(), source })?;
                ensured.made.push(name.clone());
                made.cached_info().config.clone()
            }
            Err(source) => return Err(StreamsError::Look { name, source }),
        };
        if !differences(&wanted, &have).is_empty() && !ensured.made.contains(&name) {
            let updated = context.update_stream(wanted.clone()).await;
            have = updated.map_err(|source| StreamsError::Update { name: name.clone(), source })?.config;
            ensured.corrected.push(name.clone());
        }
        let fields = differences(&wanted, &have);
        if !fields.is_empty() {
            return Err(StreamsError::Differs { name, fields: fields.join(", ") });
        }
    }
    Ok(ensured)
}

fn is_missing(error: &GetStreamError) -> bool {
    matches!(error.kind(), GetStreamErrorKind::JetStream(error) if error.error_code() == ErrorCode::STREAM_NOT_FOUND)
}

/// The fields we rely on that differ.
fn differences(wanted: &Config, have: &Config) -> Vec<&'static str> {
    let fields = [
        ("subjects", wanted.subjects == have.subjects),
        ("storage", wanted.storage == have.storage),
        ("retention", wanted.retention == have.retention),
        ("max_bytes", wanted.max_bytes == have.max_bytes),
        ("max_msgs", wanted.max_messages == have.max_messages),
        ("max_msgs_per_subject", wanted.max_messages_per_subject == have.max_messages_per_subject),
        ("max_age", wanted.max_age == have.max_age),
        ("max_msg_size", wanted.max_message_size == have.max_message_size),
        ("discard", wanted.discard == have.discard),
        ("discard_new_per_subject", wanted.discard_new_per_subject == have.discard_new_per_subject),
        ("deny_delete", wanted.deny_delete == have.deny_delete),
        ("deny_purge", wanted.deny_purge == have.deny_purge),
        ("allow_direct", wanted.allow_direct == have.allow_direct),
        ("sealed", wanted.sealed == have.sealed),
        ("no_ack", wanted.no_ack == have.no_ack),
        ("mirror", have.mirror.is_none()),
        ("sources", have.sources.as_ref().is_none_or(Vec::is_empty)),
        ("republish", have.republish.is_none()),
    ];
    fields.into_iter().filter(|(_, same)| !same).map(|(name, _)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noisy_host_is_refused_alone_and_old_declarations_give_way() {
        let [declarations, events, receipts, _] = wanted();
        assert!(events.discard_new_per_subject && events.discard == DiscardPolicy::New);
        assert_eq!(declarations.discard, DiscardPolicy::Old);
        assert_eq!(receipts.max_messages_per_subject, 1);
    }

    #[test]
    fn difference_is_named() {
        let [_, events, ..] = wanted();
        let other = Config { discard_new_per_subject: false, max_bytes: 1, ..events.clone() };
        assert_eq!(differences(&events, &events), Vec::<&str>::new());
        assert_eq!(differences(&events, &other), ["max_bytes", "discard_new_per_subject"]);
    }
}
