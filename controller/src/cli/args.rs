//! What can be written on the command line.

use clap::{Args, Parser, ValueEnum};
use replicator_protocol::ids::FleetName;

use super::commands::Command;

/// Turns a host spec into a running machine, and proves that it did.
#[derive(Debug, Parser)]
#[command(name = "replicator", version, propagate_version = true, after_help = AFTER_HELP)]
pub struct Cli {
    /// Flags every command takes.
    #[command(flatten)]
    pub global: Global,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const AFTER_HELP: &str = "\
Exit codes: 0 done; 1 refused or failed; 2 usage, or input that could not be read; 70 a mistake in this program.
Data goes to stdout, everything else to stderr.

Environment:
  REPLICATOR_HOME  the folder of fleets, state and secrets [default: `~/.config/replicator`]
  REPLICATOR_LOG   what is logged to stderr, as `replicator=info` [default: by `-q` and `-v`]
  NO_COLOR         no colours";

/// Flags every command takes.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Options of every command")]
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

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn broker_has_a_name_unless_it_is_plain() {
        let init = ["replicator", "broker", "init", "--fleet", "a"];
        let with = |more: &[&str]| Cli::try_parse_from(init.iter().chain(more)).is_ok();
        assert!(with(&["--name", "localhost"]) && with(&["--insecure-loopback"]));
        assert!(!with(&[]) && !with(&["--name", "localhost", "--insecure-loopback"]));
    }

    #[test]
    fn global_flags_stand_on_either_side_of_the_command() {
        let one = Cli::try_parse_from(["replicator", "-o", "json", "secrets", "list"]).unwrap();
        let other = Cli::try_parse_from(["replicator", "secrets", "list", "-o", "json"]).unwrap();
        assert_eq!((one.global.output, other.global.output), (Output::Json, Output::Json));
    }
}
