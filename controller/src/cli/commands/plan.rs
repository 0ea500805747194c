//! `replicator plan`: what a converge would do, before anything is done.

use std::fmt;

use replicator_protocol::ids::{Digest, HostId, HostUid, Position};
use serde::Serialize;

use super::events::moment;
use super::inputs::{Files, Inputs, Ready};
use crate::bootstrap::{Abilities, Since};
use crate::cli::{Context, Exit, Failure};
use crate::compiler::{self, Head};
use crate::home::FleetFolder;
use crate::planner::{self, PlanData};
use crate::publisher::Publisher;
use crate::serve::{Store, StoreError};
use crate::state::status::Reported;
use crate::state::{self, History, Log};

/// Arguments of `plan`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  replicator plan\n  replicator plan this-machine -o json")]
pub struct PlanArgs {
    /// The host [default: the one the fleet file names]; `host ID` says the same.
    #[arg(value_name = "HOST", num_args = 0..=2)]
    target: Vec<String>,
    #[command(flatten)]
    files: Files,
}

impl PlanArgs {
    fn host(&self) -> Result<Option<HostId>, Failure> {
        let named = match self.target.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            [] => return Ok(None),
            [id] | ["host", id] => HostId::parse(id),
            [_, ..] => return Err(Failure::usage("only a host can be planned").hint("write `replicator plan HOST`")),
        };
        named.map(Some).map_err(|invalid| Failure::usage(invalid.to_string()).hint("write the `id` of the host spec"))
    }
}

/// The answer as data.
#[derive(Serialize)]
struct Answer {
    #[serde(flatten)]
    plan: PlanData,
    as_of: Option<AsOf>,
    /// Why newer reports may be missing.
    unheard: Vec<String>,
}

/// The report the plan starts from.
#[derive(Serialize)]
struct AsOf {
    sequence: u64,
    /// Its number in the host's ledger.
    event: Option<u64>,
    /// By the host's clock, in milliseconds since the Unix epoch.
    at: u64,
}

impl AsOf {
    fn of(reported: &Reported) -> Self {
        Self {
            sequence: reported.position.sequence,
            event: reported.said.as_ref().map(|said| said.number),
            at: reported.said.as_ref().map_or(reported.at, |said| said.at),
        }
    }
}

impl fmt::Display for AsOf {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "the report on declaration {}, {}", self.sequence, moment(self.at))?;
        self.event.map_or(Ok(()), |event| write!(out, " (event {event} of the host)"))
    }
}

/// The log as a converge would have it: with what the host reported since, and why that may not be all. Nothing is
/// written, neither here nor at the broker.
async fn supposed(
    log: &Log,
    folder: &FleetFolder,
    store: Result<&Store, &StoreError>,
) -> Result<(History, Vec<String>), Failure> {
    let mut history = log.read().await?;
    if history.state.certificate.is_none() {
        return Ok((history, Vec::new()));
    }
    let broker = Publisher::look(folder).await;
    let since = Since::ask(&history.state, store, broker.as_ref()).await;
    for event in since.entries(&history.state) {
        history = log.suppose(history, event, state::now())?;
    }
    Ok((history, since.unheard))
}

/// Runs it.
///
/// # Errors
///
/// The [`Failure`] to show.
pub async fn run(args: PlanArgs, context: &Context) -> Result<Exit, Failure> {
    let (fleet, folder) = context.fleet()?;
    let inputs = Inputs::read(args.host()?.as_ref(), &args.files)?;
    let host = inputs.spec.id.clone();
    let ready = Ready::new(context, &fleet, &inputs).await?;
    let log = Log::local(&context.home()?, &inputs.spec.state.app, &host)?;
    let store = Store::read_only(&context.home()?.collected_events());
    let (history, unheard) = supposed(&log, &folder, store.as_ref()).await?;
    Abilities::demand_of(&history.state, &host, (&folder, store.as_ref().ok()), &ready.compiled.resources)?;
    let uid = match &history.state.identity {
        Some((_, uid)) => uid.clone(),
        // A host that was never up has no number yet; the intent hash it gets then is another.
        None => HostUid::parse(&"0".repeat(32)).map_err(|error| Failure::error(&error))?,
    };
    let declaration = ready.compiled.declaration(Head {
        fleet,
        host: host.clone(),
        uid,
        position: Position { epoch: 1, sequence: 1 },
        issued_at: 0,
        plan_id: Digest([0; 32]),
        previous: None,
        spec_revision: String::new(),
    });
    let intent = compiler::intent_hash(&declaration);
    let needs = compiler::needs(&ready.wanted);
    let plan = planner::plan(&history.state, history.head(), &ready.compiled, &intent, needs);
    if context.ui.is_json() {
        let images = ready.images.iter().map(|(written, image)| (written.to_string(), image.pinned.clone())).collect();
        let as_of = history.state.reported.as_ref().map(AsOf::of);
        context.ui.json(&Answer { plan: PlanData::new(&host, &plan, images), as_of, unheard })?;
        return Ok(Exit::Done);
    }
    for why in &unheard {
        context.ui.warn(format!("what `{host}` reported since may be missing: {why}"));
    }
    context.ui.data(plan.text(&history.state, &ready.compiled))?;
    if let Some(as_of) = history.state.reported.as_ref().map(AsOf::of) {
        context.ui.data(format!("\nAs of {as_of}"))?;
    }
    context.ui.data("\nImages:")?;
    for (written, image) in &ready.images {
        let written = written.to_string();
        let resolved = if written == image.pinned { String::new() } else { format!("  is {}", image.pinned) };
        context.ui.data(format!("  {written}{resolved}"))?;
    }
    Ok(Exit::Done)
}
