//! The store: one encrypted object per value ever set, names in clear, nothing ever written over.

use std::collections::BTreeSet;

use replicator_protocol::ids::{Generation, SecretName};
use replicator_protocol::secret::SecretBytes;
use zeroize::Zeroizing;

use crate::home::Home;
use crate::state::objects::Created;
use crate::state::{App, Objects, ObjectsError};

/// First byte of an opened value: the form of what follows.
const FORM: u8 = 1;
/// Bytes of the big-endian time before the value.
const TIME: usize = 8;
/// Largest value, in bytes: what can be sealed to a host.
const VALUE_MAX: usize = 64 * 1024 - 4;
/// Times a lost race is run again before giving up.
const ATTEMPTS: usize = 8;

/// The secrets of one app.
#[derive(Clone)]
pub struct SecretStore {
    objects: Objects,
    app: App,
}

/// What is known of a secret without its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// Its name.
    pub name: SecretName,
    /// Which of its values it holds.
    pub generation: Generation,
    /// When it was set last, in milliseconds since the Unix epoch; none where its value cannot be read.
    pub set_at: Option<u64>,
}

/// What became of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Set {
    /// It is the next generation.
    Changed(Generation),
    /// It is what was set last; nothing was written.
    Unchanged(Generation),
}

/// Why a value could not be kept or read.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Nothing was given.
    #[error("the value for `{0}` is empty")]
    Empty(SecretName),
    /// More than can be sealed.
    #[error("the value for `{name}` is too large (got {got} bytes, have {VALUE_MAX})")]
    TooLarge {
        /// Its name.
        name: SecretName,
        /// Its size in bytes.
        got: usize,
    },
    /// Others keep setting it.
    #[error("others set `{0}` at the same time, {ATTEMPTS} times in a row")]
    Busy(SecretName),
    /// An object of another form.
    #[error("the value of `{0}` has a form that is unknown here")]
    Form(SecretName),
    /// The store refused.
    #[error(transparent)]
    Objects(#[from] ObjectsError),
}

impl StoreError {
    /// One line that names the next action.
    pub fn hint(&self) -> String {
        match self {
            Self::Empty(name) => format!("give it on standard input: `replicator secrets set {name} < FILE`"),
            Self::TooLarge { .. } => "keep a name for the large part and hold that in a file".into(),
            Self::Busy(_) => "try again".into(),
            Self::Form(_) => "upgrade this controller".into(),
            Self::Objects(error) => error.hint(),
        }
    }
}

impl SecretStore {
    /// The secrets of `app` in the local folder of `home`.
    ///
    /// # Errors
    ///
    /// [`StoreError::Objects`].
    pub fn local(home: &Home, app: &App) -> Result<Self, StoreError> {
        Ok(Self { objects: Objects::local(home, home.secrets(), "secrets")?, app: app.clone() })
    }

    /// Keeps `value` as the next generation, unless it is what was set last. It is on disk when this returns. `at` is in
    /// milliseconds since the Unix epoch.
    ///
    /// The generation is the second it is set in, or the one after the last where that is later: hosts know a value by its
    /// name and generation, and a store that was put back from a backup must not give another value the number of one that
    /// they hold.
    ///
    /// # Errors
    ///
    /// [`StoreError`]; what was set before still stands.
    pub async fn set(&self, name: &SecretName, value: &SecretBytes, at: u64) -> Result<Set, StoreError> {
        if value.expose().is_empty() {
            return Err(StoreError::Empty(name.clone()));
        }
        if value.expose().len() > VALUE_MAX {
            return Err(StoreError::TooLarge { name: name.clone(), got: value.expose().len() });
        }
        for _ in 0..ATTEMPTS {
            let newest = self.newest(name).await?;
            // One that cannot be read is not what is given now: it is set anew, and mended by that.
            let held = self.last(name).await.inspect_err(|error| {
                tracing::warn!(%name, %error, "the value that was set last cannot be read; the new one takes its place");
            });
            if let Ok(Some((generation, _, held))) = &held
                && held.expose() == value.expose()
            {
                return Ok(Set::Unchanged(*generation));
            }
            let after_last = newest.map_or(1, |generation| generation.0 + 1);
            let next = Generation(after_last.max(at / 1000));
            let mut object = Zeroizing::new(Vec::with_capacity(1 + TIME + value.expose().len()));
            object.push(FORM);
            object.extend_from_slice(&at.to_be_bytes());
            object.extend_from_slice(value.expose());
            match self.objects.create(&self.path(name, next), &object).await? {
                Created::Made => return Ok(Set::Changed(next)),
                Created::Taken => {}
            }
        }
        Err(StoreError::Busy(name.clone()))
    }

    /// The value set last, with its generation, where one was ever set.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    pub async fn get(&self, name: &SecretName) -> Result<Option<(Generation, SecretBytes)>, StoreError> {
        Ok(self.last(name).await?.map(|(generation, _, value)| (generation, value)))
    }

    /// Every name that was ever set, sorted.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    pub async fn names(&self) -> Result<BTreeSet<SecretName>, StoreError> {
        let (_, folders) = self.objects.list(self.app.as_str()).await?;
        Ok(folders.iter().filter_map(|name| SecretName::parse(name).ok()).collect())
    }

    /// Every secret with its generation and when it was set, by name; no values. One whose value cannot be read is among
    /// them.
    ///
    /// # Errors
    ///
    /// [`StoreError::Objects`] where the names cannot be had.
    pub async fn list(&self) -> Result<Vec<Kept>, StoreError> {
        let mut kept = Vec::new();
        for name in self.names().await? {
            let Some(generation) = self.newest(&name).await? else { continue };
            let last = self.last(&name).await.inspect_err(|error| {
                tracing::warn!(%name, %error, "a value cannot be read: set it anew");
            });
            kept.push(Kept { name, generation, set_at: last.ok().flatten().map(|(_, set_at, _)| set_at) });
        }
        Ok(kept)
    }

    async fn last(&self, name: &SecretName) -> Result<Option<(Generation, u64, SecretBytes)>, StoreError> {
        let Some(generation) = self.newest(name).await? else { return Ok(None) };
        let Some(object) = self.objects.read(&self.path(name, generation)).await? else { return Ok(None) };
        let form = || StoreError::Form(name.clone());
        let Some((&FORM, rest)) = object.split_first() else { return Err(form()) };
        let (time, value) = rest.split_first_chunk::<TIME>().ok_or_else(form)?;
        Ok(Some((generation, u64::from_be_bytes(*time), SecretBytes::new(value.to_vec()))))
    }

    /// The generation that was set last.
    async fn newest(&self, name: &SecretName) -> Result<Option<Generation>, StoreError> {
        let (objects, _) = self.objects.list(&self.folder(name)).await?;
        Ok(objects.iter().filter_map(|object| object.parse().ok()).max().map(Generation))
    }

    fn folder(&self, name: &SecretName) -> String {
        format!("{}/{name}", self.app)
    }

    fn path(&self, name: &SecretName, generation: Generation) -> String {
        format!("{}/{:020}", self.folder(name), generation.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> SecretBytes {
        SecretBytes::new(text.into())
    }

    #[tokio::test]
    async fn equal_value_keeps_its_generation() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path().join("home")).unwrap();
        let store = SecretStore::local(&home, &App::parse("demo").unwrap()).unwrap();
        let name = SecretName::parse("token").unwrap();
        assert!(store.get(&name).await.unwrap().is_none());
        assert_eq!(store.set(&name, &value("one"), 1).await.unwrap(), Set::Changed(Generation(1)));
        assert_eq!(store.set(&name, &value("one"), 2).await.unwrap(), Set::Unchanged(Generation(1)));
        assert_eq!(store.set(&name, &value("two"), 3).await.unwrap(), Set::Changed(Generation(2)));
        assert_eq!(store.set(&name, &value("one"), 4).await.unwrap(), Set::Changed(Generation(3)));
        let (generation, held) = store.get(&name).await.unwrap().unwrap();
        assert_eq!((generation, held.expose()), (Generation(3), &b"one"[..]));
        assert_eq!(store.list().await.unwrap(), [Kept { name, generation, set_at: Some(4) }]);
    }

    #[tokio::test]
    async fn store_put_back_from_a_backup_gives_no_generation_twice() {
        let folder = tempfile::tempdir().unwrap();
        let (home, backup) = (folder.path().join("home"), folder.path().join("backup"));
        let store = || SecretStore::local(&Home::at(home.clone()).unwrap(), &App::parse("demo").unwrap()).unwrap();
        let name = SecretName::parse("token").unwrap();
        assert_eq!(store().set(&name, &value("one"), 7_000).await.unwrap(), Set::Changed(Generation(7)));
        let copied = std::process::Command::new("cp").arg("-a").args([&home, &backup]).status().unwrap();
        assert!(copied.success());
        assert_eq!(
            store().set(&name, &value("two"), 7_500).await.unwrap(),
            Set::Changed(Generation(8)),
            "in one second"
        );
        assert_eq!(store().set(&name, &value("three"), 9_999).await.unwrap(), Set::Changed(Generation(9)));
        std::fs::remove_dir_all(&home).unwrap();
        std::fs::rename(&backup, &home).unwrap();
        assert_eq!(store().set(&name, &value("four"), 60_000).await.unwrap(), Set::Changed(Generation(60)));
        // A clock that was put back gives no number a second time, either.
        assert_eq!(store().set(&name, &value("five"), 1_000).await.unwrap(), Set::Changed(Generation(61)));
    }

    #[tokio::test]
    async fn value_that_cannot_be_read_is_set_anew_and_keeps_back_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path().join("home")).unwrap();
        let store = SecretStore::local(&home, &App::parse("demo").unwrap()).unwrap();
        let (name, other) = (SecretName::parse("token").unwrap(), SecretName::parse("other").unwrap());
        store.set(&other, &value("sound"), 1).await.unwrap();
        store.set(&name, &value("one"), 1).await.unwrap();
        std::fs::write(home.secrets().join("demo/token/00000000000000000001"), "").unwrap();
        assert!(matches!(store.get(&name).await, Err(StoreError::Objects(_))));
        let listed: Vec<_> = store.list().await.unwrap().into_iter().map(|kept| (kept.name, kept.set_at)).collect();
        assert_eq!(listed, [(other, Some(1)), (name.clone(), None)]);
        assert_eq!(store.set(&name, &value("one"), 2).await.unwrap(), Set::Changed(Generation(2)));
        assert_eq!(store.get(&name).await.unwrap().unwrap().1.expose(), b"one");
    }

    #[tokio::test]
    async fn empty_and_oversized_values_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path().join("home")).unwrap();
        let store = SecretStore::local(&home, &App::parse("demo").unwrap()).unwrap();
        let name = SecretName::parse("token").unwrap();
        assert!(matches!(store.set(&name, &value(""), 1).await, Err(StoreError::Empty(_))));
        let large = SecretBytes::new(vec![b'x'; VALUE_MAX + 1]);
        assert!(matches!(store.set(&name, &large, 1).await, Err(StoreError::TooLarge { .. })));
        assert!(store.names().await.unwrap().is_empty());
    }

    #[tokio::test]
    async fn no_value_lies_in_the_folder_in_clear() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path().join("home")).unwrap();
        let store = SecretStore::local(&home, &App::parse("demo").unwrap()).unwrap();
        store.set(&SecretName::parse("token").unwrap(), &value("planted-value"), 1).await.unwrap();
        let object = home.secrets().join("demo/token/00000000000000000001");
        let bytes = std::fs::read(object).unwrap();
        assert!(!bytes.windows(7).any(|window| window == b"planted"));
    }
}
