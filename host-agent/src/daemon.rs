//! The agent as it runs: starts and stops the tasks of the other rooms.
//!
//! What was told last is applied at start, with or without a broker; then declarations come in, and between
//! them the machine is looked at. This room decides when; what is done to the machine is the applier's business,
//! and what is told of it the reporter's.

mod applying;
mod listening;
mod receiving;
mod schedule;
mod supervision;

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use replicator_protocol::wire::event::event::Body;
use replicator_protocol::wire::event::{AgentStarted, ApplyReported, ClockFault, Trigger};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::abilities::Abilities;
use crate::clock::Clock;
use crate::config::{Config, Layout};
use crate::inbox::{InForce, Inbox, InboxError};
use crate::keys::Membership;
use crate::keys::host_key::HostKeys;
use crate::keys::trusted::Trusted;
use crate::ledger::{AppendError, SharedLedger};
use crate::link::{self, Ends};
use crate::reporter::{self, Vitals};

pub use listening::{ASK_AGAIN, Heard, listen};
pub use supervision::supervisor;

/// How long the tasks have to reach a safe point once the agent is told to stop, longer than one stop and kill of a
/// container; and then what they appended last has to be sent.
const STOP_WITHIN: Duration = Duration::from_secs(60);
/// Longest that the agent takes to end once it is told to. Whatever supervises it has to wait longer.
pub const ENDS_WITHIN: Duration = STOP_WITHIN.saturating_mul(2);

/// How closely the machine is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// Does everything declared run?
    Cheap,
    /// Is everything what was declared?
    Full,
}

/// An apply or a look could not be done to its end; it is tried again.
#[derive(Debug, thiserror::Error)]
#[error("the machine could not be {what}")]
pub struct ApplyError {
    /// `made what is declared` or `looked at`.
    pub what: &'static str,
    /// Why.
    pub source: Box<dyn std::error::Error + Send + Sync>,
}

/// Says whether an apply should end at the next safe point, for something newer waits.
pub type NewerWaiting<'a> = &'a (dyn Fn() -> bool + Send + Sync);

/// What makes the machine match a declaration.
pub trait Applier: Send + Sync + 'static {
    /// Applies `in_force`, and has appended its report when it returns.
    ///
    /// Between resources it asks `newer_waiting`; if so it ends there, and its report is not complete.
    fn apply(
        &self,
        in_force: &InForce,
        trigger: Trigger,
        newer_waiting: NewerWaiting<'_>,
    ) -> impl Future<Output = Result<ApplyReported, ApplyError>> + Send;

    /// Looks whether the machine is what `in_force` says, and mends what is not. `None` where nothing was found.
    fn look(
        &self,
        in_force: &InForce,
        depth: Depth,
        newer_waiting: NewerWaiting<'_>,
    ) -> impl Future<Output = Result<Option<ApplyReported>, ApplyError>> + Send;
}

/// The agent could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The ledger could not be written.
    #[error(transparent)]
    Append(#[from] AppendError),
    /// What is in force could not be found.
    #[error(transparent)]
    Inbox(#[from] InboxError),
    /// The signals that stop it cannot be listened for.
    #[error("cannot listen for signals")]
    Signals(#[source] std::io::Error),
}

/// What the daemon is made of.
pub struct Parts<A> {
    /// Makes the machine match.
    pub applier: Arc<A>,
    /// What is heard of the runtime.
    pub heard: mpsc::Receiver<Heard>,
    /// Who this host is.
    pub membership: Membership,
    /// Its keys.
    pub keys: Arc<HostKeys>,
    /// Whom it believes.
    pub trusted: Trusted,
    /// What happened.
    pub ledger: Arc<SharedLedger>,
    /// Where its files lie.
    pub layout: Layout,
    /// What its operator set.
    pub config: Config,
    /// Whether a broker that is too old is put up with: for tests.
    pub allow_old_broker: bool,
    /// Times.
    pub clock: Arc<dyn Clock>,
}

/// Runs until told to stop (`SIGTERM`, `SIGINT`), and then to the next safe point.
///
/// # Errors
///
/// [`StartError`]: nothing of the machine was touched.
pub async fn run<A: Applier>(parts: Parts<A>) -> Result<(), StartError> {
    let Parts { applier, heard, membership, keys, trusted, ledger, layout, config, allow_old_broker, clock } = parts;
    let stop = CancellationToken::new();
    supervision::stop_on_signals(stop.clone()).map_err(StartError::Signals)?;
    let started = AgentStarted { agent_version: env!("CARGO_PKG_VERSION").into(), supervisor: supervisor().into() };
    let status = ledger.state().status;
    // The same as before is no news: a start that finds nothing to do appends nothing.
    if (&status.agent_version, &status.supervisor) != (&started.agent_version, &started.supervisor) {
        ledger.append(None, vec![Body::AgentStarted(started)])?;
    }
    let abilities = Abilities::of_this_machine(config.docker_socket());
    let means = (config.docker_socket(), abilities.clone());
    let inbox = Inbox::open(&layout, means, membership.clone(), ledger.clone())?;

    let (in_force_in, in_force) = watch::channel(inbox.in_force());
    let (keyring_in, keyring) = watch::channel(Arc::new(trusted.keyring().clone()));
    let vitals = Vitals::default();
    let Ends { link, wakes, keeper } = link::ends(&membership.uid);
    let tasks = TaskTracker::new();

    applying::on_a_thread_of_its_own(
        &tasks,
        applying::keep_applying(
            applier,
            applying::Inputs { in_force, heard, intervals: config.intervals.clone() },
            (vitals.clone(), clock.clone()),
            stop.clone(),
        ),
    );
    let receiver = receiving::Receiver {
        link: link.clone(),
        inbox,
        trusted,
        ledger: ledger.clone(),
        clock: clock.clone(),
        vitals: vitals.clone(),
        in_force: in_force_in,
        keyring: keyring_in,
    };
    tasks.spawn(receiver.keep_receiving(wakes, config.intervals.poll, stop.clone()));
    let reporting =
        reporter::Parts { host: membership.uid.clone(), keys, ledger: ledger.clone(), link, keyring, clock, vitals };
    let beat = (config.intervals.heartbeat, abilities, supervisor().to_owned());
    tasks.spawn(reporter::keep_beating(reporting.clone(), beat, stop.clone()));
    let sent = CancellationToken::new();
    let sending = tokio::spawn(reporter::keep_reporting(reporting, sent.clone()));
    tasks.spawn(supervision::keep_alive(stop.clone()));
    let settings = link::Settings {
        broker: config.broker,
        jwt: layout.link_credential(),
        seed: layout.link_seed(),
        clock_fault: record_clock_fault(ledger),
        allow_old_broker,
    };
    let linking = tokio::spawn(async move {
        if let Err(error) = link::keep(keeper, settings).await {
            tracing::error!(%error, "no link: the settings cannot be used; what is in force goes on");
        }
    });

    supervision::ready();
    stop.cancelled().await;
    supervision::stopping();
    tasks.close();
    if tokio::time::timeout(STOP_WITHIN, tasks.wait()).await.is_err() {
        tracing::warn!("a task did not reach a safe point in time; the next start observes what it left");
    }
    // What the tasks appended last is sent before the link goes.
    sent.cancel();
    if tokio::time::timeout(STOP_WITHIN, sending).await.is_err() {
        tracing::warn!("some events were not sent; the next start sends them");
    }
    linking.abort();
    Ok(())
}

/// Appends a clock fault the first time this process sees one.
fn record_clock_fault(ledger: Arc<SharedLedger>) -> link::ClockFaultSeen {
    let told = AtomicBool::new(false);
    Arc::new(move |offset| {
        if told.swap(true, Ordering::Relaxed) {
            return;
        }
        tracing::warn!(offset, "the broker's certificate is outside its dates by this host's clock");
        let fault = ClockFault { source: "broker-certificate".into(), offset };
        if let Err(error) = ledger.append(None, vec![Body::ClockFault(fault)]) {
            tracing::error!(%error, "a clock fault was not recorded");
        }
    })
}
