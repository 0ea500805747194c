//! One ledger for all tasks of the process, and a wake-up for those that send it on.

use std::error::Error as _;
use std::sync::{Mutex, MutexGuard, PoisonError};

use replicator_protocol::ids::Digest;
use replicator_protocol::wire::event::DeclarationRef;
use replicator_protocol::wire::event::event::Body;
use tokio::sync::watch;

use super::{AppendError, Entry, Head, Ledger, ReadError, State};

/// The ledger, to be held in an `Arc`. Appends are short and synced; a task that appends waits for the disk.
pub struct SharedLedger {
    ledger: Mutex<Ledger>,
    appended: watch::Sender<u64>,
}

impl SharedLedger {
    /// Takes the ledger over.
    #[must_use]
    pub fn new(ledger: Ledger) -> Self {
        let (appended, _) = watch::channel(ledger.head().number);
        Self { ledger: Mutex::new(ledger), appended }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Ledger> {
        // A task that panicked inside a transaction left it rolled back: the ledger is as it was before.
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// As [`Ledger::append`], and wakes whoever watches.
    ///
    /// # Errors
    ///
    /// [`AppendError`]: nothing of the batch was recorded.
    pub fn append(&self, declaration: Option<&DeclarationRef>, bodies: Vec<Body>) -> Result<Head, AppendError> {
        let mut ledger = self.lock();
        let head = ledger.append(declaration, bodies)?;
        self.keep(&mut ledger);
        Ok(head)
    }

    /// As [`Ledger::look`]; what cannot be done is logged, and tried again by the next one.
    pub fn look(&self) {
        let mut ledger = self.lock();
        if let Err(error) = ledger.look() {
            let why = error.source().map(ToString::to_string).unwrap_or_default();
            tracing::error!(%error, why, "the ledger's file is not in its place");
        }
        self.appended.send_replace(ledger.head().number);
    }

    /// Keeps the ledger within its limits. What was appended or settled is so whether or not that can be done.
    fn keep(&self, ledger: &mut Ledger) {
        if let Err(error) = ledger.keep_within_limits() {
            let why = error.source().map(ToString::to_string).unwrap_or_default();
            tracing::error!(%error, why, "the ledger grows beyond its limits");
        }
        self.appended.send_replace(ledger.head().number);
    }

    /// As [`Ledger::head`].
    #[must_use]
    pub fn head(&self) -> Head {
        self.lock().head()
    }

    /// As [`Ledger::state`].
    #[must_use]
    pub fn state(&self) -> State {
        self.lock().state().clone()
    }

    /// As [`Ledger::read_after`].
    ///
    /// # Errors
    ///
    /// [`ReadError`].
    pub fn read_after(&self, after: u64, limit: u32) -> Result<Vec<Entry>, ReadError> {
        self.lock().read_after(after, limit)
    }

    /// As [`Ledger::settled`].
    ///
    /// # Errors
    ///
    /// [`ReadError`].
    pub fn settled(&self) -> Result<u64, ReadError> {
        self.lock().settled()
    }

    /// As [`Ledger::settle`].
    ///
    /// # Errors
    ///
    /// [`AppendError`]: nothing was recorded.
    pub fn settle(&self, number: u64, hash: Digest) -> Result<bool, AppendError> {
        let mut ledger = self.lock();
        let known = ledger.settle(number, hash)?;
        self.keep(&mut ledger);
        Ok(known)
    }

    /// The number of the last entry, whenever it changes.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.appended.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use replicator_protocol::ids::HostUid;
    use replicator_protocol::wire::event::DriftFound;

    use super::*;
    use crate::clock::SystemClock;

    #[tokio::test]
    async fn append_wakes_those_who_watch() {
        let at = tempfile::tempdir().unwrap();
        let host = HostUid::parse(&"a".repeat(32)).unwrap();
        let ledger = SharedLedger::new(Ledger::open(at.path(), &host, Arc::new(SystemClock)).unwrap());
        let mut watch = ledger.watch();
        let head = ledger.append(None, vec![Body::DriftFound(DriftFound::default())]).unwrap();
        watch.changed().await.unwrap();
        assert_eq!(*watch.borrow(), head.number);
    }
}
