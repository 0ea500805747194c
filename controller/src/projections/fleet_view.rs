//! The fleet at one moment: what each host said, held against what is stored of it and against the clock. Pure.

use replicator_protocol::wire::event::Heartbeat;
use serde::Serialize;

use super::{Apply, HostStatus};
use crate::projections::host_history::Number;

/// A host is silent after this many milliseconds: three heartbeats of 30 s, each a fifth late, and some.
pub const SILENT_AFTER: u64 = 120 * 1000;
/// A host that is heard but has ended no look for this many milliseconds is stuck: a full look is due every 10 minutes.
pub const STUCK_AFTER: u64 = 30 * 60 * 1000;
/// A heartbeat this many milliseconds younger than all that is stored was sent after it: it may not say less.
const ORDERED_AFTER: u64 = 5 * 1000;
/// A clock further off than this many milliseconds is told of.
pub const CLOCK_OFF: u64 = 5 * 60 * 1000;

/// What is known of one host besides its events.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Heard {
    /// Its last heartbeat, verified, with when it came by the collector's clock.
    pub heartbeat: Option<(u64, Heartbeat)>,
    /// Whether its certificate is believed.
    pub admitted: bool,
    /// Whether it was taken down: its account is gone, and nothing more is expected of it.
    pub retired: bool,
}

/// One host, as it is shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Row {
    /// Its name for people.
    pub host: String,
    /// Its number.
    pub uid: String,
    /// `ok`, or what is wrong, the worst first.
    pub state: Vec<&'static str>,
    /// The declaration it accepted last.
    pub accepted: Option<Number>,
    /// Its last report.
    pub applied: Option<Apply>,
    /// The mode of the declaration in force.
    pub mode: String,
    /// The last number of its ledger, as it says.
    pub ledger_head: Option<u64>,
    /// The last number that is stored here.
    pub stored: u64,
    /// How far receipts have reached it, as it says.
    pub settled: Option<u64>,
    /// When it was heard last, in milliseconds since the Unix epoch.
    pub heard: Option<u64>,
    /// How far its clock is ahead of the collector's, in milliseconds; the way of the message is in it.
    pub clock_offset: Option<i64>,
    /// Why it refused the last declaration that reached it.
    pub refused: Option<String>,
    /// The agent's version.
    pub agent_version: String,
    /// What keeps the agent running.
    pub supervisor: String,
}

/// Puts together what is known of the host `uid`, called `host`, at `now`.
pub fn row(host: &str, uid: &str, status: Option<HostStatus>, heard: &Heard, now: u64) -> Row {
    let status = status.unwrap_or_else(|| HostStatus::new(uid));
    let beat = heard.heartbeat.as_ref();
    let last = beat.map(|(at, _)| *at).max(Some(status.heard).filter(|at| *at > 0));
    let offset = beat.map(|(at, beat)| i64::try_from(i128::from(beat.clock) - i128::from(*at)).unwrap_or(i64::MAX));
    let text =
        |said: Option<&String>, otherwise: String| said.filter(|text| !text.is_empty()).cloned().unwrap_or(otherwise);
    Row {
        state: state(&status, heard, (last, offset), now),
        host: host.to_owned(),
        uid: uid.to_owned(),
        mode: beat.map(|(_, beat)| beat.mode.clone()).unwrap_or_default(),
        ledger_head: beat.map(|(_, beat)| beat.head_number),
        stored: status.head,
        settled: beat.map(|(_, beat)| beat.settled_number),
        heard: last,
        clock_offset: offset,
        agent_version: text(beat.map(|(_, beat)| &beat.agent_version), status.agent_version.clone()),
        supervisor: text(beat.map(|(_, beat)| &beat.supervisor), status.supervisor.clone()),
        accepted: status.accepted,
        applied: status.applied,
        refused: status.refused,
    }
}

fn state(
    status: &HostStatus,
    heard: &Heard,
    (last, offset): (Option<u64>, Option<i64>),
    now: u64,
) -> Vec<&'static str> {
    if heard.retired {
        return vec!["retired"];
    }
    let beat = heard.heartbeat.as_ref();
    let silent = last.is_none_or(|at| now.saturating_sub(at) > SILENT_AFTER);
    // By the host's own clock: its loop and its heartbeat are stamped by the same one.
    let stuck =
        beat.is_some_and(|(_, beat)| beat.last_loop > 0 && beat.clock.saturating_sub(beat.last_loop) > STUCK_AFTER);
    let behind = |at: u64, beat: &Heartbeat| {
        let younger = at > status.heard + ORDERED_AFTER;
        younger && hex::encode(&beat.chain) == status.chain && beat.head_number < status.head
    };
    let whole = |applied: &Apply| applied.complete && applied.failed.is_empty();
    let not_applied = status.applied.as_ref().is_some_and(|applied| !whole(applied));
    let found = [
        (!heard.admitted, "not-believed"),
        (status.equivocation, "equivocation"),
        (beat.is_some_and(|(at, beat)| behind(*at, beat)), "rolled-back"),
        (silent && last.is_none(), "never-heard"),
        (silent && last.is_some(), "silent"),
        (!silent && stuck, "not-reconciling"),
        (status.refused.is_some(), "refused"),
        (not_applied, "not-applied"),
        (status.drift > 0, "drift"),
        (offset.is_some_and(|offset| offset.unsigned_abs() > CLOCK_OFF), "clock"),
    ];
    let wrong: Vec<_> = found.into_iter().filter(|(is, _)| *is).map(|(_, word)| word).collect();
    if wrong.is_empty() { vec!["ok"] } else { wrong }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_800_000_000_000;

    fn beat(change: impl FnOnce(&mut Heartbeat)) -> Heard {
        let mut beat = Heartbeat { clock: NOW, last_loop: NOW - 1000, head_number: 7, ..Heartbeat::default() };
        change(&mut beat);
        Heard { heartbeat: Some((NOW - 1000, beat)), admitted: true, retired: false }
    }

    fn states(status: HostStatus, heard: &Heard, now: u64) -> Vec<&'static str> {
        row("web-1", "u", Some(status), heard, now).state
    }

    #[test]
    fn host_that_beats_and_loops_is_ok() {
        let shown = row("web-1", "u", None, &beat(|_| {}), NOW);
        assert_eq!(shown.state, ["ok"]);
        assert_eq!((shown.ledger_head, shown.settled, shown.clock_offset), (Some(7), Some(0), Some(1000)));
    }

    #[test]
    fn silence_is_told_apart_from_standing_still() {
        let status = || HostStatus::new("u");
        assert_eq!(states(status(), &Heard { admitted: true, ..Heard::default() }, NOW), ["never-heard"]);
        assert_eq!(states(status(), &beat(|_| {}), NOW + SILENT_AFTER), ["silent"]);
        assert_eq!(states(status(), &beat(|beat| beat.last_loop = NOW - STUCK_AFTER - 1), NOW), ["not-reconciling"]);
    }

    #[test]
    fn a_wrong_clock_is_told_of_and_nothing_more() {
        let heard = beat(|beat| {
            beat.clock = NOW - CLOCK_OFF * 9;
            beat.last_loop = beat.clock;
        });
        assert_eq!(states(HostStatus::new("u"), &heard, NOW), ["clock"]);
    }

    #[test]
    fn ledger_below_what_is_stored_was_rolled_back() {
        let status = HostStatus { chain: "01".into(), head: 9, heard: NOW - 60_000, ..HostStatus::new("u") };
        let heard = beat(|beat| beat.chain = vec![1].into());
        assert_eq!(states(status.clone(), &heard, NOW), ["rolled-back"]);
        let since = HostStatus { heard: NOW - 2000, ..status.clone() };
        assert_eq!(states(since, &heard, NOW), ["ok"], "a heartbeat from before the last batch");
        let other = beat(|beat| beat.chain = vec![2].into());
        assert_eq!(states(status, &other, NOW), ["ok"]);
    }

    #[test]
    fn failed_resource_and_retired_host_are_told() {
        let status = HostStatus { applied: Some(Apply::with_failure(NOW)), ..HostStatus::new("u") };
        assert_eq!(states(status.clone(), &beat(|_| {}), NOW), ["not-applied"]);
        let gone = Heard { retired: true, ..beat(|_| {}) };
        assert_eq!(states(status, &gone, NOW + SILENT_AFTER), ["retired"]);
    }
}
