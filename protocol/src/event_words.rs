//! What is in an event, in a word or a line for people: for tables, headers and logs; never parsed again.

use std::collections::BTreeMap;

use crate::wire::event::event::Body;
use crate::wire::event::{Action, ApplyReported, Outcome, Trigger};

macro_rules! kinds {
    ($($body:ident = $word:literal,)*) => {
        /// Every kind of event.
        pub const KINDS: &[&str] = &[$($word),*];

        /// The kind of an event.
        #[must_use]
        pub fn kind(body: &Body) -> &'static str {
            match body {
                $(Body::$body(_) => $word,)*
            }
        }
    };
}

kinds! {
    ChainStarted = "chain-started",
    AgentStarted = "agent-started",
    Enrolled = "enrolled",
    DeclarationAccepted = "declaration-accepted",
    DeclarationRefused = "declaration-refused",
    DeclarationSuperseded = "declaration-superseded",
    Equivocation = "equivocation",
    StepsPlanned = "steps-planned",
    StepFinished = "step-finished",
    ApplyReported = "apply-reported",
    DriftFound = "drift-found",
    KeyringAccepted = "keyring-accepted",
    LedgerSetAside = "ledger-set-aside",
    ClockFault = "clock-fault",
    OriginalKept = "original-kept",
    EnrolmentRefused = "enrolment-refused",
    LedgerRotated = "ledger-rotated",
    LedgerDropped = "ledger-dropped",
    RecordRecovered = "record-recovered",
    LedgerPutBack = "ledger-put-back",
}

/// What became of a resource; `unknown` for a number of a newer agent.
#[must_use]
pub fn outcome(number: i32) -> &'static str {
    match Outcome::try_from(number) {
        Ok(Outcome::Changed) => "changed",
        Ok(Outcome::Unchanged) => "unchanged",
        Ok(Outcome::Failed) => "failed",
        Ok(Outcome::Skipped) => "skipped",
        Ok(Outcome::Held) => "held",
        Ok(Outcome::Removed) => "removed",
        Ok(Outcome::Kept) => "kept",
        Ok(Outcome::Unspecified) | Err(_) => "unknown",
    }
}

/// What was to be done with a resource; `unknown` for a number of a newer agent.
#[must_use]
pub fn action(number: i32) -> &'static str {
    match Action::try_from(number) {
        Ok(Action::None) => "none",
        Ok(Action::Create) => "create",
        Ok(Action::Change) => "change",
        Ok(Action::Recreate) => "recreate",
        Ok(Action::Reload) => "reload",
        Ok(Action::Remove) => "remove",
        Ok(Action::Unspecified) | Err(_) => "unknown",
    }
}

/// What an apply was for; `unknown` for a number of a newer agent.
#[must_use]
pub fn trigger(number: i32) -> &'static str {
    match Trigger::try_from(number) {
        Ok(Trigger::Declaration) => "declaration",
        Ok(Trigger::Reconcile) => "reconcile",
        Ok(Trigger::Start) => "start",
        Ok(Trigger::Unspecified) | Err(_) => "unknown",
    }
}

/// What an event says, in one line without its kind.
#[must_use]
pub fn says(body: &Body) -> String {
    match body {
        Body::ChainStarted(body) => format!("agent {}", body.agent_version),
        Body::AgentStarted(body) => format!("agent {}, {}", body.agent_version, body.supervisor),
        Body::Enrolled(body) => format!("as {} of fleet {}", body.host, body.fleet),
        Body::DeclarationAccepted(body) => format!("{} resources", body.resources),
        Body::DeclarationRefused(body) => refused(&body.code, &body.fields),
        Body::EnrolmentRefused(body) => refused(&body.code, &body.fields),
        Body::DeclarationSuperseded(body) => format!("sequences {} to {}", body.first, body.last),
        Body::Equivocation(body) => {
            format!("two declarations of one position: {} and {}", short(&body.accepted), short(&body.other))
        }
        Body::StepsPlanned(body) => {
            let steps = body.steps.iter().map(|step| format!("{} {}", action(step.action), step.resource));
            steps.collect::<Vec<_>>().join(", ")
        }
        Body::StepFinished(body) => body.result.as_ref().map_or_else(String::new, |result| {
            let failure = result.failure.as_ref().map(|failure| format!(" ({})", failure.code)).unwrap_or_default();
            format!("{} {}{failure}", result.resource, outcome(result.outcome))
        }),
        Body::ApplyReported(body) => reported(body),
        Body::DriftFound(body) => format!("{}: {}", body.resource, body.what),
        Body::KeyringAccepted(body) => format!("version {}", body.version),
        Body::LedgerSetAside(body) => format!("{}; last good entry {}", body.reason, body.last_good_number),
        Body::LedgerRotated(_) => "the first entry of a further file".to_owned(),
        Body::RecordRecovered(body) => body.resource.clone(),
        Body::LedgerDropped(body) => format!("entries {} to {}, {} bytes", body.first, body.last, body.size),
        Body::LedgerPutBack(body) => {
            let was = if body.replaced { "replaced" } else { "removed" };
            format!("{} was {was} while it was in use, and is written again whole", body.file)
        }
        Body::ClockFault(body) => format!("{} ms off, by {}", body.offset, body.source),
        Body::OriginalKept(body) => format!("{} for {}", body.path, body.resource),
    }
}

fn reported(body: &ApplyReported) -> String {
    let failed = body.results.iter().filter(|result| result.outcome() == Outcome::Failed).count();
    let (ended, by) = (ended(body.complete, failed), trigger(body.trigger));
    format!("{ended} after {} ms, by {by}, {} resources", body.duration, body.results.len())
}

fn refused(code: &str, fields: &BTreeMap<String, String>) -> String {
    let fields = fields.iter().map(|(name, value)| format!(" {name} {value}")).collect::<String>();
    format!("{code}{fields}")
}

fn short(hash: &[u8]) -> String {
    hex::encode(hash).chars().take(12).collect()
}

/// How an apply ended: whether every resource was attempted, and how many failed.
#[must_use]
pub fn ended(complete: bool, failed: usize) -> String {
    match (complete, failed) {
        (true, 0) => "done".into(),
        (true, _) => format!("{failed} failed"),
        (false, 0) => "cut short".into(),
        (false, _) => format!("cut short, {failed} failed"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::event::{DeclarationRefused, Equivocation, ResourceResult};

    #[test]
    fn apply_is_not_called_done_where_something_failed() {
        let all = [(true, 0), (true, 1), (false, 0), (false, 2)].map(|(complete, failed)| ended(complete, failed));
        assert_eq!(all, ["done", "1 failed", "cut short", "cut short, 2 failed"]);
    }

    #[test]
    fn event_says_what_it_holds_in_one_line() {
        let fields = [("got".to_owned(), "41".to_owned()), ("have".to_owned(), "43".to_owned())].into();
        let refused = DeclarationRefused { code: "stale-sequence".into(), fields, ..Default::default() };
        assert_eq!(says(&Body::DeclarationRefused(refused)), "stale-sequence got 41 have 43");
        let two = Equivocation { accepted: vec![0xab; 32].into(), other: vec![0xcd; 32].into() };
        let told = "two declarations of one position: abababababab and cdcdcdcdcdcd";
        assert_eq!(says(&Body::Equivocation(two)), told);
        let failed = ResourceResult { outcome: Outcome::Failed.into(), ..Default::default() };
        let results = vec![failed, ResourceResult::default()];
        let report = ApplyReported { complete: true, duration: 7, trigger: 1, results, ..Default::default() };
        let by = trigger(1);
        assert_eq!(says(&Body::ApplyReported(report)), format!("1 failed after 7 ms, by {by}, 2 resources"));
    }
}
