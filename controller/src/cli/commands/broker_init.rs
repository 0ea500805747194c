//! `replicator broker`: a fleet's keys and its broker's configuration, and a new certificate for it.

use std::net::SocketAddr;
use std::time::Duration;

use replicator_protocol::ids::FleetName;
use serde::Serialize;

use crate::cli::{Context, Exit, Failure};
use crate::keys::Settings;
use crate::keys::broker::{self, Transport, Wanted};
use crate::keys::renewal::{self, Renewed};
use crate::state;

/// What can be done with the broker.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Make a fleet: its keys, and all its broker runs from. Refused where there is one of that name.
    #[command(
        after_help = "Examples:\n  replicator broker init --fleet demo --name localhost\n  replicator broker init --fleet acme --listen 0.0.0.0:4222 --name broker.acme.example\n  replicator broker init --fleet demo --listen 127.0.0.1:4222 --insecure-loopback"
    )]
    Init(InitArgs),
    /// Give the broker a new server certificate, valid for 397 days, under the authority hosts have pinned.
    Renew,
}

/// Arguments of `broker init`.
#[derive(Debug, clap::Args)]
pub struct InitArgs {
    /// The fleet's name; fixed from now on.
    #[arg(long, value_name = "NAME")]
    fleet: FleetName,
    /// Where the broker listens.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:4222")]
    listen: SocketAddr,
    /// A name or address of the broker that its certificate carries; hosts expect the first. May be repeated.
    #[arg(long = "name", value_name = "NAME", required_unless_present = "insecure_loopback")]
    names: Vec<String>,
    /// Plain text, on a loopback address only.
    #[arg(long, conflicts_with = "names")]
    insecure_loopback: bool,
}

#[derive(Serialize)]
struct Made {
    fleet: FleetName,
    folder: String,
    configuration: String,
    urls: Vec<String>,
    root: String,
}

/// Runs it.
///
/// # Errors
///
/// The [`Failure`] to show.
pub fn run(command: Command, context: &Context) -> Result<Exit, Failure> {
    match command {
        Command::Init(args) => init(args, context),
        Command::Renew => renew(context),
    }
}

fn renew(context: &Context) -> Result<Exit, Failure> {
    let (name, folder) = context.fleet()?;
    let told = match renewal::renew(&folder, Duration::from_millis(state::now()))? {
        Renewed::Told(pid) => format!("the broker (process {pid}) was told to read it"),
        Renewed::AtStart => "no broker runs from this folder here; it reads it when it starts".into(),
    };
    context.ui.say(format!("Renewed the broker's certificate of the fleet `{name}`; {told}"));
    Ok(Exit::Done)
}

fn init(args: InitArgs, context: &Context) -> Result<Exit, Failure> {
    let home = context.home()?;
    let InitArgs { fleet, listen, names, insecure_loopback } = args;
    let transport = if insecure_loopback { Transport::InsecureLoopback } else { Transport::Tls { names } };
    let wanted = Wanted { fleet, listen, transport };
    let folder = broker::init(&home, &wanted, Duration::from_millis(state::now()))?;
    let settings = Settings::load(&folder)?;
    let configuration = folder.broker().join("nats.conf").display().to_string();
    let made = Made {
        folder: folder.root().display().to_string(),
        configuration,
        urls: settings.broker.urls,
        root: settings.root,
        fleet: settings.fleet,
    };
    if context.ui.is_json() {
        context.ui.json(&made)?;
        return Ok(Exit::Done);
    }
    context.ui.say(format!("Made the fleet `{}` in `{}`", made.fleet, made.folder));
    context.ui.say(format!("its broker will be reached at {}", made.urls.join(", ")));
    context
        .ui
        .say("start it with the configuration below: `nats-server -c FILE`; then collect with `replicator serve`");
    context.ui.data(&made.configuration)?;
    Ok(Exit::Done)
}
