//! Encrypted objects in a store that can create only what is absent.
//!
//! One interface over a local folder today and buckets later. Every object is encrypted for its own path.

use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;

use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _, PutMode, PutOptions};
use zeroize::Zeroizing;

use super::seal::{CannotOpen, DataKey, DataKeyError};
use crate::home::{self, HomeError};
use crate::point::{self, Effect};

/// A store of encrypted objects.
#[derive(Clone)]
pub struct Objects {
    store: Arc<dyn ObjectStore>,
    key: DataKey,
    /// What the objects are: part of what each one is bound to.
    space: &'static str,
}

/// Why an object could not be read or made.
#[derive(Debug, thiserror::Error)]
pub enum ObjectsError {
    /// The store refused.
    #[error("cannot {act} the object `{path}`")]
    Store {
        /// `create`, `read`, `list`.
        act: &'static str,
        /// Which.
        path: String,
        /// Why.
        source: object_store::Error,
    },
    /// Written under another key, moved, or altered.
    #[error("cannot open the object `{path}`")]
    Sealed {
        /// Which.
        path: String,
        /// Why.
        source: CannotOpen,
    },
    /// The key refused.
    #[error(transparent)]
    Key(#[from] DataKeyError),
    /// The folder cannot be made.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// The folder is no object store.
    #[error("cannot use the folder `{}`", path.display())]
    Folder {
        /// Which.
        path: PathBuf,
        /// Why.
        source: object_store::Error,
    },
}

impl ObjectsError {
    /// One line that names the next action.
    pub fn hint(&self) -> String {
        match self {
            Self::Store { .. } | Self::Folder { .. } => "check who owns the folder and whether the disk is full".into(),
            Self::Sealed { .. } => "restore `data.key` as it was when the object was written".into(),
            Self::Key(error) => error.hint(),
            Self::Home(error) => error.hint(),
        }
    }
}

/// What became of an attempt to create.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Created {
    /// It is there, durably, and ours.
    Made,
    /// Somebody else made one of that name first; nothing was written.
    Taken,
}

impl Objects {
    /// Objects in a local folder, made where it is absent.
    ///
    /// # Errors
    ///
    /// [`ObjectsError::Home`] or [`ObjectsError::Folder`].
    pub fn local(folder: &FilePath, space: &'static str, key: DataKey) -> Result<Self, ObjectsError> {
        home::private_folder(folder)?;
        let store = LocalFileSystem::new_with_prefix(folder)
            .map_err(|source| ObjectsError::Folder { path: folder.to_owned(), source })?;
        Ok(Self { store: Arc::new(store.with_fsync(true)), key, space })
    }

    /// Creates the object at `path`, unless there is one. It is on disk when this returns.
    ///
    /// # Errors
    ///
    /// [`ObjectsError::Store`] or [`ObjectsError::Key`]; whether it was made is then unknown.
    pub async fn create(&self, path: &str, plain: &[u8]) -> Result<Created, ObjectsError> {
        let sealed = self.key.seal(&self.place(path), plain)?;
        let options = PutOptions::from(PutMode::Create);
        match self.store.put_opts(&Path::from(path), sealed.into(), options).await {
            Ok(_) => {
                point::behind(Effect::ObjectCreate);
                Ok(Created::Made)
            }
            Err(object_store::Error::AlreadyExists { .. }) => Ok(Created::Taken),
            Err(source) => Err(ObjectsError::Store { act: "create", path: path.into(), source }),
        }
    }

    /// Reads the object at `path`, where there is one.
    ///
    /// # Errors
    ///
    /// [`ObjectsError::Store`] or [`ObjectsError::Sealed`].
    pub async fn read(&self, path: &str) -> Result<Option<Zeroizing<Vec<u8>>>, ObjectsError> {
        let failed = |source| ObjectsError::Store { act: "read", path: path.into(), source };
        let bytes = match self.store.get(&Path::from(path)).await {
            Ok(found) => found.bytes().await.map_err(failed)?,
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            Err(source) => return Err(failed(source)),
        };
        let opened = self.key.open(&self.place(path), &bytes);
        opened.map(Some).map_err(|source| ObjectsError::Sealed { path: path.into(), source })
    }

    /// The names right under `folder`: its objects, and its folders; each sorted.
    ///
    /// # Errors
    ///
    /// [`ObjectsError::Store`].
    pub async fn list(&self, folder: &str) -> Result<(Vec<String>, Vec<String>), ObjectsError> {
        let found = self.store.list_with_delimiter(Some(&Path::from(folder))).await;
        let found = found.map_err(|source| ObjectsError::Store { act: "list", path: folder.into(), source })?;
        let last = |path: &Path| path.filename().map(str::to_owned);
        let mut objects: Vec<_> = found.objects.iter().filter_map(|object| last(&object.location)).collect();
        let mut folders: Vec<_> = found.common_prefixes.iter().filter_map(last).collect();
        objects.sort();
        folders.sort();
        Ok((objects, folders))
    }

    fn place(&self, path: &str) -> String {
        format!("{}/{path}", self.space)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn object_is_created_once_and_never_written_over() {
        let folder = tempfile::tempdir().unwrap();
        let key = DataKey::load_or_make(&folder.path().join("data.key")).unwrap();
        let objects = Objects::local(&folder.path().join("state"), "state", key).unwrap();
        assert_eq!(objects.create("a/b/1", b"one").await.unwrap(), Created::Made);
        assert_eq!(objects.create("a/b/1", b"two").await.unwrap(), Created::Taken);
        assert_eq!(*objects.read("a/b/1").await.unwrap().unwrap(), b"one");
        assert!(objects.read("a/b/2").await.unwrap().is_none());
        assert_eq!(objects.list("a").await.unwrap(), (vec![], vec!["b".to_owned()]));
        assert_eq!(objects.list("a/b").await.unwrap(), (vec!["1".to_owned()], vec![]));
        assert_eq!(objects.list("none").await.unwrap(), (vec![], vec![]));
    }
}
