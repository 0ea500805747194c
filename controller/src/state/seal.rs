//! The data key, and the one way objects are encrypted under it.
//!
//! XChaCha20-Poly1305 with a random nonce; the associated data is the object's path, so that an object copied
//! to another place does not open. The key lies beside what gets backed up, never inside it.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chacha20poly1305::aead::{Aead as _, KeyInit as _, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use zeroize::Zeroizing;

use crate::beside::Beside;
use crate::home::Home;
use crate::point::{self, Effect};

/// Separates these ciphertexts from every other use of the same key.
const LABEL: &str = "replicator object v1";
/// First byte of every object: the form of what follows.
const FORM: u8 = 1;
/// Bytes of a nonce: long enough to be drawn at random for ever.
const NONCE: usize = 24;
/// Objects of each kind that a key is tried with: more than are damaged at once by chance.
const SAMPLE: usize = 4;
/// Digits in the name of an object.
const OBJECT_NAME: usize = 20;

/// The key everything of the controller's state is encrypted under. It has no `Debug`.
#[derive(Clone)]
pub struct DataKey(Arc<Zeroizing<[u8; 32]>>);

/// Why there is no usable data key; an existing one is never replaced.
#[derive(Debug, thiserror::Error)]
pub enum DataKeyError {
    /// The file system refused.
    #[error("cannot {act} the data key `{}`", path.display())]
    File {
        /// `read`, `make`.
        act: &'static str,
        /// Where it lies.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file is not a key.
    #[error("the data key `{}` is not 32 bytes long (got {got})", path.display())]
    Length {
        /// Where it lies.
        path: PathBuf,
        /// Its length in bytes.
        got: usize,
    },
    /// Others may read it.
    #[error("the data key `{}` may be read by others (mode {mode:04o}, want 0600)", path.display())]
    Open {
        /// Where it lies.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// What was written under a key is there, and the key is not.
    #[error("the data key `{}` is gone, and `{}` opens with no other", path.display(), object.display())]
    Lost {
        /// Where it lay.
        path: PathBuf,
        /// An object that was written under it.
        object: PathBuf,
    },
    /// The key is another one than what is there was written under.
    #[error("the data key `{}` is not the one that `{}` was written under", path.display(), object.display())]
    Another {
        /// Where it lies.
        path: PathBuf,
        /// An object that was written under another.
        object: PathBuf,
    },
    /// An object is larger than can be encrypted.
    #[error("the object `{place}` is too large to be encrypted")]
    Encrypt {
        /// Which.
        place: String,
    },
    /// The system gave no random bytes.
    #[error("cannot draw random bytes")]
    Random(#[source] getrandom::Error),
}

impl DataKeyError {
    /// One line that names the next action.
    pub fn hint(&self) -> String {
        match self {
            Self::File { path, .. } => format!("check who owns `{}` and whether the disk is full", path.display()),
            Self::Length { path, .. } => {
                format!("restore `{}` from a backup: state and secrets open with it only", path.display())
            }
            Self::Open { path, .. } => format!("run `chmod 600 {}`", path.display()),
            Self::Lost { path, .. } | Self::Another { path, .. } => format!(
                "restore `{0}` from a backup. Without it nobody can read what lies in `state` and `secrets` beside it: to \
                 begin anew, move both away with `{0}`, set every secret again and run `replicator host up --again` for \
                 every host",
                path.display()
            ),
            Self::Encrypt { .. } => "keep what is so large elsewhere".into(),
            Self::Random(_) => "try again".into(),
        }
    }
}

/// An object that does not open: another key, another place, or altered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the object does not open under the data key")]
pub struct CannotOpen;

impl DataKey {
    /// Reads the key of `home`, whose folder is there, or makes it, once: only where nothing was ever written under one.
    ///
    /// # Errors
    ///
    /// As [`DataKey::kept`].
    pub fn of(home: &Home) -> Result<Self, DataKeyError> {
        Self::kept(home)?.map_or_else(|| Self::load_or_make(&home.data_key()), Ok)
    }

    /// Reads the key of `home`; `None` where there is none, and nothing was ever written under one.
    ///
    /// # Errors
    ///
    /// [`DataKeyError`]: with [`DataKeyError::Lost`] or [`DataKeyError::Another`] nothing that is there can be read, and
    /// nothing may be written beside it. A key that was there is as it was.
    pub fn kept(home: &Home) -> Result<Option<Self>, DataKeyError> {
        let path = home.data_key();
        let objects = some_objects(home)?;
        let is_there = path.try_exists().map_err(|source| failed("read", &path, source))?;
        let first = objects.first().map(|(_, object)| object.clone());
        match first {
            None if is_there => Self::load_or_make(&path).map(Some),
            None => Ok(None),
            Some(object) if !is_there => Err(DataKeyError::Lost { path, object }),
            Some(object) => {
                let key = Self::load_or_make(&path)?;
                let opens = |(place, object): &(String, PathBuf)| {
                    std::fs::read(object).is_ok_and(|sealed| key.open(place, &sealed).is_ok())
                };
                // One that is damaged says nothing of the key.
                if objects.iter().any(opens) { Ok(Some(key)) } else { Err(DataKeyError::Another { path, object }) }
            }
        }
    }

    /// Reads the key at `path`, or makes it there, 0600, once.
    ///
    /// # Errors
    ///
    /// [`DataKeyError`]; a key that was there is as it was.
    pub fn load_or_make(path: &Path) -> Result<Self, DataKeyError> {
        let failed = |act: &'static str| move |source| DataKeyError::File { act, path: path.to_owned(), source };
        if !path.try_exists().map_err(failed("read"))? {
            let mut fresh = Zeroizing::new([0; 32]);
            getrandom::fill(fresh.as_mut_slice()).map_err(DataKeyError::Random)?;
            make_once(path, fresh.as_slice()).map_err(failed("make"))?;
        }
        let mode = std::fs::metadata(path).map_err(failed("read"))?.permissions().mode() & 0o7777;
        if mode & 0o077 != 0 {
            return Err(DataKeyError::Open { path: path.to_owned(), mode });
        }
        let bytes = Zeroizing::new(std::fs::read(path).map_err(failed("read"))?);
        let key = <[u8; 32]>::try_from(bytes.as_slice())
            .map_err(|_| DataKeyError::Length { path: path.to_owned(), got: bytes.len() })?;
        Ok(Self(Arc::new(Zeroizing::new(key))))
    }

    /// Encrypts `plain` for the object at `place`.
    ///
    /// # Errors
    ///
    /// [`DataKeyError::Random`]; [`DataKeyError::Encrypt`] above 256 GiB.
    pub(super) fn seal(&self, place: &str, plain: &[u8]) -> Result<Vec<u8>, DataKeyError> {
        let mut nonce = [0; NONCE];
        getrandom::fill(&mut nonce).map_err(DataKeyError::Random)?;
        let aad = associated_data(place);
        let body = self.cipher().encrypt(&XNonce::from(nonce), Payload { msg: plain, aad: &aad });
        let body = body.map_err(|_| DataKeyError::Encrypt { place: place.to_owned() })?;
        Ok([&[FORM], nonce.as_slice(), &body].concat())
    }

    /// Opens the object at `place`.
    ///
    /// # Errors
    ///
    /// [`CannotOpen`].
    pub(super) fn open(&self, place: &str, object: &[u8]) -> Result<Zeroizing<Vec<u8>>, CannotOpen> {
        let Some((&FORM, rest)) = object.split_first() else { return Err(CannotOpen) };
        let (nonce, body) = rest.split_first_chunk::<NONCE>().ok_or(CannotOpen)?;
        let aad = associated_data(place);
        let plain = self.cipher().decrypt(&XNonce::from(*nonce), Payload { msg: body, aad: &aad });
        plain.map(Zeroizing::new).map_err(|_| CannotOpen)
    }

    fn cipher(&self) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new(&(**self.0).into())
    }
}

/// Written beside, synced, then linked: a second controller finds the whole key or none.
fn make_once(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    match Beside::write(path, bytes)?.place(path) {
        Ok(()) => {
            point::behind(Effect::DataKeyMake);
            Ok(())
        }
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

fn failed(act: &'static str, path: &Path, source: std::io::Error) -> DataKeyError {
    DataKeyError::File { act, path: path.to_owned(), source }
}

/// Some of the objects of `home`, each with its place: enough to tell by whether a key is theirs.
fn some_objects(home: &Home) -> Result<Vec<(String, PathBuf)>, DataKeyError> {
    let mut found = Vec::new();
    for (space, folder) in [("state", home.state()), ("secrets", home.secrets())] {
        let mut some = Vec::new();
        gather(&folder, space, &mut some)?;
        found.extend(some);
    }
    Ok(found)
}

/// Gathers objects below `folder`, whose own place is `place`, until there are enough.
fn gather(folder: &Path, place: &str, found: &mut Vec<(String, PathBuf)>) -> Result<(), DataKeyError> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(source) => return Err(failed("read", folder, source)),
    };
    for entry in entries {
        if found.len() >= SAMPLE {
            break;
        }
        let entry = entry.map_err(|source| failed("read", folder, source))?;
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        let place = format!("{place}/{name}");
        if path.is_dir() {
            gather(&path, &place, found)?;
        } else if name.len() == OBJECT_NAME && name.bytes().all(|byte| byte.is_ascii_digit()) {
            found.push((place, path));
        }
    }
    Ok(())
}

fn associated_data(place: &str) -> Vec<u8> {
    let mut out = Vec::new();
    for part in [LABEL, place] {
        out.extend_from_slice(&(part.len() as u64).to_be_bytes());
        out.extend_from_slice(part.as_bytes());
    }
    out
}

#[cfg(test)]
mod tests;
