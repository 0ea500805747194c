//! How a failure is told: what, why, and what to do; and the exit code that says the same to a script.

use std::error::Error;
use std::fmt;
use std::process::ExitCode;

use replicator_protocol::refusal::Refusal;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Exit {
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
    /// What the process ends with.
    pub(super) fn code(self) -> u8 {
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

/// What is shown in place of a result: the lead line, each cause once, and the hint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failure {
    exit: Exit,
    lead: String,
    causes: Vec<String>,
    hint: Option<String>,
}

impl Failure {
    /// We could not: `error` and the chain of its causes.
    pub(super) fn error(error: &(dyn Error + 'static)) -> Self {
        let mut failure = Self::message(&error.to_string());
        let mut next = Some(error);
        while let Some(cause) = next {
            let text = cause.to_string();
            // A transparent wrapper repeats its source: the chain is told once.
            let told = failure.causes.last().unwrap_or(&failure.lead).ends_with(&text);
            if !told {
                failure.causes.push(text);
            }
            next = cause.source();
        }
        failure
    }

    /// We will not: `refusal` and its hint.
    pub(super) fn refused(refusal: &Refusal) -> Self {
        let (lead, hint) = (refusal.to_string(), Some(refusal.code.hint().to_owned()));
        Self { exit: Exit::Failed, lead, causes: Vec::new(), hint }
    }

    /// We could not, in one sentence.
    pub(super) fn message(says: &str) -> Self {
        Self { exit: Exit::Failed, lead: format!("error: {says}"), causes: Vec::new(), hint: None }
    }

    /// Adds a cause.
    #[must_use]
    pub(super) fn caused_by(mut self, cause: &dyn fmt::Display) -> Self {
        self.causes.push(cause.to_string());
        self
    }

    /// Names the next thing to do.
    #[must_use]
    pub(super) fn hint(mut self, hint: &str) -> Self {
        self.hint = Some(hint.to_owned());
        self
    }

    /// The same failure as input that could not be read.
    #[must_use]
    pub(super) fn into_usage(mut self) -> Self {
        self.exit = Exit::Usage;
        self
    }

    /// How the process ends for it.
    pub(super) fn exit(&self) -> Exit {
        self.exit
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.lead)?;
        for cause in &self.causes {
            write!(out, "\n  caused by: {cause}")?;
        }
        match &self.hint {
            Some(hint) => write!(out, "\nhint: {hint}"),
            None => Ok(()),
        }
    }
}

macro_rules! told {
    ($($error:ty => $hint:expr,)*) => {$(
        impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                let failure = Self::error(&error);
                let hint: fn(&$error) -> Option<&'static str> = $hint;
                match hint(&error) {
                    Some(hint) if failure.hint.is_none() => failure.hint(hint),
                    Some(_) | None => failure,
                }
            }
        }
    )*};
}

told! {
    crate::keys::MembershipError => |_| Some("enrol it from the controller: `replicator host up`"),
    crate::ledger::ReadError => |error| Some(error.hint()),
    crate::ledger::AppendError => |error| Some(error.hint()),
    crate::ledger::OpenError => |error| error.hint(),
    crate::config::ConfigError => |_| Some("enrol this host from the controller, or correct the file"),
    crate::keys::KeyError => |error| Some(error.hint()),
    crate::keys::trusted::TrustError => |_| Some("enrol it again from the controller"),
    crate::daemon::StartError => |_| None,
    crate::ledger::projections::ProjectionError => |_| Some("run `replicator-host-agent ledger replay`"),
    crate::durable::FileError => |_| Some("run the agent as root, and see that the disk has room"),
}

#[cfg(test)]
mod tests {
    use replicator_protocol::refusal::Code;

    use super::*;
    use crate::keys::enrolment::EnrolError;

    #[test]
    fn refusal_leads_with_its_code_and_ends_with_its_hint() {
        let failure = Failure::from(EnrolError::Refused(Refusal::new(Code::WrongProof)));
        let text = failure.to_string();
        assert!(text.starts_with("refused (wrong-proof): "), "{text}");
        assert!(text.contains("\nhint: enrol again"), "{text}");
        assert!(!text.contains("caused by"), "{text}");
    }

    #[test]
    fn cause_is_told_once() {
        let source = std::io::Error::from(std::io::ErrorKind::PermissionDenied);
        let error = crate::durable::FileError::new("read", std::path::Path::new("/x"), source);
        let text = Failure::from(error).to_string();
        assert_eq!(text.matches("caused by: permission denied").count(), 1, "{text}");
        assert!(text.starts_with("error: could not read `/x`\n"), "{text}");
    }
}
