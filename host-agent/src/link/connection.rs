//! Coming up and staying up: one connection at a time, for as long as the process lives.

use std::path::PathBuf;
use std::time::Duration;

use async_nats::{Auth, AuthError, Client, ConnectOptions, Event};
use nkeys::{KeyPair, KeyPairType};
use replicator_protocol::broker_version::{OLDEST, is_too_old};
use replicator_protocol::enrolment::Broker;
use replicator_protocol::subjects;
use tokio::sync::mpsc;
use zeroize::Zeroizing;

use super::subscribe::forward_wakes;
use super::tls::{self, ClockFaultSeen, TlsError};
use super::{Keeper, Wake};
use crate::config::jittered;

/// Longest wait for one address, in all: TCP, TLS and the broker's greeting.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// How often the broker is asked whether it is there: a dead path is noticed in two of these.
const PING_EVERY: Duration = Duration::from_secs(20);
/// First and longest pause between attempts, in seconds: a fleet that lost its broker must not come back at once.
const RETRY_AFTER: (u64, u64) = (1, 60);

/// How often the pause before reconnecting doubles, from a tenth of a second: to some 51 s.
const RECONNECT_DOUBLINGS: u32 = 9;

/// What the connection is made with.
#[derive(Clone)]
pub struct Settings {
    /// Addresses, name and authority.
    pub broker: Broker,
    /// The user JWT's file.
    pub jwt: PathBuf,
    /// The seed's file: 32 bytes.
    pub seed: PathBuf,
    /// Told of a certificate outside its dates.
    pub clock_fault: ClockFaultSeen,
    /// Whether a broker that is too old is put up with: for tests.
    pub allow_old_broker: bool,
}

/// There is no connection; the next attempt may make one.
#[derive(Debug, thiserror::Error)]
enum ConnectError {
    /// Nobody answers, or not as the broker, or it does not know the credential.
    #[error(transparent)]
    Client(#[from] async_nats::ConnectError),
    /// It would silently ignore limits we rely on.
    #[error("the broker is too old (got nats-server {got}, need {}.{} or later)", OLDEST.0, OLDEST.1)]
    TooOld {
        /// Its version.
        got: String,
    },
}

/// Keeps the connection up until the other ends are gone. Returns early only where the settings cannot be used.
///
/// Every attempt reads the credential's files again, so that one minted anew is taken up by itself.
///
/// # Errors
///
/// [`TlsError`]: nothing was connected.
pub async fn keep(keeper: Keeper, settings: Settings) -> Result<(), TlsError> {
    let uses_tls = settings.broker.urls.iter().any(|url| url.starts_with("tls://"));
    let tls = uses_tls
        .then(|| tls::client(&settings.broker.ca, &settings.broker.server_name, settings.clock_fault.clone()))
        .transpose()?;
    let mut pause = RETRY_AFTER.0;
    let mut last_problem = String::new();
    while !keeper.client.is_closed() {
        let (events_in, events) = mpsc::channel(16);
        match connect(&keeper, &settings, tls.clone(), events_in).await {
            Ok(client) => {
                tracing::info!("connected to the broker");
                (pause, last_problem) = (RETRY_AFTER.0, String::new());
                keeper.client.send_replace(Some(client.clone()));
                forward_wakes(&keeper, &client, events, || settings.serves(&client)).await;
                keeper.client.send_replace(None);
            }
            Err(error) => {
                let problem = chain(&error);
                if problem != last_problem {
                    tracing::warn!(error = %problem, "no connection to the broker; trying again");
                    last_problem = problem;
                }
            }
        }
        tokio::select! {
            () = tokio::time::sleep(jittered(pause, random())) => {}
            () = keeper.client.closed() => {}
        }
        pause = (pause * 2).min(RETRY_AFTER.1);
    }
    Ok(())
}

impl Settings {
    /// Whether the broker at the other end is one to be used.
    fn serves(&self, client: &Client) -> bool {
        self.allow_old_broker || !is_too_old(&client.server_info().version)
    }
}

async fn connect(
    keeper: &Keeper,
    settings: &Settings,
    tls: Option<rustls::ClientConfig>,
    events: mpsc::Sender<Event>,
) -> Result<Client, ConnectError> {
    let (jwt, seed) = (settings.jwt.clone(), settings.seed.clone());
    let options = ConnectOptions::with_auth_callback(move |nonce| {
        let answer = credential(&jwt, &seed, &nonce);
        async move { answer }
    })
    .name(format!("replicator-host-agent {}", env!("CARGO_PKG_VERSION")))
    .custom_inbox_prefix(subjects::inbox_prefix(&keeper.host))
    // An address the broker announces is not one the operator wrote down.
    .ignore_discovered_servers()
    .connection_timeout(CONNECT_WITHIN)
    .request_timeout(Some(super::ANSWER_WITHIN))
    .ping_interval(PING_EVERY)
    .reconnect_delay_callback(reconnect_after)
    .event_callback(move |event| {
        // A full channel loses no more than a wake-up, and the poll makes up for that.
        let _full = events.try_send(event);
        async {}
    });
    let options = match tls {
        Some(tls) => options.tls_first().require_tls(true).tls_client_config(tls),
        None => options,
    };
    let client = options.connect(settings.broker.urls.clone()).await?;
    if settings.serves(&client) { Ok(client) } else { Err(ConnectError::TooOld { got: client.server_info().version }) }
}

/// The pause before a lost connection is tried for the `attempt`th time: short at first, for a broker that is only
/// restarted, and then ever longer.
fn reconnect_after(attempt: usize) -> Duration {
    let doubled = u32::try_from(attempt).unwrap_or(u32::MAX).min(RECONNECT_DOUBLINGS);
    jittered(1, random()) / 10 * 2_u32.pow(doubled)
}

/// Reads the credential and signs the broker's challenge with it.
fn credential(jwt: &PathBuf, seed: &PathBuf, nonce: &[u8]) -> Result<Auth, AuthError> {
    let read = |path: &PathBuf| {
        std::fs::read(path).map_err(|error| AuthError::new(format!("could not read `{}`: {error}", path.display())))
    };
    let malformed = |path: &PathBuf| AuthError::new(format!("`{}` holds no credential", path.display()));
    let jwt_text = String::from_utf8(read(jwt)?).map_err(|_| malformed(jwt))?;
    let seed_bytes = Zeroizing::new(read(seed)?);
    let raw = <[u8; 32]>::try_from(&seed_bytes[..]).map_err(|_| malformed(seed))?;
    let pair = KeyPair::new_from_raw(KeyPairType::User, raw).map_err(|_| malformed(seed))?;
    let mut auth = Auth::new();
    auth.jwt = Some(jwt_text.trim().to_owned());
    auth.signature = Some(pair.sign(nonce).map_err(|_| malformed(seed))?);
    Ok(auth)
}

pub(super) fn random() -> u64 {
    // Only jitter: without randomness every host would merely be as punctual as the others.
    getrandom::u64().unwrap_or_default()
}

/// An error with what caused it, on one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

impl Keeper {
    pub(super) fn wake(&self, wake: Wake) {
        // Full or gone: either way nobody needs to be told once more.
        let _unneeded = self.wakes.try_send(wake);
    }
}

#[cfg(test)]
mod tests;
