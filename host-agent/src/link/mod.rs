//! The agent's one outbound connection: NATS, and nothing else.
//!
//! Whole signed messages come in and go out; nothing here reads them. It holds no key but the transport's, and
//! believes nothing: what it fetches is verified by those who asked for it.

mod connection;
mod fetch;
mod publish;
mod subscribe;
mod tls;

use std::sync::Arc;
use std::time::Duration;

use replicator_protocol::ids::HostUid;
use tokio::sync::{mpsc, watch};

pub use connection::{Settings, keep};
pub use publish::Summary;
pub use tls::{ClockFaultSeen, TlsError};

/// Longest wait for an answer of the broker: a direct get is answered in milliseconds, a synced publish in tens.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// Why the host may have something to fetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wake {
    /// The connection is up, for the first time or again.
    Connected,
    /// A declaration was published for this host.
    Declaration,
    /// A keyring was published.
    Keyring,
}

/// A message did not get through. It may or may not have reached the broker.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// There is no connection now.
    #[error("there is no connection to the broker")]
    Down,
    /// No answer in time. A broker answers so, too, where the credential does not allow the subject.
    #[error("the broker did not answer on `{subject}` within {} s", ANSWER_WITHIN.as_secs())]
    NoAnswer {
        /// Where it was asked.
        subject: String,
    },
    /// The broker refused, or the client could not ask.
    #[error("the broker refused on `{subject}`")]
    Refused {
        /// Where it was asked.
        subject: String,
        /// What it said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// The connection as the other rooms use it. Cheap to clone.
#[derive(Clone)]
pub struct Link {
    host: Arc<HostUid>,
    client: watch::Receiver<Option<async_nats::Client>>,
}

impl Link {
    fn client(&self) -> Result<async_nats::Client, LinkError> {
        self.client.borrow().clone().ok_or(LinkError::Down)
    }

    /// Waits until the connection goes or comes back.
    pub async fn changed(&mut self) {
        if self.client.changed().await.is_err() {
            // Nobody keeps the connection any more: it will not change.
            std::future::pending::<()>().await;
        }
    }

    /// Whether there is a connection now.
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.client.borrow().is_some()
    }
}

/// The ends of a link: [`keep`] takes one, the other rooms the rest.
pub struct Ends {
    /// For those who fetch and publish.
    pub link: Link,
    /// What woke the host.
    pub wakes: mpsc::Receiver<Wake>,
    /// For [`keep`].
    pub keeper: Keeper,
}

/// What [`keep`] feeds.
pub struct Keeper {
    host: Arc<HostUid>,
    client: watch::Sender<Option<async_nats::Client>>,
    wakes: mpsc::Sender<Wake>,
}

/// Makes the ends of a link for `host`; nothing is connected before [`keep`] runs.
#[must_use]
pub fn ends(host: &HostUid) -> Ends {
    let host = Arc::new(host.clone());
    let (sender, client) = watch::channel(None);
    // Wakes only say that there is something to fetch: a full channel says so already.
    let (wakes_in, wakes) = mpsc::channel(16);
    let keeper = Keeper { host: host.clone(), client: sender, wakes: wakes_in };
    Ends { link: Link { host, client }, wakes, keeper }
}
