//! `replicator host up`: from a spec to a running host.

use replicator_protocol::ids::HostId;

use super::agent_args::AgentArgs;
use super::inputs::{Files, Inputs, Ready};
use super::outcome::{self, Wait};
use crate::bootstrap::{Local, demand_root};
use crate::cli::{Context, Exit, Failure};
use crate::state::Log;

/// Arguments of `host up`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  replicator host up this-machine\n  replicator host up acme --fleet fleets/acme.yml -o json"
)]
pub struct UpArgs {
    /// The host.
    #[arg(value_parser = HostId::parse)]
    host: HostId,
    #[command(flatten)]
    files: Files,
    #[command(flatten)]
    agent: AgentArgs,
    #[command(flatten)]
    wait: Wait,
    /// Enrol an agent again that is enrolled already.
    #[arg(long)]
    again: bool,
}

/// Runs it.
///
/// # Errors
///
/// The [`Failure`] to show.
pub async fn run(args: UpArgs, context: &Context) -> Result<Exit, Failure> {
    demand_root()?;
    let (home, (fleet, folder)) = (context.home()?, context.fleet()?);
    let inputs = Inputs::read(Some(&args.host), &args.files)?;
    let log = Log::local(&home, &inputs.spec.state.app, &args.host)?;
    let history = log.read().await?;
    let agent = args.agent.find(&history.state)?;
    let ready = Ready::new(context, &fleet, &inputs).await?;
    let (say, step) = (|line: String| context.ui.say(line), |line: String| context.ui.step(line));
    let local = Local { fleet: &fleet, folder: &folder, home: &home, host: &args.host, log, say: &say, step: &step };
    let (wanted, places) = (ready.wanted.clone(), ready.compiled.places.clone());
    let applied = local.up(&agent, history, &ready.request(args.wait.bound()), args.again).await?;
    outcome::show(context, &args.host, Some((&wanted, &places)), &applied)?;
    outcome::verdict(&args.host, &applied)
}
