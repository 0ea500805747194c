//! `ledger show`, `ledger verify` and `ledger replay`.

use replicator_protocol::event_words;
use serde::Serialize;
use serde_json::json;

use super::args::Output;
use super::failure::Failure;
use super::output::{self, moment, table};
use crate::config::Layout;
use crate::ledger::projections::Projections;
use crate::ledger::{Entry, ReadError, Reader, Verified, VerifyError};

/// Entries read at once.
const PAGE: u32 = 1000;

fn reader(layout: &Layout) -> Result<Reader, Failure> {
    let none = || Failure::message("this host has no ledger yet").hint("enrol it: `replicator host up`");
    Reader::open(&layout.ledger())?.ok_or_else(none)
}

/// One entry, for people and programs; never a value of a secret, for the ledger holds none.
#[derive(Debug, Serialize)]
struct Line {
    number: u64,
    at: u64,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    declaration: Option<String>,
    says: String,
    hash: String,
}

impl Line {
    fn of(entry: &Entry) -> Self {
        let event = entry.event().unwrap_or_default();
        let of = event.declaration.as_ref().map(|of| format!("{}/{}", of.epoch, of.sequence));
        Self {
            number: entry.number,
            at: event.wall_time,
            kind: event.body.as_ref().map_or("unknown", event_words::kind),
            declaration: of,
            says: event.body.as_ref().map(event_words::says).unwrap_or_default(),
            hash: entry.hash.to_string(),
        }
    }
}

pub(super) fn show(layout: &Layout, (after, limit): (u64, u32), form: Output) -> Result<(), Failure> {
    let reader = reader(layout)?;
    let (mut after, mut left) = (after, limit);
    let mut rows = Vec::new();
    while left > 0 {
        let page = reader.read_after(after, left.min(PAGE))?;
        let Some(last) = page.last() else { break };
        after = last.number;
        left = left.saturating_sub(u32::try_from(page.len()).unwrap_or(u32::MAX));
        for line in page.iter().map(Line::of) {
            match form {
                Output::Json => output::json(&line, false)?,
                Output::Human => rows.push(vec![
                    line.number.to_string(),
                    moment(line.at),
                    line.declaration.unwrap_or_default(),
                    line.kind.to_owned(),
                    line.says,
                ]),
            }
        }
    }
    match form {
        Output::Json => Ok(()),
        Output::Human => output::data(&table(&["NUMBER", "AT", "DECLARATION", "KIND", "SAYS"], &rows)),
    }
}

pub(super) fn verify(layout: &Layout, form: Output) -> Result<(), Failure> {
    let reader = reader(layout)?;
    let Verified { first, number, hash, .. } = reader.verify().map_err(unsound)?;
    let settled = reader.settled()?;
    let dropped = if first > 1 { format!(" (1 to {} were receipted and dropped)", first - 1) } else { String::new() };
    match form {
        Output::Json => output::json(
            &json!({"entries": number + 1 - first, "first": first, "head": hash.to_string(), "settled": settled}),
            true,
        ),
        Output::Human => output::data(&format!(
            "Verified {} entries{dropped}, none missing or altered; head {hash}, receipted to {settled}",
            number + 1 - first
        )),
    }
}

fn unsound(error: VerifyError) -> Failure {
    let damage = match error {
        VerifyError::Damaged(damage) => damage,
        VerifyError::Store(error) => return ReadError::from(error).into(),
    };
    let hint = "the next start sets it aside, starts a new chain and names this one's last good entry";
    let last_good = format!("entries up to {} are as they were written", damage.last_good());
    Failure::message("the ledger is damaged").caused_by(&damage).caused_by(&last_good).hint(hint)
}

pub(super) fn replay(layout: &Layout, form: Output) -> Result<(), Failure> {
    let reader = reader(layout)?;
    let path = layout.projections();
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            let says = format!("could not remove `{}`", path.display());
            return Err(Failure::message(&says).caused_by(&error).hint("run the agent as root"));
        }
        Ok(()) | Err(_) => {}
    }
    let mut projections = Projections::open(&path)?;
    let count = projections.catch_up(&reader)?;
    let digest = projections.digest()?;
    match form {
        Output::Json => output::json(&json!({"events": count, "digest": digest.to_string()}), true),
        Output::Human => output::data(&format!("Folded {count} events; the answers' digest is {digest}")),
    }
}
