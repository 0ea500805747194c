//! `replicator serve`: the collector, in the foreground.

use std::net::SocketAddr;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::cli::{Context, Exit, Failure};
use crate::serve::{self, Settings};

/// Collect what hosts report: verify, store, then sign receipts. Runs until it is told to stop.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  replicator serve\n  curl http://127.0.0.1:8470/healthz")]
pub struct ServeArgs {
    /// Where `/healthz` and `/metrics` are.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8470")]
    listen: SocketAddr,
}

/// Runs it.
///
/// # Errors
///
/// The [`Failure`] to show.
pub async fn run(args: &ServeArgs, context: &Context) -> Result<Exit, Failure> {
    let home = context.home()?;
    let (name, fleet) = context.fleet()?;
    let stop = CancellationToken::new();
    let told = stop.clone();
    let unheard = |source: std::io::Error| Failure::message("cannot listen for signals").caused_by(source);
    let mut ends = signal(SignalKind::terminate()).map_err(unheard)?;
    let mut interrupts = signal(SignalKind::interrupt()).map_err(unheard)?;
    tokio::spawn(async move {
        tokio::select! {
            _ = ends.recv() => {}
            _ = interrupts.recv() => {}
        }
        told.cancel();
    });
    let ready =
        |at: SocketAddr| context.ui.say(format!("Collecting for the fleet `{name}`; health at http://{at}/healthz"));
    serve::serve(&home, Settings { fleet, listen: args.listen }, ready, stop).await?;
    context.ui.say("Stopped collecting; what came meanwhile waits at the broker");
    Ok(Exit::Done)
}
