//! The texts a file may hold, each a type with one parser.

use std::fmt;

use replicator_protocol::ids::HostId;

/// A text of another form. The text itself is not repeated: it may be a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("is no {what}: expected {expected}")]
pub struct InvalidText {
    /// What was being parsed.
    pub what: &'static str,
    /// The form that is accepted.
    pub expected: &'static str,
}

macro_rules! text {
    ($(#[$doc:meta])* $name:ident, $what:literal, $expected:literal, $accepts:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(String);

        impl $name {
            /// Parses the one accepted form.
            ///
            /// # Errors
            ///
            /// [`InvalidText`] where the text has another form.
            pub fn parse(text: &str) -> Result<Self, InvalidText> {
                let accepts: fn(&str) -> bool = $accepts;
                if accepts(text) {
                    Ok(Self(text.to_owned()))
                } else {
                    Err(InvalidText { what: $what, expected: $expected })
                }
            }

            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str(&self.0)
            }
        }
    };
}

fn is_slug(text: &str) -> bool {
    HostId::parse(text).is_ok()
}

fn is_domain(text: &str) -> bool {
    text.len() <= 253 && text.contains('.') && text.split('.').all(is_slug)
}

/// Longest tag of an image, in bytes, as registries have it.
const TAG_MAX: usize = 128;

fn is_tag(text: &str) -> bool {
    (1..=TAG_MAX).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b))
        && text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
}

fn is_repository(text: &str) -> bool {
    let mut parts = text.split('/').peekable();
    let first = parts.peek().copied().unwrap_or_default();
    let part = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"._-".contains(&b))
            && part.starts_with(|c: char| c.is_ascii_alphanumeric())
            && part.ends_with(|c: char| c.is_ascii_alphanumeric())
    };
    let registry = |text: &str| {
        let (host, port) = text.split_once(':').unwrap_or((text, "1"));
        part(host) && port.parse::<u16>().is_ok_and(|port| port > 0)
    };
    let has_registry = first.contains([':', '.']) && text.contains('/');
    text.len() <= 255 && text.split('/').skip(usize::from(has_registry)).all(part) && (!has_registry || registry(first))
}

fn is_digest(text: &str) -> bool {
    let hex = text.strip_prefix("sha256:").unwrap_or_default();
    hex.len() == 64 && hex.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

text!(
    /// A short name that may stand in a DNS label.
    Slug, "slug", "1 to 63 of `a-z`, `0-9` and `-`, not at either end", is_slug
);
text!(
    /// A DNS zone names may be written in.
    Zone, "zone", "a domain in lower case, as `acme.example`", is_domain
);
text!(
    /// A full public name: one label under a zone.
    HostName, "host name", "one label under a zone, in lower case, as `api.acme.example`",
    |text| is_domain(text) && text.matches('.').count() >= 2 || text.ends_with(".localhost") && is_domain(text)
);
text!(
    /// A login of the operating system.
    Login, "login", "1 to 32 of `a-z`, `0-9`, `_` and `-`, starting with a letter or `_`",
    |text| (1..=32).contains(&text.len())
        && text.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"_-".contains(&b))
);
text!(
    /// A repository of images, without tag or digest.
    ImageRepository, "image repository", "`registry/namespace/name` in lower case, without tag or digest", is_repository
);
text!(
    /// The tag of an image.
    ImageTag, "image tag", "1 to 128 letters, digits, `_`, `.` and `-`", is_tag
);
text!(
    /// `sha256:` and 64 hex digits.
    ImageDigest, "image digest", "`sha256:` and 64 lower-case hex digits", is_digest
);
text!(
    /// The name of an environment variable.
    VariableName, "name of a variable", "letters, digits and `_`, not starting with a digit",
    |text| (1..=128).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        && !text.starts_with(|c: char| c.is_ascii_digit())
);

impl HostName {
    /// Whether it is exactly one label under `zone`.
    pub fn is_under(&self, zone: &Zone) -> bool {
        self.0.strip_suffix(zone.as_str()).and_then(|rest| rest.strip_suffix('.')).is_some_and(is_slug)
    }
}

/// A repository of code: `owner/name`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RepoName {
    owner: String,
    name: String,
}

impl RepoName {
    /// Parses `owner/name`.
    ///
    /// # Errors
    ///
    /// [`InvalidText`] where the text has another form.
    pub fn parse(text: &str) -> Result<Self, InvalidText> {
        let part = |part: &str| {
            (1..=100).contains(&part.len())
                && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
                && part.bytes().any(|b| b.is_ascii_alphanumeric())
        };
        match text.split_once('/') {
            Some((owner, name)) if part(owner) && part(name) => {
                Ok(Self { owner: owner.to_owned(), name: name.to_owned() })
            }
            Some(_) | None => Err(InvalidText {
                what: "repository",
                expected: "`owner/name`, each of letters, digits, `.`, `_` and `-`",
            }),
        }
    }

    /// Whose it is.
    pub fn owner(&self) -> &str {
        &self.owner
    }

    /// Its name, without the owner.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its name as it stands in a public name: lower case, everything else a `-`.
    pub fn label(&self) -> Slug {
        let mapped: String = self.name.to_ascii_lowercase().replace(|c: char| !c.is_ascii_alphanumeric(), "-");
        let mut label = mapped.trim_matches('-').to_owned();
        label.truncate(63);
        Slug(label.trim_end_matches('-').to_owned())
    }
}

impl fmt::Display for RepoName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.owner, self.name)
    }
}

/// How an image is named in a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ImageRef {
    /// `repository@sha256:…`: pulled where it is missing.
    Registry {
        /// Where it comes from.
        repository: ImageRepository,
        /// What it is.
        digest: ImageDigest,
    },
    /// `sha256:…`: held by the machine already, never pulled.
    Held(ImageDigest),
    /// `local:NAME:TAG`: resolved through the runtime of this machine, when it is planned.
    Local {
        /// Its name there.
        name: ImageRepository,
        /// Its tag there.
        tag: ImageTag,
    },
    /// `repository:tag`: resolved to a digest when it is planned, where a tag may stand at all.
    Tagged {
        /// Where it comes from.
        repository: ImageRepository,
        /// What it is called there today.
        tag: ImageTag,
    },
}

impl ImageRef {
    /// Parses one of the four forms.
    ///
    /// # Errors
    ///
    /// [`InvalidText`] where the text has none of them.
    pub fn parse(text: &str) -> Result<Self, InvalidText> {
        let invalid = InvalidText {
            what: "image",
            expected: "`repository@sha256:…`, `sha256:…` for one the machine holds, or `local:NAME:TAG`",
        };
        if is_digest(text) {
            return Ok(Self::Held(ImageDigest(text.to_owned())));
        }
        if let Some((repository, digest)) = text.split_once('@') {
            let digest = ImageDigest::parse(digest).map_err(|_| invalid)?;
            return Ok(Self::Registry { repository: ImageRepository::parse(repository).map_err(|_| invalid)?, digest });
        }
        let local = text.strip_prefix("local:");
        let (name, tag) = local.unwrap_or(text).rsplit_once(':').ok_or(invalid)?;
        let (name, tag) =
            (ImageRepository::parse(name).map_err(|_| invalid)?, ImageTag::parse(tag).map_err(|_| invalid)?);
        Ok(if local.is_some() { Self::Local { name, tag } } else { Self::Tagged { repository: name, tag } })
    }

    /// Whether it can only mean something on this very machine.
    pub fn is_local(&self) -> bool {
        match self {
            Self::Local { .. } => true,
            Self::Registry { .. } | Self::Held(_) | Self::Tagged { .. } => false,
        }
    }
}

impl fmt::Display for ImageRef {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Registry { repository, digest } => write!(out, "{repository}@{digest}"),
            Self::Held(digest) => write!(out, "{digest}"),
            Self::Local { name, tag } => write!(out, "local:{name}:{tag}"),
            Self::Tagged { repository, tag } => write!(out, "{repository}:{tag}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn image_is_read_in_its_four_forms() {
        let digest = format!("sha256:{}", "0a".repeat(32));
        for text in [
            format!("registry.example:5000/acme/web@{digest}"),
            digest.clone(),
            "local:replicator-demo/web:1".into(),
            "acme/web:1.2".into(),
        ] {
            assert_eq!(ImageRef::parse(&text).unwrap().to_string(), text);
        }
        assert!(matches!(ImageRef::parse("local:replicator-demo/web:1").unwrap(), ImageRef::Local { .. }));
        for text in ["acme/web", "acme/web@sha256:00", "ACME/web:1", "local:web", "", ":1", "a b:1", "acme//web:1"] {
            assert!(ImageRef::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn host_name_is_one_label_under_its_zone() {
        let zone = Zone::parse("acme.localhost").unwrap();
        assert!(HostName::parse("api.acme.localhost").unwrap().is_under(&zone));
        assert!(!HostName::parse("a.api.acme.localhost").unwrap().is_under(&zone));
        assert!(!HostName::parse("apiacme.localhost").unwrap().is_under(&zone));
    }

    #[test]
    fn repository_becomes_a_label() {
        assert_eq!(RepoName::parse("Acme/My_Web.app").unwrap().label().as_str(), "my-web-app");
        for text in ["web", "a/b/c", "/web", "a/..", "a b/c"] {
            assert!(RepoName::parse(text).is_err(), "{text}");
        }
    }
}
