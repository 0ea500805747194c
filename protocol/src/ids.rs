//! Names and numbers, parsed once at the door and never mixed up afterwards.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// Longest slug, in bytes: the longest DNS label (RFC 1035, section 2.3.4).
const SLUG_MAX: usize = 63;
/// Longest module name, in bytes: a few slugs joined by dots.
const MODULE_MAX: usize = 127;

/// A text that is not the name it should be. The text itself is not repeated: it may be a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a {what}: expected {expected}")]
pub struct InvalidId {
    /// What was being parsed.
    pub what: &'static str,
    /// The form that is accepted.
    pub expected: &'static str,
}

fn is_slug(text: &str) -> bool {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    (1..=SLUG_MAX).contains(&text.len())
        && text.chars().all(inner)
        && text.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
        && !text.ends_with('-')
}

fn is_secret_name(text: &str) -> bool {
    text.len() <= SLUG_MAX
        && text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident, $what:literal, $expected:literal, $accepts:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// Parses the one accepted form.
            ///
            /// # Errors
            ///
            /// [`InvalidId`] where the text has another form.
            pub fn parse(text: &str) -> Result<Self, InvalidId> {
                let accepts: fn(&str) -> bool = $accepts;
                if accepts(text) {
                    Ok(Self(text.to_owned()))
                } else {
                    Err(InvalidId { what: $what, expected: $expected })
                }
            }

            /// The name as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str(&self.0)
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;
            fn from_str(text: &str) -> Result<Self, InvalidId> {
                Self::parse(text)
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidId;
            fn try_from(text: String) -> Result<Self, InvalidId> {
                Self::parse(&text)
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> String {
                name.0
            }
        }
    };
}

text_id!(
    /// The hosts under one NATS operator.
    FleetName, "fleet name", "1 to 63 of `a-z`, `0-9` and `-`, not at either end", is_slug
);
text_id!(
    /// A host's name for people.
    HostId, "host id", "1 to 63 of `a-z`, `0-9` and `-`, not at either end", is_slug
);
text_id!(
    /// A host's unguessable number on the wire: 128 random bits.
    HostUid, "host uid", "32 lower-case hex digits",
    |text| text.len() == 32 && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
);
text_id!(
    /// The resources that belong together and fail together.
    ModuleName, "module name", "slugs joined by dots, up to 127 bytes",
    |text| text.len() <= MODULE_MAX && text.split('.').all(is_slug)
);
text_id!(
    /// A resource's name inside its module; never holds a dot.
    ResourceName, "resource name", "1 to 63 of `a-z`, `0-9` and `-`, not at either end", is_slug
);
text_id!(
    /// The name of a secret, never its value.
    SecretName, "secret name", "a letter, then up to 62 letters, digits or `_`", is_secret_name
);

/// One resource of a declaration, written `module.name`; the last dot is the boundary.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ResourceId {
    /// The module it belongs to.
    pub module: ModuleName,
    /// Its name there.
    pub name: ResourceName,
}

impl ResourceId {
    /// Parses `module.name`.
    ///
    /// # Errors
    ///
    /// [`InvalidId`] where there is no dot, or either side is not a name.
    pub fn parse(text: &str) -> Result<Self, InvalidId> {
        let invalid = InvalidId { what: "resource", expected: "`module.name`, the last dot being the boundary" };
        let (module, name) = text.rsplit_once('.').ok_or(invalid)?;
        Ok(Self {
            module: ModuleName::parse(module).map_err(|_| invalid)?,
            name: ResourceName::parse(name).map_err(|_| invalid)?,
        })
    }
}

impl fmt::Display for ResourceId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}.{}", self.module, self.name)
    }
}

impl FromStr for ResourceId {
    type Err = InvalidId;
    fn from_str(text: &str) -> Result<Self, InvalidId> {
        Self::parse(text)
    }
}

impl TryFrom<String> for ResourceId {
    type Error = InvalidId;
    fn try_from(text: String) -> Result<Self, InvalidId> {
        Self::parse(&text)
    }
}

impl From<ResourceId> for String {
    fn from(id: ResourceId) -> String {
        id.to_string()
    }
}

/// A SHA-256 digest. Shown as 64 lower-case hex digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// Hashes `bytes`.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&hex::encode(self.0))
    }
}

/// The SHA-256 of a public key: names it, and never decides whether it is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId(pub [u8; 32]);

impl KeyId {
    /// The id of the key with these 32 bytes.
    #[must_use]
    pub fn of(public_key: &[u8; 32]) -> Self {
        Self(Digest::of(public_key).0)
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&hex::encode(self.0))
    }
}

/// Where a declaration stands in a host's history. A higher epoch is above every sequence of a lower one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Position {
    /// Raised only by a root-signed keyring.
    pub epoch: u64,
    /// From 1 in each epoch.
    pub sequence: u64,
}

/// Which value of a secret: greater for each later one, and never used for two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Generation(pub u64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resource_name_ends_at_the_last_dot() {
        let id = ResourceId::parse("novox.example.web").unwrap();
        assert_eq!((id.module.as_str(), id.name.as_str()), ("novox.example", "web"));
        assert_eq!(id.to_string(), "novox.example.web");
    }

    #[test]
    fn resource_without_module_is_refused() {
        for text in ["web", ".web", "web.", "a..b", "A.b", "a.b c"] {
            assert!(ResourceId::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn uid_is_exactly_128_bits_of_lower_case_hex() {
        assert!(HostUid::parse("00112233445566778899aabbccddeeff").is_ok());
        for text in ["00112233445566778899aabbccddeef", "00112233445566778899AABBCCDDEEFF", "*", ">", ""] {
            assert!(HostUid::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn invalid_name_is_not_repeated_in_the_error() {
        let message = SecretName::parse("ghp_ token").unwrap_err().to_string();
        assert!(!message.contains("ghp_"), "{message}");
    }

    #[test]
    fn position_orders_by_epoch_first() {
        assert!(Position { epoch: 2, sequence: 1 } > Position { epoch: 1, sequence: 900 });
    }
}
