//! The four streams of a fleet: made where they are missing, compared field by field where they are there.
//!
//! JetStream is transport and short history. Deleting and purging are denied as guards against accidents only: an
//! administrator can still shrink a stream, or have its messages changed on their way in. So a configuration is read
//! as the broker tells it, and whatever stands in it that was not asked for is a difference.

use std::time::Duration;

use async_nats::Client;
use async_nats::jetstream::context::{CreateStreamError, RequestError, UpdateStreamError};
use async_nats::jetstream::response::Response;
use async_nats::jetstream::stream::{Config, DiscardPolicy, StorageType};
use async_nats::jetstream::{self, Context, ErrorCode};
use replicator_protocol::subjects;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::point::{self, Effect};

/// Declarations kept for each host: enough to see what came before.
const DECLARATIONS_KEPT: i64 = 8;
/// Batches kept for each host; above it that host alone is refused, and keeps them in its own ledger.
const BATCHES_KEPT: i64 = 4096;
/// How long batches are kept: a collector may be away for a week.
const BATCHES_AGE: Duration = Duration::from_hours(7 * 24);
/// Most bytes of all batches together.
const BATCHES_BYTES: i64 = 2 * 1024 * 1024 * 1024;
/// Most bytes of all declarations together: 8 of 100 KiB for each of 10,000 hosts. Above it the oldest give way, and
/// `serve` publishes the last one of each host again; the alarm comes before.
const DECLARATIONS_BYTES: i64 = 8 * 1024 * 1024 * 1024;
/// Most bytes of all receipts together, some 300 each: one for each host.
const RECEIPTS_BYTES: i64 = 64 * 1024 * 1024;
/// Most bytes of all keyrings together. Above it a new one is refused: none that is there ever gives way.
const KEYRINGS_BYTES: i64 = 64 * 1024 * 1024;
/// How long a message id is remembered: as long as the broker does unless told otherwise.
const DUPLICATES_AGE: Duration = Duration::from_secs(120);
/// Of a hundred bytes of a stream, so many in use are an alarm.
const ALARM_PERCENT: u64 = 70;
/// What the broker adds to a stream's metadata by itself starts so.
const OF_THE_BROKER: &str = "_nats.";
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
        source: RequestError,
    },
    /// The broker has no answer about it.
    #[error("the broker does not tell of the stream `{name}`")]
    Untold {
        /// Which.
        name: String,
        /// Why.
        source: jetstream::Error,
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
            Self::Look { .. } | Self::Untold { .. } => {
                "look at the broker's log; JetStream has to be on and its disk writable".into()
            }
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
    pub corrected: Vec<Corrected>,
    /// How full each one is.
    pub fills: Vec<Fill>,
}

/// A stream that somebody had changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Corrected {
    /// Its name.
    pub name: String,
    /// The fields that differed.
    pub fields: Vec<String>,
}

/// How full a stream is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fill {
    /// Its name.
    pub stream: String,
    /// Bytes in use.
    pub bytes: u64,
    /// Bytes there may be.
    pub room: u64,
}

impl Fill {
    /// Of a hundred bytes, how many are in use.
    #[must_use]
    pub fn percent(&self) -> u64 {
        let share = u128::from(self.bytes) * 100 / u128::from(self.room.max(1));
        u64::try_from(share).unwrap_or(u64::MAX)
    }

    /// Whether somebody has to look at it.
    #[must_use]
    pub fn alarms(&self) -> bool {
        self.percent() >= ALARM_PERCENT
    }
}

/// A stream as the broker tells of it.
#[derive(Deserialize)]
struct Told {
    config: Map<String, Value>,
    state: State,
}

#[derive(Deserialize)]
struct State {
    bytes: u64,
}

/// The configurations, as they have to be.
#[must_use]
pub fn wanted() -> [Config; 4] {
    let stream = |name: &str, subject: &str, bytes: i64| Config {
        name: name.into(),
        subjects: vec![subject.into()],
        storage: StorageType::File,
        max_bytes: bytes,
        max_messages: -1,
        max_messages_per_subject: -1,
        max_message_size: MESSAGE_MAX,
        max_consumers: -1,
        duplicate_window: DUPLICATES_AGE,
        num_replicas: 1,
        deny_delete: true,
        deny_purge: true,
        allow_direct: true,
        ..Config::default()
    };
    [
        Config {
            max_messages_per_subject: DECLARATIONS_KEPT,
            ..stream(subjects::DECLARATIONS, subjects::EVERY_DECLARATION, DECLARATIONS_BYTES)
        },
        Config {
            max_messages_per_subject: BATCHES_KEPT,
            max_age: BATCHES_AGE,
            discard: DiscardPolicy::New,
            discard_new_per_subject: true,
            ..stream(subjects::EVENTS, subjects::EVERY_EVENT, BATCHES_BYTES)
        },
        Config { max_messages_per_subject: 1, ..stream(subjects::RECEIPTS, subjects::EVERY_RECEIPT, RECEIPTS_BYTES) },
        Config { discard: DiscardPolicy::New, ..stream(subjects::KEYRINGS, subjects::EVERY_KEYRING, KEYRINGS_BYTES) },
    ]
}

/// Makes the streams of `wanted` that are missing, puts right those that were changed, and reads each one back.
///
/// `client` is the administrator's; `wanted` is what [`wanted`] says.
///
/// # Errors
///
/// [`StreamsError`]; those before it are right.
pub async fn ensure(client: &Client, wanted: &[Config]) -> Result<Ensured, StreamsError> {
    let context = jetstream::new(client.clone());
    let mut ensured = Ensured::default();
    for wanted in wanted {
        let name = wanted.name.clone();
        let mut told = told(&context, &name).await?;
        let found = told.as_ref().map(|told| differences(wanted, &told.config));
        match found {
            Some(fields) if fields.is_empty() => {}
            Some(fields) => {
                let updated = context.update_stream(wanted.clone()).await;
                updated.map_err(|source| StreamsError::Update { name: name.clone(), source })?;
                point::behind(Effect::StreamUpdate);
                ensured.corrected.push(Corrected { name: name.clone(), fields });
                told = self::told(&context, &name).await?;
            }
            None => {
                let made = context.create_stream(wanted.clone()).await;
                made.map_err(|source| StreamsError::Make { name: name.clone(), source })?;
                point::behind(Effect::StreamMake);
                ensured.made.push(name.clone());
                told = self::told(&context, &name).await?;
            }
        }
        let left = told.as_ref().map_or_else(|| vec!["name".into()], |told| differences(wanted, &told.config));
        if !left.is_empty() {
            return Err(StreamsError::Differs { name, fields: left.join(", ") });
        }
        let bytes = told.map_or(0, |told| told.state.bytes);
        ensured.fills.push(Fill { stream: name, bytes, room: u64::try_from(wanted.max_bytes).unwrap_or(u64::MAX) });
    }
    Ok(ensured)
}

/// The stream `name`, where the broker has one: every field it tells, known here or not.
async fn told(context: &Context, name: &str) -> Result<Option<Told>, StreamsError> {
    let answer = context.request(format!("STREAM.INFO.{name}"), &()).await;
    match answer.map_err(|source| StreamsError::Look { name: name.into(), source })? {
        Response::Ok(told) => Ok(Some(told)),
        Response::Err { error } if error.error_code() == ErrorCode::STREAM_NOT_FOUND => Ok(None),
        Response::Err { error } => Err(StreamsError::Untold { name: name.into(), source: error }),
    }
}

/// The fields in which `have` is not what was asked for, sorted: those asked for, and those nobody asked for that
/// say something all the same.
fn differences(wanted: &Config, have: &Map<String, Value>) -> Vec<String> {
    let asked = serde_json::to_value(wanted).unwrap_or_default();
    let empty = Map::new();
    let asked = asked.as_object().unwrap_or(&empty);
    let mut fields: Vec<String> = asked.keys().chain(have.keys()).cloned().collect();
    fields.sort();
    fields.dedup();
    fields.retain(|field| match (asked.get(field), have.get(field)) {
        (Some(asked), Some(have)) => asked != have && !(is_nothing(field, asked) && is_nothing(field, have)),
        (Some(one), None) | (None, Some(one)) => !is_nothing(field, one),
        (None, None) => false,
    });
    fields
}

/// Whether the value of a field says no more than its absence would.
fn is_nothing(field: &str, value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(set) => !set,
        Value::Number(number) => number.as_i64() == Some(0),
        Value::String(text) => text.is_empty() || (field == "compression" && text == "none"),
        Value::Array(all) => all.is_empty(),
        Value::Object(all) => {
            all.is_empty() || (field == "metadata" && all.keys().all(|key| key.starts_with(OF_THE_BROKER)))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn as_told(config: &Config) -> Map<String, Value> {
        serde_json::to_value(config).unwrap().as_object().unwrap().clone()
    }

    #[test]
    fn noisy_host_is_refused_alone_and_old_declarations_give_way() {
        let [declarations, events, receipts, keyrings] = wanted();
        assert!(events.discard_new_per_subject && events.discard == DiscardPolicy::New);
        assert_eq!(declarations.discard, DiscardPolicy::Old);
        assert_eq!(receipts.max_messages_per_subject, 1);
        assert_eq!(keyrings.discard, DiscardPolicy::New, "none that is there gives way");
    }

    #[test]
    fn difference_is_named() {
        let [_, events, ..] = wanted();
        let other = Config { discard_new_per_subject: false, max_bytes: 1, ..events.clone() };
        assert_eq!(differences(&events, &as_told(&events)), Vec::<String>::new());
        assert_eq!(differences(&events, &as_told(&other)), ["discard_new_per_subject", "max_bytes"]);
    }

    #[test]
    fn field_nobody_asked_for_is_a_difference_unless_it_says_nothing() {
        let [_, events, ..] = wanted();
        let with = |field: &str, value: Value| {
            let mut told = as_told(&events);
            told.insert(field.into(), value);
            differences(&events, &told)
        };
        for (field, value) in [
            ("republish", json!({ "src": ">", "dest": "copy.>" })),
            ("subject_transform", json!({ "src": "evt.*", "dest": "evt.x" })),
            ("sources", json!([{ "name": "OTHER" }])),
            ("pause_until", json!("2030-01-01T00:00:00Z")),
            ("allow_msg_ttl", json!(true)),
            ("metadata", json!({ "owner": "me" })),
            ("of_a_later_broker", json!(1)),
        ] {
            assert_eq!(with(field, value), [field]);
        }
        for (field, value) in [
            ("compression", json!("none")),
            ("consumer_limits", json!({})),
            ("mirror_direct", json!(false)),
            ("metadata", json!({ "_nats.ver": "2.15.1" })),
        ] {
            assert_eq!(with(field, value), Vec::<String>::new(), "{field}");
        }
    }

    #[test]
    fn stream_alarms_from_seventy_percent_of_its_bytes() {
        let fill = |bytes| Fill { stream: "EVT".into(), bytes, room: 2000 };
        assert_eq!((fill(1399).percent(), fill(1399).alarms()), (69, false));
        assert_eq!((fill(1400).percent(), fill(1400).alarms()), (70, true));
        assert!(wanted().iter().all(|wanted| wanted.max_bytes > 0), "without a bound there is no alarm");
    }
}
