//! The images the engine itself uses: one file in the product, replaceable as a whole.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::spec::names::{ImageRef, ImageTag, InvalidText};

/// The file that comes with the product.
const OWN: &str = include_str!("../../distribution.json");

/// Images the engine uses where a spec names none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Distribution {
    /// The proxy's.
    pub proxy: ImageRef,
    /// That of a pod's `net` container.
    pub net: ImageRef,
    /// The gateway's, without tag: the spec gives that.
    gateway: String,
}

/// Why there is no distribution.
#[derive(Debug, thiserror::Error)]
pub enum DistributionError {
    /// It cannot be read.
    #[error("cannot read the distribution `{}`", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is no JSON object of the three.
    #[error("the distribution `{}` is not one", path.display())]
    Form {
        /// The file.
        path: PathBuf,
        /// Why.
        source: serde_json::Error,
    },
    /// A value is no image.
    #[error("the distribution `{}` has no image as `{key}`", path.display())]
    Image {
        /// The file.
        path: PathBuf,
        /// The key.
        key: &'static str,
        /// Why.
        source: InvalidText,
    },
}

impl DistributionError {
    /// One line that names the next action.
    pub fn hint(&self) -> String {
        match self {
            Self::Unreadable { path, .. } => format!("check that `{}` is there and may be read", path.display()),
            Self::Form { .. } => "write an object with `proxy`, `net` and `gateway`".into(),
            Self::Image { key: "gateway", .. } => "write `registry/namespace/name` or `local:NAME`, without tag".into(),
            Self::Image { source, .. } => format!("write {}", source.expected),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    proxy: String,
    net: String,
    gateway: String,
}

impl Distribution {
    /// The one at `path`, or the product's own.
    ///
    /// # Errors
    ///
    /// [`DistributionError`].
    pub fn load(path: Option<&Path>) -> Result<Self, DistributionError> {
        match path {
            None => Self::parse(OWN, Path::new("distribution.json")),
            Some(path) => {
                let unreadable = |source| DistributionError::Unreadable { path: path.to_owned(), source };
                Self::parse(&std::fs::read_to_string(path).map_err(unreadable)?, path)
            }
        }
    }

    fn parse(text: &str, path: &Path) -> Result<Self, DistributionError> {
        let form = |source| DistributionError::Form { path: path.to_owned(), source };
        let written: Written = serde_json::from_str(text).map_err(form)?;
        let image = |key, text: &str| {
            ImageRef::parse(text).map_err(|source| DistributionError::Image { path: path.to_owned(), key, source })
        };
        // Any tag does to see whether the name is one.
        image("gateway", &format!("{}:0", written.gateway))?;
        Ok(Self { proxy: image("proxy", &written.proxy)?, net: image("net", &written.net)?, gateway: written.gateway })
    }

    /// Whether `image` is one of these.
    pub fn has(&self, image: &ImageRef) -> bool {
        let is_gateway = || image.to_string().rsplit_once(':').is_some_and(|(name, _)| name == self.gateway);
        *image == self.proxy || *image == self.net || is_gateway()
    }

    /// The gateway's image with `tag`.
    pub fn gateway(&self, tag: &ImageTag) -> Result<ImageRef, InvalidText> {
        ImageRef::parse(&format!("{}:{}", self.gateway, tag.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_distribution_names_every_image() {
        let own = Distribution::load(None).unwrap();
        let gateway = own.gateway(&ImageTag::parse("1").unwrap()).unwrap();
        assert!([&own.proxy, &own.net, &gateway].iter().all(|image| image.is_local() && own.has(image)));
        assert!(!own.has(&ImageRef::parse("local:web:1").unwrap()));
    }

    #[test]
    fn unknown_key_and_crooked_image_are_refused() {
        let parse = |text: &str| Distribution::parse(text, Path::new("d.json"));
        assert!(matches!(
            parse(r#"{"proxy":"local:a:1","net":"local:b:1","gateway":"g","x":"y"}"#),
            Err(DistributionError::Form { .. })
        ));
        assert!(matches!(
            parse(r#"{"proxy":"local:a:1","net":"local:b","gateway":"g"}"#),
            Err(DistributionError::Image { key: "net", .. })
        ));
    }
}
