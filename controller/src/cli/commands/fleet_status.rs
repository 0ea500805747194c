//! `replicator fleet status`: where every host stands, at a glance.

use std::collections::BTreeMap;

use bytes::Bytes;
use replicator_protocol::event_words;
use replicator_protocol::ids::HostUid;
use replicator_protocol::wire::event::Heartbeat;
use serde::Serialize;

use super::events::moment;
use crate::cli::{Context, Exit, Failure};
use crate::home::FleetFolder;
use crate::keys::certificates::{self, Certified};
use crate::keys::{Keyrings, accounts};
use crate::projections::fleet_view::{self, Heard, Row};
use crate::projections::{HostStatus, Projections};
use crate::publisher::streams::Fill;
use crate::serve::Store;
use crate::state;

/// What can be done with the fleet.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Show every host: its last apply, how far its events have come, and whether it is heard.
    #[command(after_help = "Examples:\n  replicator fleet status\n  replicator fleet status -o json")]
    Status,
}

/// Runs it.
///
/// # Errors
///
/// The [`Failure`] to show.
pub fn run(command: &Command, context: &Context) -> Result<Exit, Failure> {
    match command {
        Command::Status => status(context),
    }
}

fn status(context: &Context) -> Result<Exit, Failure> {
    let (_, folder) = context.fleet()?;
    let home = context.home()?;
    let store = Store::read_only(&home.collected_events())?;
    let mut projections = Projections::open(&home.projections())?;
    projections.catch_up(&store)?;
    let statuses = projections.hosts()?.into_iter().map(|status| (status.host.clone(), status)).collect();
    let beats = store.heartbeats()?.into_iter().map(|(uid, at, envelope)| (uid, (at, envelope))).collect();
    let rows = rows(&folder, statuses, beats, state::now())?;
    let streams = store.fills()?.into_iter().map(|(seen, fill)| Stream { alarm: fill.alarms(), seen, fill });
    let streams: Vec<_> = streams.collect();
    if context.ui.is_json() {
        context.ui.json(&Whole { hosts: rows, streams })?;
        return Ok(Exit::Done);
    }
    for stream in streams.iter().filter(|stream| stream.alarm) {
        context.ui.warn(nearly_full(stream));
    }
    if rows.is_empty() {
        context.ui.say("no host was admitted yet; do it with `replicator host up`");
        return Ok(Exit::Done);
    }
    for line in table(&rows) {
        context.ui.data(line)?;
    }
    Ok(Exit::Done)
}

/// The fleet as data.
#[derive(Serialize)]
struct Whole {
    hosts: Vec<Row>,
    streams: Vec<Stream>,
}

/// A stream of the broker, as `serve` saw it last.
#[derive(Serialize)]
struct Stream {
    alarm: bool,
    /// When that was, in milliseconds since the Unix epoch.
    seen: u64,
    #[serde(flatten)]
    fill: Fill,
}

fn nearly_full(Stream { seen, fill, .. }: &Stream) -> String {
    let Fill { stream, bytes, room } = fill;
    let (percent, seen) = (fill.percent(), moment(*seen));
    format!(
        "the broker's stream {stream} is {percent} % full (got {bytes} bytes, have {room}), seen {seen}; \
         see which host reports so much with `replicator events`, and that `replicator serve` runs"
    )
}

type Beats = BTreeMap<HostUid, (u64, Bytes)>;

fn rows(
    folder: &FleetFolder,
    mut statuses: BTreeMap<String, HostStatus>,
    mut beats: Beats,
    now: u64,
) -> Result<Vec<Row>, Failure> {
    let keyring = Keyrings::load(folder)?.current;
    let mut rows = Vec::new();
    for uid in certificates::list(folder)? {
        let certified = certificates::load(folder, &uid, &keyring).ok().flatten();
        let heartbeat = beats.remove(&uid).zip(certified.as_ref()).and_then(believed);
        let name = certified.as_ref().map_or_else(|| uid.to_string(), |host| host.certificate.host.clone());
        let retired = accounts::id(folder, &uid)?.is_none();
        let heard = Heard { heartbeat, admitted: certified.is_some(), retired };
        rows.push(fleet_view::row(&name, uid.as_str(), statuses.remove(uid.as_str()), &heard, now));
    }
    rows.sort_by(|one, other| (&one.host, &one.uid).cmp(&(&other.host, &other.uid)));
    Ok(rows)
}

fn believed(((at, envelope), host): ((u64, Bytes), &Certified)) -> Option<(u64, Heartbeat)> {
    Some((at, (*host.heartbeat(envelope).ok()?).clone()))
}

const HEADS: [&str; 7] = ["HOST", "STATE", "LAST APPLY", "LEDGER", "SETTLED", "HEARD", "CLOCK"];

fn table(rows: &[Row]) -> Vec<String> {
    let mut lines = vec![HEADS.map(str::to_owned)];
    lines.extend(rows.iter().map(cells));
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..HEADS.len()).map(width).collect();
    let padded = |line: &[String; 7]| {
        let cells = line.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    lines.iter().map(padded).collect()
}

fn cells(row: &Row) -> [String; 7] {
    let none = || "-".to_owned();
    let number = |number: Option<u64>| number.map_or_else(none, |number| number.to_string());
    let applied = row.applied.as_ref().map_or_else(none, |apply| {
        let ended = event_words::ended(apply.complete, apply.failed.len());
        format!("{}: {ended}, {}", apply.declaration.sequence, moment(apply.at))
    });
    let mut state = row.state.join(",");
    if let Some(code) = &row.refused {
        state = format!("{state} ({code})");
    }
    let clock = row.clock_offset.map_or_else(none, |offset| {
        let seconds = offset / 1000;
        if seconds == 0 { "right".into() } else { format!("{seconds:+} s") }
    });
    [
        row.host.clone(),
        state,
        applied,
        format!("{}/{}", row.stored, number(row.ledger_head)),
        number(row.settled),
        row.heard.map_or_else(none, moment),
        clock,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::projections::Apply;

    #[test]
    fn nearly_full_stream_is_told_with_both_numbers() {
        let fill = Fill { stream: "EVT".into(), bytes: 71, room: 100 };
        let told = nearly_full(&Stream { alarm: fill.alarms(), seen: 0, fill });
        assert!(told.contains("EVT is 71 % full (got 71 bytes, have 100), seen 1970-01-01"), "{told}");
    }

    #[test]
    fn table_is_aligned_and_says_nothing_of_what_is_unknown() {
        let heard = Heard { heartbeat: None, admitted: true, retired: false };
        let status = HostStatus { applied: Some(Apply::with_failure(1000)), ..HostStatus::new("u") };
        let rows = [Some(status), None].map(|status| fleet_view::row("web-1", "u", status, &heard, 5));
        assert_eq!(
            table(&rows),
            [
                "HOST   STATE                    LAST APPLY                         LEDGER  SETTLED  HEARD  CLOCK",
                "web-1  never-heard,not-applied  2: 1 failed, 1970-01-01T00:00:01Z  0/-     -        -      -",
                "web-1  never-heard              -                                  0/-     -        -      -",
            ]
        );
    }
}
