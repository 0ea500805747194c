//! `replicator host show`: how far a host has come, folded from its log.

use std::path::{Path, PathBuf};

use replicator_protocol::ids::HostId;
use serde::Serialize;

use super::inputs::Inputs;
use crate::cli::{Context, Exit, Failure};
use crate::fleet;
use crate::planner::Counts;
use crate::state::{App, HostState, Log};
use crate::words;

/// Arguments of `host show`.
#[derive(Debug, clap::Args)]
pub struct ShowArgs {
    /// The host.
    #[arg(value_parser = HostId::parse)]
    host: HostId,
    /// The name the state is kept under [default: what the host spec says].
    #[arg(long, value_name = "NAME", value_parser = App::parse)]
    app: Option<App>,
    /// The host spec [default: the one the fleet file names, else `hosts/ID.yml`].
    #[arg(long, value_name = "FILE")]
    spec: Option<PathBuf>,
    /// The fleet file [default: `clanker.yml` or `factory.yml` in this folder].
    #[arg(long, value_name = "FILE")]
    fleet: Option<PathBuf>,
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
        let counts = self.counts.map_or_else(|| "no report".into(), |counts| counts.to_string());
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

/// Nothing was ever recorded of `host`.
fn unknown(host: &HostId, app: &App, hosts: &[HostId]) -> Failure {
    let hint = if hosts.is_empty() {
        format!(
            "no host has a state there; raise one with `replicator host up {host}`, or name another with `--app NAME`"
        )
    } else {
        format!("there is {}; raise this one with `replicator host up {host}`", words::listed(hosts))
    };
    Failure::message(format!("nothing is known of the host `{host}` under `{app}`")).hint(hint)
}

/// Runs it.
///
/// # Errors
///
/// The [`Failure`] to show.
pub async fn run(args: ShowArgs, context: &Context) -> Result<Exit, Failure> {
    let app = match args.app {
        Some(app) => app,
        None => {
            let own = PathBuf::from(format!("hosts/{}.yml", args.host));
            let alone = args.fleet.is_none() && fleet::find(Path::new("")).is_none() && own.is_file();
            Inputs::app(args.spec.or(alone.then_some(own)).as_deref(), args.fleet)?
        }
    };
    let home = context.home()?;
    let history = Log::local(&home, &app, &args.host)?.read().await?;
    if history.head() == 0 {
        return Err(unknown(&args.host, &app, &Log::hosts(&home, &app).await?));
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_that_is_not_known_is_told_with_those_that_are() {
        let [one, two, other] = ["web-1", "web-2", "nosuch"].map(|id| HostId::parse(id).unwrap());
        let app = App::parse("demo").unwrap();
        let told = unknown(&other, &app, &[one, two]).to_string();
        assert!(
            told.contains("the host `nosuch` under `demo`") && told.contains("there is `web-1`, `web-2`"),
            "{told}"
        );
        assert!(unknown(&other, &app, &[]).to_string().contains("no host has a state there"));
    }
}
