//! `replicator host list`: every host with a state.

use std::path::PathBuf;

use super::host_show::HostRow;
use super::inputs::Inputs;
use crate::cli::{Context, Exit, Failure};
use crate::state::{App, Log};

/// Arguments of `host list`.
#[derive(Debug, clap::Args)]
pub struct ListArgs {
    /// The name the state is kept under [default: what the host spec says, where a fleet file names one].
    #[arg(long, value_name = "NAME", value_parser = App::parse)]
    app: Option<App>,
    /// The fleet file [default: `clanker.yml` or `factory.yml` in this folder].
    #[arg(long, value_name = "FILE")]
    fleet: Option<PathBuf>,
}

/// Runs it.
///
/// # Errors
///
/// The [`Failure`] to show.
pub async fn run(args: ListArgs, context: &Context) -> Result<Exit, Failure> {
    let app = match args.app {
        Some(app) => app,
        None => Inputs::app(None, args.fleet)?,
    };
    let home = context.home()?;
    let mut rows = Vec::new();
    for host in Log::hosts(&home, &app).await? {
        let history = Log::local(&home, &app, &host)?.read().await?;
        rows.push(HostRow::new(&host, &history.state));
    }
    if context.ui.is_json() {
        context.ui.json(&rows)?;
        return Ok(Exit::Done);
    }
    if rows.is_empty() {
        context.ui.say(format!("no host has a state under `{app}`; raise one with `replicator host up ID`"));
        return Ok(Exit::Done);
    }
    context.ui.data(HostRow::header())?;
    for row in rows {
        context.ui.data(row.line())?;
    }
    Ok(Exit::Done)
}
