//! One file for each command: its arguments, and what it does with them.

pub mod agent_args;
pub mod broker_init;
pub mod events;
pub mod fleet_status;
pub mod host;
pub mod host_converge;
pub mod host_down;
pub mod host_list;
pub mod host_show;
pub mod host_up;
pub mod inputs;
pub mod outcome;
pub mod plan;
pub mod secrets;
pub mod serve;
pub mod validate;

use super::{Context, Exit, Failure};

/// The commands.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Collect what hosts report.
    Serve(serve::ServeArgs),
    /// Set up the broker that hosts and controller meet at.
    #[command(subcommand)]
    Broker(broker_init::Command),
    /// Show what a converge would change, and why.
    Plan(plan::PlanArgs),
    /// Bring hosts up, converge them, take them down, and look at them.
    #[command(subcommand)]
    Host(host::Command),
    /// Show what hosts said, as it was collected.
    Events(events::EventsArgs),
    /// Look at all hosts together.
    #[command(subcommand)]
    Fleet(fleet_status::Command),
    /// Check host specs and fleet files, offline.
    Validate(validate::ValidateArgs),
    /// Keep the values behind `secret:NAME`.
    #[command(subcommand)]
    Secrets(secrets::Command),
}

/// Runs one command.
///
/// # Errors
///
/// The [`Failure`] to show.
pub async fn run(command: Command, context: &Context) -> Result<Exit, Failure> {
    match command {
        Command::Serve(args) => serve::run(&args, context).await,
        Command::Broker(command) => broker_init::run(command, context),
        Command::Plan(args) => plan::run(args, context).await,
        Command::Host(command) => host::run(command, context).await,
        Command::Events(args) => events::run(args, context).await,
        Command::Fleet(command) => fleet_status::run(&command, context),
        Command::Validate(args) => validate::run(&args, context),
        Command::Secrets(command) => secrets::run(command, context).await,
    }
}
