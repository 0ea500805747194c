//! What can be written on the command line.

use clap::{Args, Parser, Subcommand, ValueEnum};
use replicator_protocol::ids::FleetName;

use super::commands;

/// Turns a host spec into a running machine, and proves that it did.
#[derive(Debug, Parser)]
#[command(name = "replicator", version, propagate_version = true, after_help = EXIT_CODES)]
pub struct Cli {
    /// Flags every command takes.
    #[command(flatten)]
    pub global: Global,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const EXIT_CODES: &str = "\
Exit codes: 0 done; 1 refused or failed; 2 usage, or input that could not be read; 70 a mistake in this program.
Data goes to stdout, everything else to stderr. `NO_COLOR` and `REPLICATOR_LOG` are honoured.";

/// Flags every command takes.
#[derive(Debug, Clone, Default, Args)]
pub struct Global {
    /// The fleet, where this machine holds several.
    #[arg(long, global = true, value_name = "FLEET", env = "REPLICATOR_CONTEXT")]
    pub context: Option<FleetName>,
    /// How data is printed.
    #[arg(short, long, global = true, value_enum, default_value_t)]
    pub output: Output,
    /// Put up with a broker older than 2.12. For tests: such a broker silently ignores limits we rely on.
    #[arg(long, global = true, hide = true)]
    pub allow_old_broker: bool,
    /// Say nothing but data, warnings and errors.
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Say more; twice for everything.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
}

/// How data is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Output {
    /// For people.
    #[default]
    Human,
    /// One JSON document, or one a line where it is a stream.
    Json,
}

/// The commands, one file each in `cli/commands/`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Collect what hosts report.
    Serve(commands::serve::ServeArgs),
    /// Set up the broker that hosts and controller meet at.
    #[command(subcommand)]
    Broker(commands::broker_init::Command),
    /// Show what a converge would change, and why.
    Plan(commands::plan::PlanArgs),
    /// Bring hosts up, converge them, take them down, and look at them.
    #[command(subcommand)]
    Host(commands::host::Command),
    /// Show what hosts said, as it was collected.
    Events(commands::events::EventsArgs),
    /// Look at all hosts together.
    #[command(subcommand)]
    Fleet(commands::fleet_status::Command),
    /// Check host specs and fleet files, offline.
    Validate(commands::validate::ValidateArgs),
    /// Keep the values behind `secret:NAME`.
    #[command(subcommand)]
    Secrets(commands::secrets::Command),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn global_flags_stand_on_either_side_of_the_command() {
        let one = Cli::try_parse_from(["replicator", "-o", "json", "secrets", "list"]).unwrap();
        let other = Cli::try_parse_from(["replicator", "secrets", "list", "-o", "json"]).unwrap();
        assert_eq!((one.global.output, other.global.output), (Output::Json, Output::Json));
    }
}
