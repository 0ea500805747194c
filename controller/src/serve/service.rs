//! `serve` itself: starts the tasks, and stops them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::collector::{self, Parts};
use super::keys::Keys;
use super::metrics::Metrics;
use super::refill::{self, Hands, RefillError};
use super::store::{Store, StoreError};
use super::{heartbeats, http};
use crate::home::{FleetFolder, Home};
use crate::keys::KeysError;
use crate::keys::accounts::Member;
use crate::link::{self, LinkError};
use crate::state;

/// How long open requests may take to end once it stops.
const STOP_WITHIN: Duration = Duration::from_secs(3);

/// What `serve` runs with.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The fleet's folder.
    pub fleet: FleetFolder,
    /// Where `/healthz` and `/metrics` are.
    pub listen: SocketAddr,
}

/// `serve` could not start, or had to end.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// A key could not be had.
    #[error(transparent)]
    Keys(#[from] KeysError),
    /// The broker cannot be reached.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The broker could not be given what it lacks.
    #[error("cannot prepare the broker")]
    Prepare(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The address is taken, or not ours.
    #[error("cannot listen on `{listen}`")]
    Listen {
        /// Where.
        listen: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
}

impl ServeError {
    /// One line that names the next action.
    pub fn hint(&self) -> String {
        match self {
            Self::Keys(error) => error.hint(),
            Self::Link(error) => error.hint(),
            Self::Store(error) => error.hint(),
            Self::Prepare(_) => "look at the broker's log and disk".into(),
            Self::Listen { .. } => "choose another address with `--listen`; a second `serve` may be running".into(),
        }
    }
}

/// Collects until `stop`; `ready` is called once hosts are served.
///
/// # Errors
///
/// [`ServeError`] where it cannot start. What breaks later is tried again.
pub async fn serve(
    home: &Home,
    settings: Settings,
    ready: impl FnOnce(SocketAddr),
    stop: CancellationToken,
) -> Result<(), ServeError> {
    let Settings { fleet, listen } = settings;
    let keys = Arc::new(Keys::load(&fleet, state::now())?);
    let (store, mended) = Store::open_sound(&home.collected_events(), state::now())?;
    mended.iter().for_each(|mended| tracing::error!("{mended}"));
    let failed = |source| ServeError::Listen { listen, source };
    let listener = TcpListener::bind(listen).await.map_err(failed)?;
    let at = listener.local_addr().map_err(failed)?;
    let client = link::connect(&fleet, Member::Collector).await?;
    let metrics = Arc::new(Metrics::new());
    mended.iter().for_each(|_| metrics.mended());
    store.heartbeats()?.iter().for_each(|(host, at, _)| metrics.heard_before(host, *at));
    let (store, mended) = (Arc::new(store), Arc::default());
    let parts = Parts { folder: fleet, keys, client: client.clone(), store, metrics: Arc::clone(&metrics), mended };
    let hands = Hands::connect(&parts, home).await?;
    // Once before anything else: the streams have to be there for whoever comes next.
    refill::refill(&parts, &hands).await.map_err(prepare)?;
    ready(at);

    let pages = axum::serve(listener, http::pages(client, metrics));
    let pages = pages.with_graceful_shutdown(stop.clone().cancelled_owned());
    let tasks = async {
        tokio::join!(
            collector::collect(parts.clone()),
            heartbeats::listen(parts.clone()),
            refill::keep_full(parts.clone(), hands),
        )
    };
    let pages = tokio::spawn(pages.into_future());
    tokio::select! {
        _ = Box::pin(tasks) => {}
        () = stop.cancelled() => {}
    }
    // What was not acknowledged comes again at the next start; only open pages are waited for.
    let _ = tokio::time::timeout(STOP_WITHIN, pages).await;
    Ok(())
}

fn prepare(error: RefillError) -> ServeError {
    match error {
        RefillError::Link(error) => ServeError::Link(error),
        RefillError::Keys(error) => ServeError::Keys(error),
        RefillError::Store(error) => ServeError::Store(error),
        RefillError::Accounts(_)
        | RefillError::Streams(_)
        | RefillError::Publish(_)
        | RefillError::Log(_)
        | RefillError::Thread(_) => ServeError::Prepare(Box::new(error)),
    }
}
