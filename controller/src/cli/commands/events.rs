//! `replicator events`: what hosts said, as the collector stored it.

use std::time::Duration;

use clap::builder::PossibleValuesParser;
use jiff::Timestamp;
use replicator_protocol::event_words;
use replicator_protocol::ids::HostUid;
use replicator_protocol::wire::event::event::Body;
use replicator_protocol::wire::event::{ApplyReported, Event, ResourceResult};
use serde::Serialize;

use crate::cli::{Context, Exit, Failure};
use crate::keys::{Keyrings, certificates};
use crate::serve::Store;
use crate::serve::store::Stored;
use crate::state;
use crate::words;

/// Events read at once.
const PAGE: u32 = 500;
/// Pause between two looks while following: a person does not notice it, and the file is local.
const LOOK_EVERY: Duration = Duration::from_millis(300);

/// Arguments of `events`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  replicator events --host web-1 --since 2h\n  replicator events --kind apply-reported --follow -o json"
)]
pub struct EventsArgs {
    /// Only those of this host: its id, or its uid.
    #[arg(long, value_name = "ID")]
    host: Option<String>,
    /// Only those that came in since: `90s`, `30m`, `2h`, `7d`, or a time like `2026-11-30T20:00:00Z`.
    #[arg(long, value_name = "WHEN", value_parser = since)]
    since: Option<Since>,
    /// Only those of this kind, such as `apply-reported`; may be repeated.
    #[arg(long, value_name = "KIND", value_parser = PossibleValuesParser::new(event_words::KINDS), hide_possible_values = true)]
    kind: Vec<String>,
    /// Wait for more, until interrupted.
    #[arg(short, long)]
    follow: bool,
}

/// A moment, or a time before now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Since {
    Ago(u64),
    At(u64),
}

fn since(text: &str) -> Result<Since, String> {
    let wrong = || "write it as `90s`, `30m`, `2h`, `7d`, or as a time like `2026-11-30T20:00:00Z`".to_owned();
    if let Ok(at) = text.parse::<Timestamp>() {
        return u64::try_from(at.as_millisecond()).map(Since::At).map_err(|_| wrong());
    }
    let unit = text.chars().last().ok_or_else(wrong)?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        'd' => 24 * 3600,
        _ => return Err(wrong()),
    };
    let count: u64 = text[..text.len() - 1].parse().map_err(|_| wrong())?;
    count.checked_mul(seconds * 1000).map(Since::Ago).ok_or_else(wrong)
}

/// An event as data.
#[derive(Serialize)]
struct Line {
    position: u64,
    host: String,
    uid: String,
    chain: String,
    number: u64,
    hash: String,
    at: String,
    received: String,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    declaration: Option<String>,
    says: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    results: Vec<ResultLine>,
}

#[derive(Serialize)]
struct ResultLine {
    resource: String,
    kind: String,
    action: &'static str,
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    note: String,
}

/// The fleet's hosts by name, as their certificates say.
struct Names(Vec<(HostUid, String)>);

impl Names {
    fn of(&self, uid: &str) -> String {
        self.0.iter().find(|(known, _)| known.as_str() == uid).map_or_else(|| uid.to_owned(), |(_, id)| id.clone())
    }

    fn uid(&self, text: &str) -> Result<HostUid, Failure> {
        if let Ok(uid) = HostUid::parse(text) {
            return Ok(uid);
        }
        let found = self.0.iter().find(|(_, id)| id == text).map(|(uid, _)| uid.clone());
        let known = self.0.iter().map(|(_, id)| format!("`{id}`")).collect::<Vec<_>>().join(", ");
        let hint = if known.is_empty() {
            "no host was admitted yet; do it with `replicator host up`".to_owned()
        } else {
            format!("there is {known}")
        };
        found.ok_or_else(|| Failure::message(format!("no host `{text}` was ever admitted here")).hint(hint))
    }
}

/// Runs it.
///
/// # Errors
///
/// The [`Failure`] to show.
pub async fn run(args: EventsArgs, context: &Context) -> Result<Exit, Failure> {
    let (_, folder) = context.fleet()?;
    let keyring = Keyrings::load(&folder)?.current;
    let mut names = Vec::new();
    for uid in certificates::list(&folder)? {
        // A certificate that is not believed gives no name; what its host said is shown all the same.
        if let Ok(Some(host)) = certificates::load(&folder, &uid, &keyring) {
            names.push((uid, host.certificate.host.clone()));
        }
    }
    let names = Names(names);
    let host = args.host.as_deref().map(|text| names.uid(text)).transpose()?;
    let from = args.since.map_or(0, |since| match since {
        Since::At(at) => at,
        Since::Ago(length) => state::now().saturating_sub(length),
    });
    let store = Store::read_only(&context.home()?.collected_events())?;
    let (mut position, mut shown) = (0, false);
    loop {
        let page = store.events_after(position, host.as_ref(), PAGE)?;
        for stored in &page {
            position = stored.position;
            let line = line(stored, &names);
            let wanted = args.kind.is_empty() || args.kind.iter().any(|kind| kind == line.kind);
            if wanted && stored.received >= from {
                show(&line, context)?;
                shown = true;
            }
            if !context.ui.is_read() {
                return Ok(Exit::Done);
            }
        }
        if !page.is_empty() {
            continue;
        }
        if !args.follow || !context.ui.is_read() {
            if !shown {
                context.ui.say("no such event came in; `replicator serve` collects them, while it runs");
            }
            return Ok(Exit::Done);
        }
        tokio::select! {
            () = tokio::time::sleep(LOOK_EVERY) => {}
            _ = tokio::signal::ctrl_c() => return Ok(Exit::Done),
        }
    }
}

fn show(line: &Line, context: &Context) -> Result<(), Failure> {
    if context.ui.is_json() {
        return context.ui.json_line(line);
    }
    let declaration = line.declaration.as_deref().map(|of| format!(" [{of}]")).unwrap_or_default();
    context.ui.data(format!(
        "{}  {:<16}  {:>6}  {:<22}  {}{declaration}",
        line.at, line.host, line.number, line.kind, line.says
    ))?;
    for result in line.results.iter().filter(|result| result.outcome != "unchanged") {
        let failure = result.failure.as_deref().map(|code| format!(" ({code})")).unwrap_or_default();
        let note = if result.note.is_empty() { String::new() } else { format!(": {}", result.note) };
        context.ui.data(format!("    {:<10} {}{failure}{note}", result.outcome, result.resource))?;
    }
    Ok(())
}

fn line(stored: &Stored, names: &Names) -> Line {
    let Event { host, chain, number, wall_time, declaration, body, .. } = &stored.event;
    Line {
        position: stored.position,
        host: names.of(host),
        uid: host.clone(),
        chain: hex::encode(chain),
        number: *number,
        hash: stored.hash.to_string(),
        at: moment(*wall_time),
        received: moment(stored.received),
        kind: body.as_ref().map_or("unknown", event_words::kind),
        declaration: declaration.as_ref().map(|of| format!("{}/{}", of.epoch, of.sequence)),
        says: body.as_ref().map(event_words::says).unwrap_or_default(),
        results: match body {
            Some(Body::ApplyReported(ApplyReported { results, .. })) => results.iter().map(result).collect(),
            Some(_) | None => Vec::new(),
        },
    }
}

fn result(result: &ResourceResult) -> ResultLine {
    ResultLine {
        resource: result.resource.clone(),
        kind: result.kind.clone(),
        action: event_words::action(result.action),
        outcome: event_words::outcome(result.outcome),
        failure: result.failure.as_ref().map(|failure| failure.code.clone()),
        note: result.note.clone(),
    }
}

/// Milliseconds since the Unix epoch as a time, to the second.
pub(super) fn moment(milliseconds: u64) -> String {
    words::moment(milliseconds).unwrap_or_else(|| "unknown".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn since_takes_a_length_or_a_time() {
        assert_eq!(since("2h"), Ok(Since::Ago(7_200_000)));
        assert_eq!(since("90s"), Ok(Since::Ago(90_000)));
        assert_eq!(since("1970-01-01T00:00:01Z"), Ok(Since::At(1000)));
        for wrong in ["", "h", "2", "2w", "-1h", "2 h", "é", "yesterday", "99999999999999999d"] {
            assert!(since(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn host_is_found_by_id_and_by_uid_and_a_stranger_is_named_with_those_there_are() {
        let uid = HostUid::parse(&"a".repeat(32)).unwrap();
        let names = Names(vec![(uid.clone(), "web-1".into())]);
        assert_eq!(names.uid("web-1").unwrap(), uid);
        assert_eq!(names.uid(uid.as_str()).unwrap(), uid);
        assert!(names.uid("web-2").unwrap_err().to_string().contains("`web-1`"));
        assert_eq!(names.of(&"b".repeat(32)), "b".repeat(32));
    }
}
