//! How images are written, and how a written one is pinned.

use std::fmt;

/// An image as a spec or fleet file writes it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Written {
    /// `local:NAME:TAG`: one this machine's runtime holds by that name.
    Local(String),
    /// Pinned already: `repository@sha256:…`, or `sha256:…`.
    Pinned(String),
    /// `repository:tag`: has to be asked of its registry.
    Tagged(String),
}

impl Written {
    /// Reads what was written.
    #[must_use]
    pub fn read(text: &str) -> Self {
        if let Some(local) = text.strip_prefix("local:") {
            Self::Local(local.to_owned())
        } else if replicator_protocol::resources::container::image(text).is_some() {
            Self::Pinned(text.to_owned())
        } else {
            Self::Tagged(text.to_owned())
        }
    }
}

impl fmt::Display for Written {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local(name) => write!(out, "local:{name}"),
            Self::Pinned(image) | Self::Tagged(image) => out.write_str(image),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tag_alone_is_no_pin() {
        let digest = format!("sha256:{}", "a".repeat(64));
        assert_eq!(Written::read("local:web:1"), Written::Local("web:1".into()));
        assert_eq!(Written::read(&digest), Written::Pinned(digest.clone()));
        assert_eq!(
            Written::read(&format!("x.example/web@{digest}")),
            Written::Pinned(format!("x.example/web@{digest}"))
        );
        assert_eq!(Written::read("x.example/web:1"), Written::Tagged("x.example/web:1".into()));
    }
}
