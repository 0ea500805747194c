//! `replicator host`: which commands there are.

use super::{host_converge, host_down, host_list, host_show, host_up};
use crate::cli::{Context, Exit, Failure};

/// What can be done with hosts.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Enrol a host where that was not done, and make it what its spec says.
    Up(host_up::UpArgs),
    /// Make a host that is up what its spec says.
    Converge(host_converge::ConvergeArgs),
    /// Remove everything a host was given, and retire it.
    Down(host_down::DownArgs),
    /// Show how far a host has come.
    Show(host_show::ShowArgs),
    /// Show every host with a state.
    List(host_list::ListArgs),
}

/// Runs it.
///
/// # Errors
///
/// The [`Failure`] to show.
pub async fn run(command: Command, context: &Context) -> Result<Exit, Failure> {
    match command {
        Command::Up(args) => host_up::run(args, context).await,
        Command::Converge(args) => host_converge::run(args, context).await,
        Command::Down(args) => host_down::run(args, context).await,
        Command::Show(args) => host_show::run(args, context).await,
        Command::List(args) => host_list::run(args, context).await,
    }
}
