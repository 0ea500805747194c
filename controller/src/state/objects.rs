//! Encrypted objects in a store that can create only what is absent.
//!
//! One interface over a local folder today and buckets later. Every object is encrypted for its own path. Nothing is
//! made, neither folder nor key, until there is an object to create: who only looks leaves no trace.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _, PutMode, PutOptions};
use zeroize::Zeroizing;

use super::seal::{CannotOpen, DataKey, DataKeyError};
use crate::home::{self, Home, HomeError};
use crate::point::{self, Effect};

/// A store of encrypted objects.
#[derive(Clone)]
pub struct Objects {
    home: Home,
    folder: PathBuf,
    /// What the objects are: part of what each one is bound to.
    space: &'static str,
    /// Once there is something to read, or to create.
    opened: Arc<OnceLock<Opened>>,
}

struct Opened {
    store: Arc<dyn ObjectStore>,
    key: DataKey,
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
            Self::Sealed { path, .. } => format!(
                "restore `{path}` from a backup, or `data.key` where no object opens; a secret can also be set anew"
            ),
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
    /// Objects in a folder of `home`, under its data key.
    ///
    /// # Errors
    ///
    /// [`ObjectsError::Key`] or [`ObjectsError::Folder`].
    pub fn local(home: &Home, folder: PathBuf, space: &'static str) -> Result<Self, ObjectsError> {
        let objects = Self { home: home.clone(), folder, space, opened: Arc::default() };
        objects.opened()?;
        Ok(objects)
    }

    /// What there is; `None` while nothing was ever written here.
    fn opened(&self) -> Result<Option<&Opened>, ObjectsError> {
        if let Some(opened) = self.opened.get() {
            return Ok(Some(opened));
        }
        match DataKey::kept(&self.home)? {
            Some(key) if self.folder.is_dir() => self.open(key).map(Some),
            Some(_) | None => Ok(None),
        }
    }

    /// What there is, made where it was not.
    fn made(&self) -> Result<&Opened, ObjectsError> {
        if let Some(opened) = self.opened.get() {
            return Ok(opened);
        }
        home::private_folder(&self.folder)?;
        self.open(DataKey::of(&self.home)?)
    }

    fn open(&self, key: DataKey) -> Result<&Opened, ObjectsError> {
        let store = LocalFileSystem::new_with_prefix(&self.folder)
            .map_err(|source| ObjectsError::Folder { path: self.folder.clone(), source })?;
        Ok(self.opened.get_or_init(|| Opened { store: Arc::new(store.with_fsync(true)), key }))
    }

    /// Creates the object at `path`, unless there is one. It is on disk when this returns.
    ///
    /// # Errors
    ///
    /// [`ObjectsError`]; whether it was made is then unknown.
    pub async fn create(&self, path: &str, plain: &[u8]) -> Result<Created, ObjectsError> {
        let Opened { store, key } = self.made()?;
        let sealed = key.seal(&self.place(path), plain)?;
        let options = PutOptions::from(PutMode::Create);
        match store.put_opts(&Path::from(path), sealed.into(), options).await {
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
    /// [`ObjectsError`].
    pub async fn read(&self, path: &str) -> Result<Option<Zeroizing<Vec<u8>>>, ObjectsError> {
        let failed = |source| ObjectsError::Store { act: "read", path: path.into(), source };
        let Some(Opened { store, key }) = self.opened()? else { return Ok(None) };
        let bytes = match store.get(&Path::from(path)).await {
            Ok(found) => found.bytes().await.map_err(failed)?,
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            Err(source) => return Err(failed(source)),
        };
        let opened = key.open(&self.place(path), &bytes);
        opened.map(Some).map_err(|source| ObjectsError::Sealed { path: path.into(), source })
    }

    /// The names right under `folder`: its objects, and its folders; each sorted.
    ///
    /// # Errors
    ///
    /// [`ObjectsError`].
    pub async fn list(&self, folder: &str) -> Result<(Vec<String>, Vec<String>), ObjectsError> {
        let Some(Opened { store, .. }) = self.opened()? else { return Ok(Default::default()) };
        let found = store.list_with_delimiter(Some(&Path::from(folder))).await;
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
        let home = Home::at(folder.path().join("home")).unwrap();
        let local = || Objects::local(&home, home.state(), "state").unwrap();
        let (objects, other) = (local(), local());
        assert!(objects.read("a/b/1").await.unwrap().is_none());
        assert_eq!(objects.list("a").await.unwrap(), (vec![], vec![]));
        assert!(!home.root().exists(), "who only looks makes nothing");
        assert_eq!(objects.create("a/b/1", b"one").await.unwrap(), Created::Made);
        assert_eq!(objects.create("a/b/1", b"two").await.unwrap(), Created::Taken);
        for objects in [&objects, &other, &local()] {
            assert_eq!(*objects.read("a/b/1").await.unwrap().unwrap(), b"one");
        }
        assert!(objects.read("a/b/2").await.unwrap().is_none());
        assert_eq!(objects.list("a").await.unwrap(), (vec![], vec!["b".to_owned()]));
        assert_eq!(objects.list("a/b").await.unwrap(), (vec!["1".to_owned()], vec![]));
        assert_eq!(objects.list("none").await.unwrap(), (vec![], vec![]));
    }
}
