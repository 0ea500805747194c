//! The agent's command line: arguments in, lines and an exit code out.
//!
//! Data goes to stdout, talk to stderr. Nothing here decides: each command calls the room that does.

mod args;
mod enrol;
mod failure;
mod ledger;
mod output;
mod run;
mod status;

use std::process::ExitCode;

use clap::Parser as _;

use args::{Args, Command, LedgerCommand};
use failure::{Exit, Failure};

use crate::config::Layout;

/// Runs the command the process was started for.
#[must_use]
pub fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            // A stream that takes no more leaves nobody to tell.
            let _untold = error.print();
            return if error.use_stderr() { Exit::Usage.into() } else { Exit::Done.into() };
        }
    };
    log_to_stderr();
    match std::panic::catch_unwind(|| dispatch(&args)) {
        Ok(Ok(())) => Exit::Done.into(),
        Ok(Err(failure)) => {
            output::talk(&failure.to_string());
            failure.exit().into()
        }
        Err(_told_by_the_hook) => Exit::Bug.into(),
    }
}

fn dispatch(args: &Args) -> Result<(), Failure> {
    let layout = Layout::new(&args.root);
    match &args.command {
        Command::Enrol { stdio: _, again } => enrol::over_stdio(&layout, *again),
        Command::Run { allow_old_broker } => run::run(&layout, *allow_old_broker),
        Command::Status { at } => status::show(&layout, *at, args.output),
        Command::Ledger { command } => match command {
            LedgerCommand::Show { after, limit } => ledger::show(&layout, (*after, *limit), args.output),
            LedgerCommand::Verify => ledger::verify(&layout, args.output),
            LedgerCommand::Replay => ledger::replay(&layout, args.output),
        },
        Command::Version => output::data(&format!("replicator-host-agent {}", env!("CARGO_PKG_VERSION"))),
    }
}

/// Logs go to stderr: journald keeps them under systemd, the log file otherwise.
fn log_to_stderr() {
    let filter = tracing_subscriber::EnvFilter::try_from_env("REPLICATOR_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info,async_nats=warn"));
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(false);
    // Only a second subscriber could be refused, and this is the first.
    let _first = logs.try_init();
}
