//! What is in an event, in one word for people: for tables, headers and logs; never parsed again.

use crate::wire::event::event::Body;
use crate::wire::event::{Action, Outcome, Trigger};

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
