//! What may be typed.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

/// Makes this machine what its declaration says, keeps it so, and records what happened.
///
/// Exit codes: 0 done, 1 refused or failed, 2 usage or unreadable input, 70 a bug of ours.
#[derive(Debug, Parser)]
#[command(name = "replicator-host-agent", version)]
pub(super) struct Args {
    /// Moves all of the agent's files under DIR: several agents fit on one machine.
    #[arg(long, global = true, value_name = "DIR", default_value = "/")]
    pub(super) root: PathBuf,
    /// How data is printed.
    #[arg(long, short, global = true, value_enum, default_value_t = Output::Human)]
    pub(super) output: Output,
    #[command(subcommand)]
    pub(super) command: Command,
}

/// How data is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Output {
    /// Tables for people.
    Human,
    /// One JSON document, or one a line.
    Json,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Makes this machine a host of a fleet.
    Enrol {
        /// Exchanges the messages over stdin and stdout, as the controller does over SSH and on this machine.
        #[arg(long, required = true)]
        stdio: bool,
        /// Enrols a host that is enrolled already.
        #[arg(long)]
        again: bool,
    },
    /// Runs the agent: takes what is declared, applies it, looks after it, and reports.
    Run {
        /// Puts up with a broker older than 2.12. For tests: such a broker silently ignores limits we rely on.
        #[arg(long)]
        allow_old_broker: bool,
    },
    /// Shows what this host was told, and what became of each resource.
    Status {
        /// As it was when entry NUMBER was appended.
        #[arg(long, value_name = "NUMBER")]
        at: Option<u64>,
    },
    /// Shows and checks the log of what happened.
    Ledger {
        #[command(subcommand)]
        command: LedgerCommand,
    },
    /// Prints the agent's version.
    Version,
}

#[derive(Debug, Subcommand)]
pub(super) enum LedgerCommand {
    /// Prints entries, oldest first.
    Show {
        /// Only entries after this number.
        #[arg(long, value_name = "NUMBER", default_value_t = 0)]
        after: u64,
        /// At most this many.
        #[arg(long, value_name = "COUNT", default_value_t = u32::MAX, hide_default_value = true)]
        limit: u32,
    },
    /// Checks every entry, hash and number.
    Verify,
    /// Deletes every folded answer and folds it again from the log.
    Replay,
}
