//! From a file to a checked value, or to every fault of the file at once.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use super::finding::Findings;
use super::yaml::{self, Node};

/// A checked value and the file it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded<T> {
    /// What the file says.
    pub value: T,
    /// Where it was read.
    pub path: PathBuf,
    /// Its warnings, and where everything stands: further findings are added to a copy.
    pub findings: Findings,
}

/// Why a file gives no value.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// It could not be read.
    #[error("cannot read `{}`", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is not text.
    #[error("`{}` is not text in UTF-8 (byte {at} is not)", path.display())]
    NotText {
        /// The file.
        path: PathBuf,
        /// The first byte that is none.
        at: usize,
    },
    /// It, or each of several that are read together, was read and is refused; the findings hold every fault.
    #[error("{}", refused.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n\n"))]
    Refused {
        /// What was found in each that is refused.
        refused: Vec<Findings>,
    },
}

impl LoadError {
    /// One line that names the next action.
    pub fn hint(&self) -> String {
        match self {
            Self::Unreadable { path, .. } => format!("check that `{}` is there and may be read", path.display()),
            Self::NotText { path, .. } => format!("save `{}` in UTF-8", path.display()),
            Self::Refused { refused } => {
                let files: Vec<_> = refused.iter().map(Findings::file).collect();
                format!("check it again with `replicator validate {}`", files.join(" "))
            }
        }
    }
}

/// What was made of a file: a value where nothing essential is missing, and all findings.
#[derive(Debug)]
pub struct Examined<T> {
    /// The value; there may be faults although there is one.
    pub value: Option<T>,
    /// The findings.
    pub findings: Findings,
}

impl<T> Examined<T> {
    /// The value, where nothing refuses it.
    ///
    /// # Errors
    ///
    /// [`LoadError::Refused`].
    pub fn accept(self, path: &Path) -> Result<Loaded<T>, LoadError> {
        match self.value {
            Some(value) if !self.findings.is_refused() => {
                Ok(Loaded { value, path: path.to_owned(), findings: self.findings })
            }
            Some(_) | None => Err(LoadError::Refused { refused: vec![self.findings] }),
        }
    }
}

/// Reads a text file, up to what tells that it is too large.
///
/// # Errors
///
/// [`LoadError::Unreadable`] or [`LoadError::NotText`].
pub fn text(path: &Path) -> Result<String, LoadError> {
    // One byte more than is accepted, so that what never ends is seen to be too large.
    let most = u64::try_from(yaml::SIZE_MAX).map_or(u64::MAX, |size| size + 1);
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(most).read_to_end(&mut bytes));
    read.map_err(|source| LoadError::Unreadable { path: path.to_owned(), source })?;
    let text = String::from_utf8(bytes)
        .map_err(|error| LoadError::NotText { path: path.to_owned(), at: error.utf8_error().valid_up_to() })?;
    // Some editors start a file with a byte order mark.
    Ok(text.strip_prefix('\u{feff}').map_or_else(|| text.clone(), str::to_owned))
}

/// Reads `text` with `read`, which is given the whole tree.
pub(crate) fn examine<T>(path: &Path, text: &str, read: impl FnOnce(&Node, &mut Findings) -> Option<T>) -> Examined<T> {
    let mut findings = Findings::new(path, text);
    let node = yaml::parse(text, &mut findings);
    let value = node.and_then(|node| {
        let value = read(&node, &mut findings);
        // Last, for a reader knows better words for the same place.
        super::read::names_only(&node, &mut findings);
        value
    });
    Examined { value, findings }
}
