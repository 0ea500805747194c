//! What applies there were last, each in one line.

use std::collections::{BTreeMap, VecDeque};

use replicator_protocol::event_words;
use replicator_protocol::wire::event::event::Body;
use replicator_protocol::wire::event::{ApplyReported, Event};
use serde::{Deserialize, Serialize};

use super::Fold;

/// One reported apply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Apply {
    /// The event's number.
    pub number: u64,
    /// When it was reported; milliseconds since the Unix epoch.
    pub at: u64,
    /// The declaration's epoch.
    pub epoch: u64,
    /// The declaration's sequence.
    pub sequence: u64,
    /// `declaration`, `reconcile` or `start`.
    pub trigger: String,
    /// Milliseconds.
    pub duration: u64,
    /// It went to its end.
    pub complete: bool,
    /// Resources never attempted.
    pub not_attempted: u32,
    /// How many resources ended how, by outcome.
    pub outcomes: BTreeMap<String, u32>,
}

impl Apply {
    /// One line of `event`, whose body is `report`.
    #[must_use]
    pub fn of(event: &Event, report: &ApplyReported) -> Self {
        let mut outcomes = BTreeMap::new();
        for result in &report.results {
            *outcomes.entry(event_words::outcome(result.outcome).to_owned()).or_default() += 1;
        }
        let (epoch, sequence) = event.declaration.as_ref().map_or((0, 0), |of| (of.epoch, of.sequence));
        Self {
            number: event.number,
            at: event.wall_time,
            epoch,
            sequence,
            trigger: event_words::trigger(report.trigger).to_owned(),
            duration: report.duration,
            complete: report.complete,
            not_attempted: report.not_attempted,
            outcomes,
        }
    }
}

/// How many applies are kept: an answer must not grow without end, since it outlives the events it is folded from.
pub(super) const KEPT: usize = 256;

/// The last 256 applies, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Applies(VecDeque<Apply>);

impl Applies {
    /// Oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Apply> {
        self.0.iter()
    }
}

impl Fold for Applies {
    fn fold(&mut self, event: &Event) {
        if let Some(Body::ApplyReported(report)) = &event.body {
            self.0.push_back(Apply::of(event, report));
            if self.0.len() > KEPT {
                self.0.pop_front();
            }
        }
    }
}
