//! A broker that lost something is given it again: accounts, streams, keyrings, receipts, declarations.
//!
//! Everything lies on the controller's side already. What the broker holds is compared with it, and only what
//! differs is sent.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use async_nats::Client;
use bytes::Bytes;
use replicator_protocol::envelope::{Unverified, Verified, verify};
use replicator_protocol::ids::{HostId, HostUid, Position};
use replicator_protocol::subjects;
use replicator_protocol::wire::event::Receipt;

use super::chain::Head;
use super::collector::{Parts, signed};
use super::store::StoreError;
use crate::home::Home;
use crate::keys::accounts::{self, Member};
use crate::keys::{KeysError, certificates, keyring};
use crate::link::{self, LinkError};
use crate::publisher::accounts::{AccountsError, push_missing, remove_withdrawn};
use crate::publisher::streams::{self, Ensured, Fill};
use crate::publisher::{PublishError, publish};
use crate::state::{self, App, Log, LogError, Reached};
use crate::words::chain_of;

/// How often the broker is compared.
const EVERY: Duration = Duration::from_secs(30);
/// How soon a connection made anew is noticed.
const LOOK: Duration = Duration::from_millis(500);
/// Pause after a comparison that failed.
const AGAIN: Duration = Duration::from_secs(3);

/// A comparison that was not finished.
#[derive(Debug, thiserror::Error)]
pub(super) enum RefillError {
    #[error(transparent)]
    Link(#[from] LinkError),
    #[error(transparent)]
    Accounts(#[from] AccountsError),
    #[error(transparent)]
    Streams(#[from] streams::StreamsError),
    #[error(transparent)]
    Publish(#[from] PublishError),
    #[error(transparent)]
    Keys(#[from] KeysError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Log(#[from] LogError),
    #[error("a thread of the comparison ended early")]
    Thread(#[from] tokio::task::JoinError),
}

/// The users a comparison needs.
pub(super) struct Hands {
    pub(super) home: Home,
    pub(super) admin: Client,
    pub(super) system: Client,
    /// How far each provisioning log was read, by app and host: it only grows, and each comparison needs its end.
    reached: tokio::sync::Mutex<BTreeMap<(App, HostId), Reached>>,
}

impl Hands {
    /// Connects both.
    pub(super) async fn connect(parts: &Parts, home: &Home) -> Result<Self, LinkError> {
        let admin = link::connect(&parts.folder, Member::Admin).await?;
        let system = link::connect(&parts.folder, Member::System).await?;
        Ok(Self { home: home.clone(), admin, system, reached: tokio::sync::Mutex::default() })
    }
}

/// What a comparison found.
pub(super) struct Compared {
    /// How full each stream is.
    fills: Vec<Fill>,
    /// What became of the declarations.
    declarations: Declarations,
}

/// What a comparison found of the last declaration of each host.
#[derive(Default)]
struct Declarations {
    /// How many the broker was given.
    given: usize,
    /// In whose place the broker holds a declaration that this controller's log does not end with.
    overtaken: Vec<Overtaken>,
    /// Logs that cannot be read, so that nothing of their hosts is compared.
    unreadable: Vec<LogError>,
}

/// A declaration that was not published, for the broker holds another one that is no earlier.
struct Overtaken {
    uid: HostUid,
    got: Position,
    have: Position,
}

/// What became of the last declaration of one log.
enum Put {
    /// The broker was given it.
    Given,
    /// The broker holds it, or there is none for it.
    Kept,
    /// The broker holds another one.
    Overtaken(Overtaken),
}

/// What was said already, and is said again only after it was not so.
#[derive(Default)]
struct Said {
    full: BTreeSet<String>,
    overtaken: BTreeSet<(String, Position)>,
    unreadable: BTreeSet<String>,
}

/// Compares for as long as it is polled.
pub(super) async fn keep_full(parts: Parts, hands: Hands) {
    let mut last_problem = String::new();
    let mut said = Said::default();
    loop {
        // A connection that was made anew may be to another broker, and what a later keyring revokes must not wait. Seen
        // before the comparison: what comes while it is made is none that it knew.
        let version = parts.keys.keyrings().current.version();
        let statistics = hands.admin.statistics();
        let seen = || (statistics.connects.load(Ordering::Relaxed), keyring::has_later(&parts.folder, version));
        let before = seen();
        match refill(&parts, &hands).await {
            Ok(compared) => {
                last_problem.clear();
                said.full(&compared.fills);
                said.overtaken(&compared.declarations.overtaken);
                said.unreadable(&compared.declarations.unreadable);
                tokio::select! {
                    () = wait(|| seen() != before) => {}
                    () = parts.mended.notified() => {}
                }
            }
            Err(error) => {
                if let RefillError::Store(error) = &error {
                    parts.mend(error).await;
                }
                let problem = chain_of(&error);
                if problem != last_problem {
                    tracing::warn!(error = %problem, "the broker could not be compared; trying again");
                    last_problem = problem;
                }
                tokio::time::sleep(AGAIN).await;
            }
        }
    }
}

/// Waits until it is time, or until something has changed.
async fn wait(has_changed: impl Fn() -> bool) {
    let started = Instant::now();
    while started.elapsed() < EVERY && !has_changed() {
        tokio::time::sleep(LOOK).await;
    }
}

/// Compares once, streams first: what follows lies in them.
pub(super) async fn refill(parts: &Parts, hands: &Hands) -> Result<Compared, RefillError> {
    parts.keys.reload(state::now());
    let Ensured { made, corrected, fills } = streams::ensure(&hands.admin, &streams::wanted()).await?;
    told(parts, "streams", made.len() + corrected.len());
    for stream in corrected {
        let (stream, fields) = (stream.name, stream.fields.join(", "));
        tracing::warn!(stream, fields, "somebody had changed a stream; it is as it has to be again");
    }
    fills.iter().for_each(|fill| parts.metrics.fill(fill));
    let (store, kept) = (Arc::clone(&parts.store), fills.clone());
    tokio::task::spawn_blocking(move || store.keep_fills(&kept, state::now())).await??;
    told(parts, "keyrings", publish::publish_keyrings(&hands.admin, &parts.keys.keyrings()).await?);
    for host in remove_withdrawn(&parts.folder, &hands.system).await? {
        tracing::info!(%host, "the account of a retired host, which the broker could not be told of before, is removed");
    }
    told(parts, "accounts", push_missing(&parts.folder, &hands.system).await?.len());
    told(parts, "receipts", receipts(parts, hands).await?);
    parts.metrics.only(|host| accounts::is_kept(&parts.folder, host).unwrap_or(true));
    let declarations = declarations(parts, hands).await?;
    told(parts, "declarations", declarations.given);
    parts.metrics.overtaken(declarations.overtaken.len());
    parts.metrics.unreadable(declarations.unreadable.len());
    parts.metrics.compared();
    Ok(Compared { fills, declarations })
}

impl Said {
    /// Warns of each stream that gets nearly full.
    fn full(&mut self, fills: &[Fill]) {
        for fill in fills {
            if !fill.alarms() {
                self.full.remove(&fill.stream);
            } else if self.full.insert(fill.stream.clone()) {
                let Fill { stream, bytes, room } = fill;
                tracing::warn!(%stream, bytes, room, "a stream of the broker is nearly full ({} %)", fill.percent());
            }
        }
    }

    /// Says whose declaration was not published.
    fn overtaken(&mut self, overtaken: &[Overtaken]) {
        let before = std::mem::take(&mut self.overtaken);
        for Overtaken { uid, got, have } in overtaken {
            let is_known = before.contains(&(uid.to_string(), *have));
            self.overtaken.insert((uid.to_string(), *have));
            if !is_known {
                let (got, have) = (got.sequence, have.sequence);
                tracing::error!(
                    host = %uid, got, have,
                    "a controller with another log issued what the broker holds for a host; it stays, and what was issued \
                     here last is not published: see which controller is to declare for it, and stop the other"
                );
            }
        }
    }

    /// Says whose log cannot be read.
    fn unreadable(&mut self, unreadable: &[LogError]) {
        let before = std::mem::take(&mut self.unreadable);
        for error in unreadable {
            let problem = chain_of(error);
            if !before.contains(&problem) {
                let hint = error.hint();
                tracing::error!(error = %problem, hint, "what was issued last for a host is not compared with the broker");
            }
            self.unreadable.insert(problem);
        }
    }
}

fn told(parts: &Parts, what: &'static str, count: usize) {
    if count > 0 {
        tracing::info!(what, count, "the broker was given what it lacked");
        parts.metrics.refilled(what, count);
    }
}

/// Publishes how far each host is stored where the broker says otherwise: nothing, or more than there is here.
///
/// The second is a collector restored from a backup: the host sends again what was lost.
async fn receipts(parts: &Parts, hands: &Hands) -> Result<usize, RefillError> {
    let mut given = 0;
    let Some(key) = parts.keys.collect() else { return Ok(given) };
    let mut held = Vec::new();
    for host in certificates::list(&parts.folder)? {
        let receipt = publish::held_at(&hands.admin, subjects::RECEIPTS, &subjects::receipt(&host)).await?;
        held.push((host, receipt));
    }
    // The broker first, the store after: what is stored only grows, so that a receipt published meanwhile is never
    // taken for one of too much. And not on a thread that others wait for: a store that another program has locked is
    // waited for.
    let store = Arc::clone(&parts.store);
    let mut heads: BTreeMap<_, _> = tokio::task::spawn_blocking(move || store.heads()).await??.into_iter().collect();
    for (host, held) in held {
        let (after, held) = held.map_or((0, None), |(number, held)| (number, Some(held)));
        // Of a host of which nothing is stored the broker may hold a receipt all the same.
        let none = || Some(Head::empty(chain_in(parts, held.as_ref()?)?));
        let Some(head) = heads.remove(&host).or_else(none) else { continue };
        let receipt = signed(&host, &head, &key);
        if held.as_ref() != Some(&receipt) {
            // Where the collector published one since, it reaches further than what was read: it stays.
            let subject = subjects::receipt(&host);
            given += usize::from(publish::put_after(&hands.admin, subject, &receipt, after).await?);
        }
    }
    Ok(given)
}

/// The chain a receipt of this fleet speaks of.
fn chain_in(parts: &Parts, receipt: &Bytes) -> Option<[u8; 16]> {
    let keyrings = parts.keys.keyrings();
    let trust = keyrings.current.at(state::now());
    let receipt: Verified<Receipt> = verify(&Unverified::new(receipt.clone()), &trust).ok()?;
    receipt.chain[..].try_into().ok()
}

/// Publishes the last declaration issued for each host where the broker's last is an earlier one, or none. A log that
/// cannot be read keeps back no other host's.
async fn declarations(parts: &Parts, hands: &Hands) -> Result<Declarations, RefillError> {
    let admitted = certificates::list(&parts.folder)?;
    let (logs, unreadable) = logs(&hands.home).await;
    let mut all = Declarations { unreadable, ..Declarations::default() };
    let mut known = hands.reached.lock().await;
    let mut before = std::mem::take(&mut *known);
    for (of, log) in logs {
        let mut reached = before.remove(&of).unwrap_or_default();
        let put = declaration(parts, hands, &admitted, (&log, &mut reached)).await;
        known.insert(of, reached);
        match put {
            Ok(Put::Given) => all.given += 1,
            Ok(Put::Kept) => {}
            Ok(Put::Overtaken(overtaken)) => all.overtaken.push(overtaken),
            Err(RefillError::Log(error)) => all.unreadable.push(error),
            Err(error) => return Err(error),
        }
    }
    Ok(all)
}

/// Publishes the last declaration of one log, read on from where it was `reached`.
async fn declaration(
    parts: &Parts,
    hands: &Hands,
    admitted: &[HostUid],
    (log, reached): (&Log, &mut Reached),
) -> Result<Put, RefillError> {
    *reached = log.read_on(std::mem::take(reached)).await?;
    let state = &reached.state;
    let (Some((_, uid)), Some(issued)) = (&state.identity, state.last_issued()) else { return Ok(Put::Kept) };
    if !admitted.contains(uid) {
        return Ok(Put::Kept);
    }
    let (keyrings, got) = (parts.keys.keyrings(), issued.position);
    match publish::put_declaration(&hands.admin, &keyrings, uid, got, &issued.envelope).await {
        Ok(true) => Ok(Put::Given),
        Ok(false) => Ok(Put::Kept),
        Err(PublishError::Overtaken { have, .. }) => {
            // Where the log has gone on since, it is this controller's: the next comparison starts from there.
            let since = log.read_on(reached.clone()).await?;
            let went_on = since.state.last_issued().is_some_and(|issued| issued.position > got);
            Ok(if went_on { Put::Kept } else { Put::Overtaken(Overtaken { uid: uid.clone(), got, have }) })
        }
        Err(error) => Err(error.into()),
    }
}

/// The logs of every host in the local state, and why some cannot be had.
async fn logs(home: &Home) -> (Vec<((App, HostId), Log)>, Vec<LogError>) {
    let (mut logs, mut unreadable) = (Vec::new(), Vec::new());
    for entry in std::fs::read_dir(home.state()).into_iter().flatten().flatten() {
        let Some(app) = entry.file_name().to_str().and_then(|name| App::parse(name).ok()) else { continue };
        let hosts = Log::hosts(home, &app).await.unwrap_or_else(|error| {
            unreadable.push(error);
            Vec::new()
        });
        for host in hosts {
            match Log::local(home, &app, &host) {
                Ok(log) => logs.push(((app.clone(), host), log)),
                Err(error) => unreadable.push(error),
            }
        }
    }
    (logs, unreadable)
}
