//! `replicator host down`: everything the host was given goes, then the host itself.

use replicator_protocol::ids::HostId;

use super::agent_args::AgentArgs;
use super::inputs::{Files, Inputs};
use super::outcome::{self, Wait};
use crate::bootstrap::{Down, Local, Request};
use crate::cli::{Context, Exit, Failure};
use crate::compiler::{Compiled, seal};
use crate::publisher::accounts::AccountsError;
use crate::state::Log;
use crate::words;

/// Arguments of `host down`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Named volumes are data and stay.\n\nExamples:\n  replicator host down this-machine")]
pub struct DownArgs {
    /// The host.
    #[arg(value_parser = HostId::parse)]
    host: HostId,
    #[command(flatten)]
    files: Files,
    #[command(flatten)]
    agent: AgentArgs,
    #[command(flatten)]
    wait: Wait,
    /// Retire the host even where its agent cannot be told, or fails, to remove what it was given. All of that stays
    /// on the machine and goes on running: containers, networks, files with their secrets. Nobody looks after it any
    /// more, and it is removed by hand. A broker that cannot be reached is told later.
    #[arg(long)]
    abandon: bool,
}

/// Runs it.
///
/// # Errors
///
/// The [`Failure`] to show.
pub async fn run(args: DownArgs, context: &Context) -> Result<Exit, Failure> {
    let (home, (fleet, folder)) = (context.home()?, context.fleet()?);
    let inputs = Inputs::read(Some(&args.host), &args.files)?;
    let log = Log::local(&home, &inputs.spec.state.app, &args.host)?;
    let history = log.read().await?;
    let agent = args.agent.set_up(&args.host, &history.state)?;
    let (say, step) = (|line: String| context.ui.say(line), |line: String| context.ui.step(line));
    let local = Local { fleet: &fleet, folder: &folder, home: &home, host: &args.host, log, say: &say, step: &step };
    let nothing = Request {
        compiled: Compiled::nothing(),
        values: seal::Values::new(),
        spec_revision: String::new(),
        timeout: args.wait.bound(),
    };
    match local.down(&agent, history, &nothing, args.abandon).await? {
        Down::WasNotUp => {
            context.ui.say(format!("`{}` is not up; nothing was done", args.host));
            Ok(Exit::Done)
        }
        Down::Stays(applied) => {
            outcome::show(context, &args.host, None, &applied)?;
            Err(Failure::message(format!("`{}` stays up: not everything of it could be removed", args.host)).hint(
                "see to what failed above, then run the command again; `--abandon` retires the host with what is left",
            ))
        }
        Down::Gone { applied, untold, held, aside, left } => {
            if let Some(applied) = &applied {
                outcome::show(context, &args.host, None, applied)?;
            }
            if let Some(untold) = untold {
                context.ui.warn(Failure::error(&*untold).rest());
            }
            if let Some(held) = held {
                context.ui.warn(still_held(&args.host, &held));
            }
            if let Some(aside) = aside {
                context.ui.warn(format!(
                    "what the agent kept, with originals of files it replaced, lies in `{}`; a file that was replaced may \
                     have held a secret, and is there in clear: remove the folder once nothing of it is needed",
                    aside.display()
                ));
            }
            if !left.is_empty() {
                context.ui.warn(format!(
                    "this stays on the machine, and nobody looks after it: {}; remove it by hand: containers and \
                     networks have the host's `namePrefix` before their names",
                    words::listed(&left)
                ));
            }
            context.ui.say(format!("Retired `{}`", args.host));
            Ok(Exit::Done)
        }
    }
}

/// What there is to know where the broker was not told that `host` is gone.
fn still_held(host: &HostId, why: &AccountsError) -> String {
    let failure =
        Failure::message(format!("the broker was not told that `{host}` is gone, and may hold its account still"));
    let failure = failure.caused_by(words::chain_of(why)).hint(
        "the account is withdrawn here: `replicator serve`, or the next `replicator host up` of any host, has the broker \
         remove it once that answers",
    );
    failure.rest()
}
