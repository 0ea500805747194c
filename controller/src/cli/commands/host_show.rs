//! `replicator host show`: how far a host has come, folded from its log.

use replicator_protocol::ids::HostId;
use serde::Serialize;

use super::host::{Files, Inputs};
use crate::cli::{Context, Exit, Failure};
use crate::planner::Counts;
use crate::state::{App, HostState, Log};

/// Arguments of `host show`.
#[derive(Debug, clap::Args)]
pub struct ShowArgs {
    /// The host.
    #[arg(value_parser = HostId::parse)]
    host: HostId,
    /// The name the state is kept under [default: what the host spec says].
    #[arg(long, value_name = "NAME", value_parser = App::parse)]
    app: Option<App>,
    #[command(flatten)]
    files: Files,
}

/// A host in one row.
#[derive(Serialize)]
pub(super) struct HostRow {
    host: String,
    status: String,
    uid: Option<String>,
    fleet: Option<String>,
    supervisor: Option<String>,
    agent_root: Option<String>,
    issued: Option<u64>,
    published: bool,
    reported: Option<u64>,
    counts: Option<Counts>,
    resources: usize,
}

impl HostRow {
    pub(super) fn new(host: &HostId, state: &HostState) -> Self {
        Self {
            host: host.to_string(),
            status: state.status.to_string(),
            uid: state.identity.as_ref().map(|(_, uid)| uid.to_string()),
            fleet: state.identity.as_ref().map(|(fleet, _)| fleet.to_string()),
            supervisor: state.agent.as_ref().map(|(supervisor, _)| supervisor.to_string()),
            agent_root: state.agent.as_ref().map(|(_, root)| root.display().to_string()),
            issued: state.last_issued().map(|issued| issued.position.sequence),
            published: state.last_issued().is_some_and(|issued| issued.published),
            reported: state.reported.as_ref().map(|reported| reported.position.sequence),
            counts: state.reported.as_ref().map(|reported| Counts::of(&reported.report)),
            resources: state.known.len(),
        }
    }

    /// The row in one line.
    pub(super) fn line(&self) -> String {
        let number = |number: Option<u64>| number.map_or_else(|| "-".into(), |number| number.to_string());
        let counts = self.counts.map_or_else(|| "no report yet".into(), |counts| counts.to_string());
        format!(
            "{:<20}  {:<9}  {:>6}  {:>8}  {counts}",
            self.host,
            self.status,
            number(self.issued),
            number(self.reported)
        )
    }

    /// What stands above the lines.
    pub(super) fn header() -> String {
        format!("{:<20}  {:<9}  {:>6}  {:>8}  LAST REPORT", "HOST", "STATUS", "ISSUED", "REPORTED")
    }
}

/// Runs it.
///
/// # Errors
///
/// The [`Failure`] to show.
pub async fn run(args: ShowArgs, context: &Context) -> Result<Exit, Failure> {
    let app = match args.app {
        Some(app) => app,
        None => Inputs::read(Some(&args.host), &args.files)?.spec.state.app,
    };
    let history = Log::local(&context.home()?, &app, &args.host)?.read().await?;
    let row = HostRow::new(&args.host, &history.state);
    if context.ui.is_json() {
        context.ui.json(&row)?;
        return Ok(Exit::Done);
    }
    context.ui.data(HostRow::header())?;
    context.ui.data(row.line())?;
    if let (Some(uid), Some(fleet)) = (&row.uid, &row.fleet) {
        context.ui.data(format!("\nuid {uid} in the fleet {fleet}"))?;
    }
    if let (Some(supervisor), Some(root)) = (&row.supervisor, &row.agent_root) {
        let lasting = if supervisor == "detached" { ": does not survive a reboot" } else { "" };
        context.ui.data(format!("agent under {root}, {supervisor}{lasting}"))?;
    }
    for (id, known) in &history.state.known {
        context.ui.data(format!("  {:<9}  {id}", known.facts.kind.as_str()))?;
    }
    Ok(Exit::Done)
}
