//! `replicator plan`: what a converge would do, before anything is done.

use replicator_protocol::ids::{Digest, HostId, HostUid, Position};

use super::host::{Files, Inputs, Ready};
use crate::cli::{Context, Exit, Failure};
use crate::compiler::{self, Head};
use crate::planner::{self, PlanData};
use crate::state::Log;

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

/// Runs it.
///
/// # Errors
///
/// The [`Failure`] to show.
pub async fn run(args: PlanArgs, context: &Context) -> Result<Exit, Failure> {
    let (fleet, _) = context.fleet()?;
    let inputs = Inputs::read(args.host()?.as_ref(), &args.files)?;
    let host = inputs.spec.id.clone();
    let ready = Ready::new(context, &fleet, &inputs).await?;
    let history = Log::local(&context.home()?, &inputs.spec.state.app, &host)?.read().await?;
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
        context.ui.json(&PlanData::new(&host, &plan, images))?;
        return Ok(Exit::Done);
    }
    context.ui.data(plan.text(&history.state, &ready.compiled))?;
    context.ui.data("\nImages:")?;
    for (written, image) in &ready.images {
        let written = written.to_string();
        let resolved = if written == image.pinned { String::new() } else { format!("  is {}", image.pinned) };
        context.ui.data(format!("  {written}{resolved}"))?;
    }
    Ok(Exit::Done)
}
