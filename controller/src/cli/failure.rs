//! How a failure is told: what, why, and what to do; and the exit code that says the same to a script.

use std::error::Error;
use std::fmt;
use std::process::ExitCode;

use replicator_protocol::refusal::{Code, Refusal};

use crate::spec::{Findings, LoadError};

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// It did what was asked.
    Done,
    /// It refused, or failed.
    Failed,
    /// It was called wrongly, or its input could not be read.
    Usage,
    /// It is itself wrong.
    Bug,
}

impl Exit {
    /// The number the process ends with.
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Bug => 70,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// What is shown in place of a result.
///
/// `Display` gives all of it: the lead line, each cause once, and the hint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    exit: Exit,
    /// `error`, or `refused (code)`.
    verdict: String,
    says: String,
    causes: Vec<String>,
    hint: Option<String>,
}

impl Failure {
    /// We could not: `error` and the chain of its causes.
    pub fn error(error: &(dyn Error + 'static)) -> Self {
        if let Some(refusal) = error.downcast_ref::<Refusal>() {
            return Self::from(refusal.clone());
        }
        let mut failure = Self::new(Exit::Failed, "error", error.to_string());
        let mut next = error.source();
        while let Some(cause) = next {
            let text = cause.to_string();
            // A transparent wrapper repeats its source: the chain is told once.
            if failure.causes.last().unwrap_or(&failure.says) != &text {
                failure.causes.push(text);
            }
            next = cause.source();
        }
        failure
    }

    /// We will not, for a reason this side found; `code` is stable and kebab-case.
    pub fn refused(code: &str, says: impl Into<String>) -> Self {
        Self::new(Exit::Failed, format!("refused ({code})"), says.into())
    }

    /// We could not, in one sentence.
    pub fn message(says: impl Into<String>) -> Self {
        Self::new(Exit::Failed, "error", says.into())
    }

    /// We were called wrongly, or given what cannot be read.
    pub fn usage(says: impl Into<String>) -> Self {
        Self::new(Exit::Usage, "error", says.into())
    }

    pub(super) fn bug(says: String) -> Self {
        Self::new(Exit::Bug, "error", says)
    }

    fn new(exit: Exit, verdict: impl Into<String>, says: String) -> Self {
        Self { exit, verdict: verdict.into(), says, causes: Vec::new(), hint: None }
    }

    /// Names the next thing to do.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds a cause below those there are.
    #[must_use]
    pub fn caused_by(mut self, cause: impl fmt::Display) -> Self {
        self.causes.push(cause.to_string());
        self
    }

    /// The same failure as input that could not be read.
    #[must_use]
    pub fn as_usage(mut self) -> Self {
        self.exit = Exit::Usage;
        self
    }

    /// How the process ends for it.
    pub fn exit(&self) -> Exit {
        self.exit
    }

    pub(super) fn verdict(&self) -> &str {
        &self.verdict
    }

    /// Everything after the verdict: the lead line and what stands below it.
    pub(super) fn rest(&self) -> String {
        let mut text = self.says.clone();
        for cause in &self.causes {
            text.push_str("\n  caused by: ");
            text.push_str(cause);
        }
        if let Some(hint) = &self.hint {
            text.push_str("\nhint: ");
            text.push_str(hint);
        }
        text
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.verdict, self.rest())
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        let text = refusal.to_string();
        let lead = format!("refused ({}): ", refusal.code);
        let says = text.strip_prefix(&lead).unwrap_or(&text);
        Self::refused(Code::as_str(refusal.code), says).hint(refusal.code.hint())
    }
}

macro_rules! hinted {
    ($($error:ty),* $(,)?) => {$(
        impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                let hint = error.hint();
                Self::error(&error).hint(hint)
            }
        }
    )*};
}

// A room whose error has a `hint()` is added here, and `?` does the rest.
hinted!(
    crate::bootstrap::BootstrapError,
    crate::bootstrap::ImagesError,
    crate::compiler::CompileError,
    crate::compiler::DistributionError,
    crate::compiler::ResolveError,
    crate::fleet::together::CheckError,
    crate::home::HomeError,
    crate::keys::KeysError,
    crate::keys::admission::AdmissionError,
    crate::keys::broker::InitError,
    crate::keys::renewal::RenewError,
    crate::link::LinkError,
    crate::planner::Unwell,
    crate::projections::ProjectionsError,
    crate::publisher::PublishError,
    crate::publisher::accounts::AccountsError,
    crate::secrets::StoreError,
    crate::state::LogError,
    crate::serve::ServeError,
    crate::serve::StoreError,
    crate::secrets::Missing
);

impl From<LoadError> for Failure {
    fn from(error: LoadError) -> Self {
        match &error {
            LoadError::Refused { refused } => {
                let text = refused.iter().map(Findings::faults).collect::<Vec<_>>().join("\n\n");
                // Every finding has its own lead and hint; the first lead is the one this failure brings.
                let says = text.strip_prefix("error: ").unwrap_or(&text).to_owned();
                Self::new(Exit::Failed, "error", says)
            }
            LoadError::Unreadable { .. } | LoadError::NotText { .. } => {
                let hint = error.hint();
                Self::error(&error).hint(hint).as_usage()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot reach the broker")]
    struct Outer(#[source] Inner);

    #[derive(Debug, thiserror::Error)]
    enum Inner {
        #[error(transparent)]
        Wrapped(#[from] std::io::Error),
    }

    #[test]
    fn chain_is_told_once_and_the_hint_last() {
        let error = Outer(Inner::Wrapped(std::io::Error::other("connection refused")));
        let failure = Failure::error(&error).hint("start it with `nats-server`");
        assert_eq!(
            failure.to_string(),
            "error: cannot reach the broker\n  caused by: connection refused\nhint: start it with `nats-server`"
        );
        assert_eq!(failure.exit().code(), 1);
    }

    #[test]
    fn refusal_shows_its_code_and_its_own_hint() {
        let failure = Failure::from(Refusal::new(Code::TooLarge).with("got", 9).with("have", 8));
        assert_eq!(
            failure.to_string(),
            "refused (too-large): the message is larger than may be accepted (got 9, have 8)\nhint: make the largest resource smaller"
        );
    }

    #[test]
    fn exit_codes_are_the_documented_ones() {
        assert_eq!([Exit::Done, Exit::Failed, Exit::Usage, Exit::Bug].map(Exit::code), [0, 1, 2, 70]);
    }
}
