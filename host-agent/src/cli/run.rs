//! `run`: the agent itself, until it is told to stop.

use std::sync::Arc;

use replicator_protocol::sealed_box::Recipient;
use tokio::sync::mpsc;

use super::failure::{Exit, Failure};
use crate::appliers::Executor;
use crate::appliers::applier::Tools;
use crate::clock::{Clock, SystemClock};
use crate::config::{Config, Layout};
use crate::daemon::{self, ASK_AGAIN, Parts, listen};
use crate::host::docker::Docker;
use crate::keys::digest_key::DigestKey;
use crate::keys::host_key::HostKeys;
use crate::keys::trusted::Trusted;
use crate::keys::{Membership, Opener};
use crate::ledger::{self, Ledger, SharedLedger};

/// Ends the process where any of its threads panics. A task that ended so would leave an agent behind that beats and
/// applies nothing; whoever supervises it starts a whole one again.
fn end_on_panic() {
    let tell = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        tell(panic);
        std::process::exit(Exit::Bug.code().into());
    }));
}

pub(super) fn run(layout: &Layout, allow_old_broker: bool) -> Result<(), Failure> {
    end_on_panic();
    let config = Config::load(layout)?;
    let membership = Membership::load(&layout.trust())?;
    layout.make_folders()?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let ledger = open(layout, &membership, &clock)?.within(config.ledger_limits());
    layout.sweep()?;
    let ledger = Arc::new(SharedLedger::new(ledger));
    let keys = Arc::new(HostKeys::load(&layout.keys())?);
    let root = membership.root().ok_or_else(|| Failure::message("the membership names no root document"))?;
    let trusted = Trusted::load(&layout.trust(), root)?;
    let docker = Docker::new(config.docker_socket());
    let recipient = Recipient { fleet: membership.fleet.clone(), host: membership.uid.clone() };
    let applied_before = !ledger.state().resources.applied.is_empty();
    let tools = Tools {
        host: membership.uid.clone(),
        fleet: membership.fleet.clone(),
        layout: layout.clone(),
        digest_key: Arc::new(DigestKey::load_or_make(&layout.keys(), applied_before)?),
        opener: Arc::new(Opener::new(recipient, Arc::clone(&keys))),
        docker: docker.clone(),
        ledger: Arc::clone(&ledger),
    };
    let applier = Arc::new(Executor::new(tools, Arc::clone(&clock)));
    let runtime = tokio::runtime::Runtime::new()
        .map_err(|error| Failure::message("could not start the agent's threads").caused_by(&error))?;
    let ended = runtime.block_on(async {
        let (tell, heard) = mpsc::channel(16);
        let (host, listener) = (membership.uid.to_string(), Arc::clone(&clock));
        let listening = tokio::spawn(async move { listen(docker, host, &*listener, (tell, ASK_AGAIN)).await });
        let layout = layout.clone();
        let parts =
            Parts { applier, heard, membership, keys, trusted, ledger, layout, config, allow_old_broker, clock };
        let ended = daemon::run(parts).await;
        listening.abort();
        ended
    });
    // A step that did not come to its end in time is not waited for: the next start observes what it left.
    runtime.shutdown_background();
    Ok(ended?)
}

/// Opens the ledger; a damaged one is set aside, never overwritten, and a new one begins by saying so.
fn open(layout: &Layout, membership: &Membership, clock: &Arc<dyn Clock>) -> Result<Ledger, Failure> {
    let (ledger, damage) = ledger::open_or_set_aside(&layout.ledger(), &membership.uid, Arc::clone(clock))?;
    if let Some(damage) = damage {
        tracing::error!(%damage, "the ledger was damaged and is set aside; a new one begins");
    }
    Ok(ledger)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHILD: &str = "cli::run::tests::process_that_panics_in_a_task";

    #[test]
    fn panic_in_any_task_ends_the_process() {
        let child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", CHILD, "--include-ignored", "--nocapture"])
            .env("REPLICATOR_TEST_PANIC", "1")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&child.stderr);
        assert_eq!(child.status.code(), Some(i32::from(Exit::Bug.code())), "{said}");
        assert!(said.contains("as a task would"), "{said}");
    }

    /// The child of the test above; by itself it has nothing to do.
    #[test]
    fn process_that_panics_in_a_task() {
        if std::env::var_os("REPLICATOR_TEST_PANIC").is_none() {
            return;
        }
        end_on_panic();
        let ended = std::thread::spawn(|| panic!("as a task would")).join();
        unreachable!("the process went on: {ended:?}");
    }
}
