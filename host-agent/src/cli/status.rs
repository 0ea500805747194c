//! `status`: what this host was told, and what became of each resource.

use prost::Message as _;
use replicator_protocol::wire::event::Event;
use serde::Serialize;

use super::args::Output;
use super::failure::Failure;
use super::output::{self, moment, table};
use crate::config::Layout;
use crate::keys::Membership;
use crate::ledger::projections::{Apply, Projections, Status, status_at};
use crate::ledger::{self, Reader};

/// The whole answer.
#[derive(Debug, Serialize)]
struct Answer {
    fleet: String,
    host: String,
    uid: String,
    /// An agent runs here now; absent for an earlier moment.
    #[serde(skip_serializing_if = "Option::is_none")]
    running: Option<bool>,
    ledger: LedgerLine,
    #[serde(flatten)]
    status: Status,
}

#[derive(Debug, Serialize)]
struct LedgerLine {
    last: u64,
    settled: u64,
    /// When the first entry without a receipt was appended; milliseconds since the Unix epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    unsettled_since: Option<u64>,
}

pub(super) fn show(layout: &Layout, at: Option<u64>, form: Output) -> Result<(), Failure> {
    let membership = Membership::load(&layout.trust())?;
    let reader = Reader::open(&layout.ledger())?
        .ok_or_else(|| Failure::message("this host has no ledger yet").hint("start the agent"))?;
    let (last, first) = (reader.last()?, reader.base()?.0 + 1);
    let (status, running) = match at {
        Some(number) if number > last || number < first => {
            let says = format!("the ledger has no entry {number} (it has {first} to {last})");
            return Err(Failure::message(&says).into_usage());
        }
        Some(number) => (status_at(&reader, number)?, None),
        None => {
            let mut projections = Projections::open(&layout.projections())?;
            projections.catch_up(&reader)?;
            (projections.status()?, Some(ledger::is_held(&layout.ledger())?))
        }
    };
    let settled = reader.settled()?;
    let first_unsettled = reader.read_after(settled, 1)?.pop();
    let first_unsettled = first_unsettled.and_then(|entry| Event::decode(entry.payload).ok());
    let unsettled_since = first_unsettled.map(|event| event.wall_time);
    let answer = Answer {
        fleet: membership.fleet.to_string(),
        host: membership.host.to_string(),
        uid: membership.uid.to_string(),
        running,
        ledger: LedgerLine { last, settled, unsettled_since },
        status,
    };
    match form {
        Output::Json => output::json(&answer, true),
        Output::Human => output::data(&human(&answer)),
    }
}

fn human(answer: &Answer) -> String {
    let Status { accepted, refused, last_apply, resources, .. } = &answer.status;
    let mut lines = vec![format!("{} of fleet {} ({})", answer.host, answer.fleet, answer.uid)];
    let mut line = |name: &str, text: String| lines.push(format!("{name:<12} {text}"));
    let runs = match (answer.running, answer.status.supervisor.as_str()) {
        (Some(true), "detached") => "running; detached: does not survive a reboot".to_owned(),
        (Some(true), _) => "running".to_owned(),
        (Some(false), _) => "not running".to_owned(),
        (None, _) => format!("as of entry {}, {}", answer.status.number, moment(answer.status.at)),
    };
    line("agent", format!("{} ({})", runs, answer.status.agent_version));
    line(
        "declaration",
        match accepted {
            Some(accepted) => format!(
                "{}/{} accepted {}, {} resources",
                accepted.epoch,
                accepted.sequence,
                moment(accepted.at),
                accepted.resources
            ),
            None => "none accepted yet".to_owned(),
        },
    );
    if let Some(apply) = last_apply {
        line("applied", applied(apply));
    }
    if let Some(refused) = refused {
        line("refused", format!("{} {}", refused.code, moment(refused.at)));
    }
    if answer.status.equivocations > 0 {
        line("ALARM", format!("{} declarations carried a number twice and differ", answer.status.equivocations));
    }
    if let Some(offset) = answer.status.clock_fault {
        line("clock", format!("off by {} s by the broker's certificate", offset / 1000));
    }
    let LedgerLine { last, settled, unsettled_since } = answer.ledger;
    line(
        "ledger",
        match unsettled_since {
            None => format!("{last} entries, all receipted"),
            Some(since) => format!("{last} entries, receipted to {settled}; no collector since {}", moment(since)),
        },
    );
    if !resources.is_empty() {
        let rows: Vec<_> = resources
            .iter()
            .map(|(id, resource)| {
                let detail = [resource.failure.as_deref(), resource.drift.as_deref(), Some(resource.note.as_str())];
                let detail: Vec<_> = detail.into_iter().flatten().filter(|text| !text.is_empty()).collect();
                let (kind, outcome) = (resource.kind.clone(), resource.outcome.clone());
                vec![id.clone(), kind, outcome, moment(resource.at), detail.join("; ")]
            })
            .collect();
        lines.push(String::new());
        lines.push(table(&["RESOURCE", "KIND", "OUTCOME", "SINCE", "DETAIL"], &rows));
    }
    lines.join("\n")
}

fn applied(apply: &Apply) -> String {
    let counts: Vec<_> = apply.outcomes.iter().map(|(outcome, count)| format!("{count} {outcome}")).collect();
    let end = if apply.complete { String::new() } else { format!(", {} not attempted", apply.not_attempted) };
    let counts = if counts.is_empty() { "nothing declared".to_owned() } else { counts.join(", ") };
    format!("{}/{} {}: {counts}{end}", apply.epoch, apply.sequence, moment(apply.at))
}
