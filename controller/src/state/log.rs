//! A log, of one host or of the fleet: read whole, appended to one event at a time, by whoever is first.

use std::marker::PhantomData;
use std::time::Duration;

use replicator_protocol::ids::HostId;
use serde::Deserialize;

use super::App;
use super::event::{Entry, FORM};
use super::fleet::FleetState;
use super::fold::{Fold, Illegal};
use super::objects::{Created, Objects, ObjectsError};
use super::status::HostState;
use crate::home::Home;

/// The folder of the fleet's own log, beside those of the hosts: no host can be called so.
const FLEET: &str = "_fleet";
/// How long the name of an entry is: its number, with zeros before it.
const DIGITS: usize = 20;
/// Longest pause after a lost race: several times what an append takes.
const AGAIN: Duration = Duration::from_millis(200);
/// The hint for a log that is not as it was written.
const RESTORE: &str = "restore the state folder from a backup";

/// A provisioning log: of one host, unless said otherwise.
#[derive(Clone)]
pub struct Log<S = HostState> {
    objects: Objects,
    app: App,
    /// Whose: a host's name, or [`FLEET`].
    name: String,
    by: String,
    state: PhantomData<fn() -> S>,
}

/// A log as it was read: what the next event is appended after.
#[derive(Debug, Clone, PartialEq)]
pub struct History<S: Fold = HostState> {
    /// Every entry; number 1 first.
    pub entries: Vec<Entry<S::Event>>,
    /// What they add up to.
    pub state: S,
}

/// How far the log of a host was read: what its entries add up to, without them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reached {
    /// The number of the last entry; 0 for none.
    head: u64,
    /// That entry.
    last: Option<Entry>,
    /// What they add up to.
    pub state: HostState,
}

/// What every form of an entry has.
#[derive(Deserialize)]
struct Form {
    version: u32,
}

impl<S: Fold> Default for History<S> {
    fn default() -> Self {
        Self { entries: Vec::new(), state: S::default() }
    }
}

impl<S: Fold> History<S> {
    /// The number of the last entry; 0 for none.
    pub fn head(&self) -> u64 {
        self.entries.len() as u64
    }
}

/// Why the log could not be read or appended to.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// Another controller appended first; nothing was written.
    #[error("another controller was first: {by} {what} as entry {number} of `{log}` (at {at} ms)")]
    Lost {
        /// Whose: the host's, or `_fleet`.
        log: String,
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
    #[error("entry {number} of `{log}` is missing from its provisioning log")]
    Gap {
        /// Whose: the host's, or `_fleet`.
        log: String,
        /// The first missing one.
        number: u64,
    },
    /// An entry that is none.
    #[error("entry {number} of `{log}` cannot be read")]
    Entry {
        /// Whose: the host's, or `_fleet`.
        log: String,
        /// Which.
        number: u64,
        /// Why.
        source: serde_json::Error,
    },
    /// An entry of a later form.
    #[error("entry {number} of `{log}` was written by a later version (got form {got}, have {have})")]
    Later {
        /// Whose: the host's, or `_fleet`.
        log: String,
        /// Which.
        number: u64,
        /// Its form.
        got: u32,
        /// The latest form known here.
        have: u32,
    },
    /// An event that cannot follow.
    #[error("entry {number} of `{log}` is not allowed")]
    Illegal {
        /// Whose: the host's, or `_fleet`.
        log: String,
        /// Which.
        number: u64,
        /// Why.
        source: Illegal,
    },
    /// The store refused.
    #[error(transparent)]
    Objects(#[from] ObjectsError),
}

impl LogError {
    /// One line that names the next action.
    pub fn hint(&self) -> String {
        match self {
            Self::Lost { .. } => "run the command again: it goes on from there".into(),
            Self::Gap { .. } | Self::Entry { .. } => RESTORE.into(),
            Self::Later { .. } => "upgrade this controller".into(),
            Self::Illegal { log, .. } if log == FLEET => RESTORE.into(),
            Self::Illegal { log, .. } => format!("see where it stands with `replicator host show {log}`"),
            Self::Objects(error) => error.hint(),
        }
    }
}

impl Log {
    /// The log of `host` in the local state folder of `home`.
    ///
    /// # Errors
    ///
    /// [`LogError::Objects`].
    pub fn local(home: &Home, app: &App, host: &HostId) -> Result<Self, LogError> {
        Ok(Self::new(objects(home)?, app, host, super::writer()))
    }

    /// The log of `host` in `objects`; `by` is who appends.
    pub fn new(objects: Objects, app: &App, host: &HostId, by: String) -> Self {
        Self { objects, app: app.clone(), name: host.to_string(), by, state: PhantomData }
    }

    /// The log of what belongs to no one host, beside this one.
    #[must_use]
    pub fn of_fleet(&self) -> Log<FleetState> {
        let Self { objects, app, by, .. } = self.clone();
        Log { objects, app, name: FLEET.into(), by, state: PhantomData }
    }

    /// The hosts of `app` with a log, sorted.
    ///
    /// # Errors
    ///
    /// [`LogError::Objects`].
    pub async fn hosts(home: &Home, app: &App) -> Result<Vec<HostId>, LogError> {
        let (_, folders) = objects(home)?.list(app.as_str()).await?;
        Ok(folders.iter().filter_map(|name| HostId::parse(name).ok()).collect())
    }

    /// Reads what was appended since `reached`; everything, where that is of another log than what lies here now, as
    /// after a backup was put in its place.
    ///
    /// # Errors
    ///
    /// [`LogError`]; the log is as it was.
    pub async fn read_on(&self, mut reached: Reached) -> Result<Reached, LogError> {
        let objects = self.listed().await?;
        let is_there = objects.contains(&object(reached.head));
        if reached.last.is_some() && (!is_there || Some(self.entry(reached.head).await?) != reached.last) {
            reached = Reached::default();
        }
        for (number, name) in (1..).zip(&objects) {
            if *name != object(number) {
                return Err(LogError::Gap { log: self.name.clone(), number });
            }
            if number > reached.head {
                let entry = self.entry(number).await?;
                let illegal = |source| LogError::Illegal { log: self.name.clone(), number, source };
                let state = reached.state.after(&entry).map_err(illegal)?;
                reached = Reached { head: number, last: Some(entry), state };
            }
        }
        Ok(reached)
    }
}

fn objects(home: &Home) -> Result<Objects, ObjectsError> {
    Objects::local(home, home.state(), "state")
}

impl<S: Fold> Log<S> {
    /// Reads every entry.
    ///
    /// # Errors
    ///
    /// [`LogError`]; the log is as it was.
    pub async fn read(&self) -> Result<History<S>, LogError> {
        let objects = self.listed().await?;
        let mut history = History::default();
        for (number, name) in (1..).zip(&objects) {
            if *name != object(number) {
                return Err(LogError::Gap { log: self.name.clone(), number });
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
    pub async fn append(&self, history: History<S>, event: S::Event, at: u64) -> Result<History<S>, LogError> {
        let after = self.suppose(history, event, at)?;
        let number = after.head();
        let bytes = serde_json::to_vec(&after.entries.last()).map_err(|source| self.unreadable(number, source))?;
        match self.objects.create(&self.path(number), &bytes).await? {
            Created::Made => Ok(after),
            Created::Taken => {
                let first = self.entry(number).await?;
                let what = S::says(&first.event);
                Err(LogError::Lost { log: self.name.clone(), number, by: first.by, at: first.at, what })
            }
        }
    }

    /// `history` as it would be with `event` after it. Nothing is written.
    ///
    /// # Errors
    ///
    /// [`LogError::Illegal`].
    pub fn suppose(&self, history: History<S>, event: S::Event, at: u64) -> Result<History<S>, LogError> {
        self.follow(history, Entry { version: FORM, at, by: self.by.clone(), event })
    }

    /// Appends what `event` makes of the state there is, and of the newer one each time somebody else was first.
    /// Nothing is appended where it makes nothing.
    ///
    /// # Errors
    ///
    /// Those of `event`, and as [`Log::append`]; [`LogError::Lost`] only after `attempts` in a row. Nothing was
    /// written.
    pub async fn append_newest<E: From<LogError>>(
        &self,
        attempts: u32,
        at: u64,
        event: impl Fn(&S) -> Result<Option<S::Event>, E>,
    ) -> Result<(), E> {
        let mut attempt = 1;
        loop {
            let history = self.read().await?;
            let Some(event) = event(&history.state)? else { return Ok(()) };
            match self.append(history, event, at).await {
                Err(LogError::Lost { .. }) if attempt < attempts => {
                    // Not all at once again, and less often the more there are: of many who try, each would lose
                    // most of the time.
                    tokio::time::sleep(AGAIN.saturating_mul(attempt).mul_f64(random())).await;
                    attempt += 1;
                }
                ended => return Ok(ended.map(drop)?),
            }
        }
    }

    /// The names of its entries, sorted. What else lies in the folder, as a file that a tool which copies it left, is none.
    async fn listed(&self) -> Result<Vec<String>, LogError> {
        let (mut objects, _) = self.objects.list(&self.folder()).await?;
        objects.retain(|name| name.len() == DIGITS && name.bytes().all(|byte| byte.is_ascii_digit()));
        Ok(objects)
    }

    fn follow(&self, history: History<S>, entry: Entry<S::Event>) -> Result<History<S>, LogError> {
        let number = history.head() + 1;
        let History { mut entries, state } = history;
        let illegal = |source| LogError::Illegal { log: self.name.clone(), number, source };
        let state = state.after(&entry).map_err(illegal)?;
        entries.push(entry);
        Ok(History { entries, state })
    }

    async fn entry(&self, number: u64) -> Result<Entry<S::Event>, LogError> {
        let gap = || LogError::Gap { log: self.name.clone(), number };
        let bytes = self.objects.read(&self.path(number)).await?.ok_or_else(gap)?;
        let unreadable = |source| self.unreadable(number, source);
        // First, and of it alone: what a later form added cannot be read.
        let Form { version: got } = serde_json::from_slice(&bytes).map_err(unreadable)?;
        if got > FORM {
            return Err(LogError::Later { log: self.name.clone(), number, got, have: FORM });
        }
        serde_json::from_slice(&bytes).map_err(unreadable)
    }

    fn unreadable(&self, number: u64, source: serde_json::Error) -> LogError {
        LogError::Entry { log: self.name.clone(), number, source }
    }

    fn path(&self, number: u64) -> String {
        format!("{}/{}", self.folder(), object(number))
    }

    fn folder(&self) -> String {
        format!("{}/{}/log", self.app, self.name)
    }
}

/// Between 0 and 1.
fn random() -> f64 {
    f64::from(getrandom::u32().unwrap_or_default()) / f64::from(u32::MAX)
}

fn object(number: u64) -> String {
    format!("{number:0DIGITS$}")
}

#[cfg(test)]
mod tests;
