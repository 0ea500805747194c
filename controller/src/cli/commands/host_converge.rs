//! `replicator host converge`: the half of `host up` that declares and waits.

use replicator_protocol::ids::HostId;

use super::inputs::{Files, Inputs, Ready};
use super::outcome::{self, Wait};
use crate::bootstrap::Local;
use crate::cli::{Context, Exit, Failure};
use crate::state::Log;

/// Arguments of `host converge`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  replicator host converge this-machine\n  replicator host converge this-machine -o json"
)]
pub struct ConvergeArgs {
    /// The host.
    #[arg(value_parser = HostId::parse)]
    host: HostId,
    #[command(flatten)]
    files: Files,
    #[command(flatten)]
    wait: Wait,
}

/// Runs it.
///
/// # Errors
///
/// The [`Failure`] to show.
pub async fn run(args: ConvergeArgs, context: &Context) -> Result<Exit, Failure> {
    let (home, (fleet, folder)) = (context.home()?, context.fleet()?);
    let inputs = Inputs::read(Some(&args.host), &args.files)?;
    let ready = Ready::new(context, &fleet, &inputs).await?;
    let log = Log::local(&home, &inputs.spec.state.app, &args.host)?;
    let (say, step) = (|line: String| context.ui.say(line), |line: String| context.ui.step(line));
    let local = Local { fleet: &fleet, folder: &folder, home: &home, host: &args.host, log, say: &say, step: &step };
    let (wanted, places) = (ready.wanted.clone(), ready.compiled.places.clone());
    let applied = local.converge(&ready.request(args.wait.bound())).await?;
    outcome::show(context, &args.host, Some((&wanted, &places)), &applied)?;
    outcome::verdict(&args.host, &applied)
}
