//! A report for people: how many of what, then every resource something happened to.

use std::fmt;

use replicator_protocol::event_words;
use replicator_protocol::ids::HostId;
use replicator_protocol::wire::event::{ApplyReported, Failure, Outcome, ResourceResult};
use serde::Serialize;

use super::{hints, words};

/// How many resources ended how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Counts {
    /// Made so.
    pub changed: usize,
    /// Were so already.
    pub unchanged: usize,
    /// Could not be made so.
    pub failed: usize,
    /// Not tried, since something before them failed.
    pub skipped: usize,
    /// Found, and left alone.
    pub held: usize,
    /// Taken away.
    pub removed: usize,
    /// No longer declared, and left where they are.
    pub kept: usize,
}

impl Counts {
    /// Counts the results of `report`.
    #[must_use]
    pub fn of(report: &ApplyReported) -> Self {
        let mut counts = Self::default();
        for result in &report.results {
            match Outcome::try_from(result.outcome) {
                Ok(Outcome::Changed) => counts.changed += 1,
                Ok(Outcome::Unchanged) => counts.unchanged += 1,
                Ok(Outcome::Failed) => counts.failed += 1,
                Ok(Outcome::Skipped) => counts.skipped += 1,
                Ok(Outcome::Held) => counts.held += 1,
                Ok(Outcome::Removed) => counts.removed += 1,
                Ok(Outcome::Kept) => counts.kept += 1,
                Ok(Outcome::Unspecified) | Err(_) => {}
            }
        }
        counts
    }

    /// Whether everything is as it was declared.
    #[must_use]
    pub fn is_well(&self) -> bool {
        self.failed == 0 && self.skipped == 0
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { changed, unchanged, failed, skipped, held, removed, kept } = self;
        write!(
            out,
            "{changed} changed, {unchanged} unchanged, {failed} failed, {skipped} skipped, {held} held, {removed} removed, {kept} kept"
        )
    }
}

/// A host is not all as it was declared; the report says what is not.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{host}` is not all as declared: {failed} failed, {skipped} skipped; first `{resource}` ({code})")]
pub struct Unwell {
    host: HostId,
    failed: usize,
    skipped: usize,
    resource: String,
    code: String,
    hint: &'static str,
}

impl Unwell {
    /// What is wrong with `report` of `host`; none where all is well.
    #[must_use]
    pub fn of(host: &HostId, report: &ApplyReported) -> Option<Self> {
        let counts = Counts::of(report);
        if counts.is_well() {
            return None;
        }
        let unsaid = Failure::default();
        let (resource, failure) = hints::first(report).unwrap_or(("", &unsaid));
        Some(Self {
            host: host.clone(),
            failed: counts.failed,
            skipped: counts.skipped,
            resource: resource.to_owned(),
            code: failure.code.clone(),
            hint: hints::hint(failure).unwrap_or("see the report above, and the agent's log on the host"),
        })
    }

    /// One line that names the next action.
    #[must_use]
    pub fn hint(&self) -> String {
        self.hint.to_owned()
    }
}

/// The report for people; the first line counts.
#[must_use]
pub fn report_text(report: &ApplyReported) -> String {
    let mut out = Counts::of(report).to_string();
    if report.not_attempted > 0 {
        out.push_str(&format!(", {} never attempted", report.not_attempted));
    }
    out.push_str(&format!(" in {}.{} s", report.duration / 1000, report.duration % 1000 / 100));
    let quiet = |result: &&ResourceResult| result.outcome != i32::from(Outcome::Unchanged);
    let shown: Vec<_> = report.results.iter().filter(quiet).collect();
    let width = shown.iter().map(|result| result.resource.len()).max().unwrap_or(0);
    for result in shown {
        out.push_str(&format!("\n  {:<9}  {:<width$}", event_words::outcome(result.outcome), result.resource));
        let reasons = words::all(&result.reasons);
        if !reasons.is_empty() {
            out.push_str(&format!("  {}: {reasons}", event_words::action(result.action)));
        }
        if !result.note.is_empty() {
            out.push_str(&format!("  ({})", result.note));
        }
        if let Some(failure) = &result.failure {
            out.push_str(&failed(failure));
        }
    }
    out
}

fn failed(failure: &Failure) -> String {
    let mut out = format!("\n             {}", failure.code);
    for (name, value) in &failure.fields {
        out.push_str(&format!(", {name} `{value}`"));
    }
    if failure.previous_restored {
        out.push_str("; the one before it is in place and running again");
    }
    for line in failure.output.lines() {
        out.push_str(&format!("\n             | {line}"));
    }
    out
}
