//! What a host applied, one report after another.

use replicator_protocol::event_words;
use replicator_protocol::wire::event::event::Body;
use replicator_protocol::wire::event::{ApplyReported, DeclarationRef, Event, Outcome};
use serde::{Deserialize, Serialize};

/// The number of a declaration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Number {
    /// Its epoch.
    pub epoch: u64,
    /// Its sequence.
    pub sequence: u64,
}

impl From<&DeclarationRef> for Number {
    fn from(of: &DeclarationRef) -> Self {
        Self { epoch: of.epoch, sequence: of.sequence }
    }
}

/// One report, in numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Apply {
    /// Which declaration.
    pub declaration: Number,
    /// By the host's clock, in milliseconds since the Unix epoch.
    pub at: u64,
    /// What it was for: `declaration`, `reconcile`, `start`.
    pub trigger: String,
    /// Whether every resource was attempted; some may have failed.
    pub complete: bool,
    /// Resources left as they were.
    pub unchanged: usize,
    /// Resources created, changed or removed.
    pub changed: usize,
    /// Resources that failed, by name.
    pub failed: Vec<String>,
    /// Resources that were not reached, skipped, or held.
    pub left: usize,
    /// Milliseconds.
    pub duration: u64,
}

impl Apply {
    /// A whole apply at `at` of which one resource failed.
    #[cfg(test)]
    pub(crate) fn with_failure(at: u64) -> Self {
        Self {
            declaration: Number { epoch: 1, sequence: 2 },
            at,
            trigger: "declaration".into(),
            complete: true,
            unchanged: 1,
            changed: 0,
            failed: vec!["proxy.server".into()],
            left: 0,
            duration: 5,
        }
    }

    /// Reads the report in `event`, if it is one.
    pub fn of(event: &Event) -> Option<Self> {
        match (&event.body, &event.declaration) {
            (Some(Body::ApplyReported(report)), Some(declaration)) => Some(Self::new(event, declaration, report)),
            (_, None) | (None, Some(_)) | (Some(_), Some(_)) => None,
        }
    }

    fn new(event: &Event, declaration: &DeclarationRef, report: &ApplyReported) -> Self {
        let mut apply = Self {
            declaration: declaration.into(),
            at: event.wall_time,
            trigger: event_words::trigger(report.trigger).into(),
            complete: report.complete,
            unchanged: 0,
            changed: 0,
            failed: Vec::new(),
            left: usize::try_from(report.not_attempted).unwrap_or(usize::MAX),
            duration: report.duration,
        };
        for result in &report.results {
            match Outcome::try_from(result.outcome) {
                Ok(Outcome::Unchanged) => apply.unchanged += 1,
                Ok(Outcome::Changed | Outcome::Removed) => apply.changed += 1,
                Ok(Outcome::Failed) => apply.failed.push(result.resource.clone()),
                Ok(Outcome::Skipped | Outcome::Held | Outcome::Kept | Outcome::Unspecified) | Err(_) => apply.left += 1,
            }
        }
        apply
    }
}
