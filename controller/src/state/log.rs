//! The log of one host: read whole, appended to one event at a time, by whoever is first.

use replicator_protocol::ids::HostId;

use super::event::{Entry, Event};
use super::objects::{Created, Objects, ObjectsError};
use super::status::{HostState, Illegal};
use super::{App, DataKey};
use crate::home::Home;

/// The provisioning log of one host.
#[derive(Clone)]
pub struct Log {
    objects: Objects,
    folder: String,
    host: HostId,
    by: String,
}

/// A log as it was read: what the next event is appended after.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct History {
    /// Every entry; number 1 first.
    pub entries: Vec<Entry>,
    /// What they add up to.
    pub state: HostState,
}

impl History {
    /// The number of the last entry; 0 for none.
    pub fn head(&self) -> u64 {
        self.entries.len() as u64
    }
}

/// Why the log could not be read or appended to.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// Another controller appended first; nothing was written.
    #[error("another controller was first: {by} {what} as entry {number} of `{host}` (at {at} ms)")]
    Lost {
        /// The host.
        host: HostId,
        /// The entry both wanted to make.
        number: u64,
        /// Who made it.
        by: String,
        /// When, in milliseconds since the Unix epoch.
        at: u64,
        /// What happened.
        what: String,
    },
    /// An entry is missing between others.
    #[error("entry {number} of `{host}` is missing from its provisioning log")]
    Gap {
        /// The host.
        host: HostId,
        /// The first missing one.
        number: u64,
    },
    /// An entry that is none.
    #[error("entry {number} of `{host}` cannot be read")]
    Entry {
        /// The host.
        host: HostId,
        /// Which.
        number: u64,
        /// Why.
        source: serde_json::Error,
    },
    /// An entry of a later form.
    #[error("entry {number} of `{host}` was written by a later version (got form {got}, have {have})")]
    Later {
        /// The host.
        host: HostId,
        /// Which.
        number: u64,
        /// Its form.
        got: u32,
        /// The latest form known here.
        have: u32,
    },
    /// An event that cannot follow.
    #[error("entry {number} of `{host}` is not allowed")]
    Illegal {
        /// The host.
        host: HostId,
        /// Which.
        number: u64,
        /// Why.
        source: Illegal,
    },
    /// The store refused.
    #[error(transparent)]
    Objects(#[from] ObjectsError),
    /// There is no usable data key.
    #[error(transparent)]
    Key(#[from] super::DataKeyError),
}

impl LogError {
    /// One line that names the next action.
    pub fn hint(&self) -> String {
        match self {
            Self::Lost { .. } => "run the command again: it goes on from there".into(),
            Self::Gap { .. } | Self::Entry { .. } => "restore the state folder from a backup".into(),
            Self::Later { .. } => "upgrade this controller".into(),
            Self::Illegal { host, .. } => format!("see where it stands with `replicator host show {host}`"),
            Self::Objects(error) => error.hint(),
            Self::Key(error) => error.hint(),
        }
    }
}

impl Log {
    /// The log of `host` in the local state folder of `home`.
    ///
    /// # Errors
    ///
    /// [`LogError::Key`] or [`LogError::Objects`].
    pub fn local(home: &Home, app: &App, host: &HostId) -> Result<Self, LogError> {
        let key = DataKey::load_or_make(&home.data_key())?;
        Ok(Self::new(Objects::local(&home.state(), "state", key)?, app, host, super::writer()))
    }

    /// The log of `host` in `objects`; `by` is who appends.
    pub fn new(objects: Objects, app: &App, host: &HostId, by: String) -> Self {
        Self { objects, folder: format!("{app}/{host}/log"), host: host.clone(), by }
    }

    /// The hosts of `app` with a log, sorted.
    ///
    /// # Errors
    ///
    /// [`LogError::Objects`] or [`LogError::Key`].
    pub async fn hosts(home: &Home, app: &App) -> Result<Vec<HostId>, LogError> {
        let key = DataKey::load_or_make(&home.data_key())?;
        let (_, folders) = Objects::local(&home.state(), "state", key)?.list(app.as_str()).await?;
        Ok(folders.iter().filter_map(|name| HostId::parse(name).ok()).collect())
    }

    /// Reads every entry.
    ///
    /// # Errors
    ///
    /// [`LogError`]; the log is as it was.
    pub async fn read(&self) -> Result<History, LogError> {
        let (objects, _) = self.objects.list(&self.folder).await?;
        let mut history = History::default();
        for (number, name) in (1..).zip(&objects) {
            if *name != object(number) {
                return Err(LogError::Gap { host: self.host.clone(), number });
            }
            history = self.follow(history, self.entry(number).await?)?;
        }
        Ok(history)
    }

    /// Appends `event` after `history`, unless somebody else appended since. It is on disk when this returns.
    ///
    /// # Errors
    ///
    /// [`LogError::Lost`]: who was first, and with what; read again. [`LogError::Illegal`]: nothing was written.
    pub async fn append(&self, history: History, event: Event, at: u64) -> Result<History, LogError> {
        let number = history.head() + 1;
        let entry = Entry { version: Entry::VERSION, at, by: self.by.clone(), event };
        let bytes = serde_json::to_vec(&entry).map_err(|source| self.unreadable(number, source))?;
        let after = self.follow(history, entry)?;
        match self.objects.create(&self.path(number), &bytes).await? {
            Created::Made => Ok(after),
            Created::Taken => {
                let first = self.entry(number).await?;
                let what = first.event.says();
                Err(LogError::Lost { host: self.host.clone(), number, by: first.by, at: first.at, what })
            }
        }
    }

    fn follow(&self, history: History, entry: Entry) -> Result<History, LogError> {
        let number = history.head() + 1;
        let History { mut entries, state } = history;
        let illegal = |source| LogError::Illegal { host: self.host.clone(), number, source };
        let state = state.after(&entry).map_err(illegal)?;
        entries.push(entry);
        Ok(History { entries, state })
    }

    async fn entry(&self, number: u64) -> Result<Entry, LogError> {
        let gap = || LogError::Gap { host: self.host.clone(), number };
        let bytes = self.objects.read(&self.path(number)).await?.ok_or_else(gap)?;
        let entry: Entry = serde_json::from_slice(&bytes).map_err(|source| self.unreadable(number, source))?;
        if entry.version == Entry::VERSION {
            Ok(entry)
        } else {
            Err(LogError::Later { host: self.host.clone(), number, got: entry.version, have: Entry::VERSION })
        }
    }

    fn unreadable(&self, number: u64, source: serde_json::Error) -> LogError {
        LogError::Entry { host: self.host.clone(), number, source }
    }

    fn path(&self, number: u64) -> String {
        format!("{}/{}", self.folder, object(number))
    }
}

fn object(number: u64) -> String {
    format!("{number:020}")
}

#[cfg(test)]
mod tests;
