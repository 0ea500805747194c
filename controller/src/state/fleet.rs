//! What belongs to no one host: enrolment tokens, so that each one admits one host, once, whoever asks.
//!
//! Its log lies beside those of the hosts, at `<app>/_fleet/log`. Of a token's secret only the hash is in it.

use std::collections::BTreeMap;
use std::fmt;

use replicator_protocol::ids::{Digest, HostId, HostUid};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::event::{Entry, Hash};
use super::fold::{Fold, Illegal};

/// How long a token may be used at most, in milliseconds.
pub const TOKEN_LIFE: u64 = 60 * 60 * 1000;

/// The public half of a token: 128 random bits, hex in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TokenId(pub [u8; 16]);

impl fmt::Display for TokenId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&hex::encode(self.0))
    }
}

impl Serialize for TokenId {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.to_string())
    }
}

impl<'de> Deserialize<'de> for TokenId {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let mut id = [0; 16];
        let text = String::deserialize(from)?;
        hex::decode_to_slice(text, &mut id).map_err(serde::de::Error::custom)?;
        Ok(Self(id))
    }
}

/// One thing that happened to the fleet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum FleetEvent {
    /// A token may be used.
    TokenIssued {
        /// Its public half.
        id: TokenId,
        /// SHA-256 of its secret.
        secret: Hash,
        /// The host it is for.
        host: HostId,
        /// That host's number.
        uid: HostUid,
        /// Until when, in milliseconds since the Unix epoch.
        ends: u64,
    },
    /// A token was used, whatever came of it.
    TokenSpent {
        /// Which.
        id: TokenId,
    },
}

/// A token that was issued.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// SHA-256 of its secret.
    pub secret: Digest,
    /// The host it is for, and its number.
    pub host: (HostId, HostUid),
    /// Until when, in milliseconds since the Unix epoch.
    pub ends: u64,
    /// Whether it was used.
    pub spent: bool,
}

/// Everything known of the fleet as such.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FleetState {
    /// Every token there ever was.
    pub tokens: BTreeMap<TokenId, Token>,
}

impl Fold for FleetState {
    type Event = FleetEvent;

    fn says(event: &FleetEvent) -> String {
        match event {
            FleetEvent::TokenIssued { host, .. } => format!("issued a token for `{host}`"),
            FleetEvent::TokenSpent { id } => format!("spent the token {id}"),
        }
    }

    fn after(mut self, entry: &Entry<FleetEvent>) -> Result<Self, Illegal> {
        let illegal = |because: &str| Illegal { event: Self::says(&entry.event), because: because.into() };
        match &entry.event {
            FleetEvent::TokenIssued { id, secret, host, uid, ends } => {
                if *ends > entry.at.saturating_add(TOKEN_LIFE) {
                    return Err(illegal("a token lives for an hour at most"));
                }
                let token = Token { secret: secret.0, host: (host.clone(), uid.clone()), ends: *ends, spent: false };
                match self.tokens.insert(*id, token) {
                    None => Ok(self),
                    Some(_) => Err(illegal("a token's id is never used again")),
                }
            }
            FleetEvent::TokenSpent { id } => {
                let token = self.tokens.get_mut(id).ok_or_else(|| illegal("no such token was issued"))?;
                if std::mem::replace(&mut token.spent, true) {
                    return Err(illegal("a token is used once"));
                }
                Ok(self)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: TokenId = TokenId([7; 16]);

    fn entry(event: FleetEvent) -> Entry<FleetEvent> {
        Entry { version: 1, at: 1000, by: "me@here".into(), event }
    }

    fn issued(ends: u64) -> Entry<FleetEvent> {
        entry(FleetEvent::TokenIssued {
            id: ID,
            secret: Hash(Digest([1; 32])),
            host: HostId::parse("web-1").unwrap(),
            uid: HostUid::parse(&"a".repeat(32)).unwrap(),
            ends,
        })
    }

    #[test]
    fn token_is_issued_once_for_an_hour_at_most_and_spent_once() {
        let spent = entry(FleetEvent::TokenSpent { id: ID });
        let none = FleetState::default();
        assert!(none.clone().after(&spent).is_err());
        assert!(none.clone().after(&issued(1001 + TOKEN_LIFE)).is_err());
        let one = none.after(&issued(1000 + TOKEN_LIFE)).unwrap();
        assert!(one.clone().after(&issued(1000)).is_err());
        let used = one.after(&spent).unwrap();
        assert!(used.tokens[&ID].spent);
        assert!(used.after(&spent).is_err());
    }

    #[test]
    fn event_is_written_and_read_with_its_id_in_hex() {
        let text = serde_json::to_string(&entry(FleetEvent::TokenSpent { id: ID })).unwrap();
        assert!(text.contains(&"07".repeat(16)), "{text}");
        assert_eq!(serde_json::from_str::<Entry<FleetEvent>>(&text).unwrap().event, FleetEvent::TokenSpent { id: ID });
    }
}
