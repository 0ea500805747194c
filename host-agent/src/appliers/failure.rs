//! Why a step failed: a stable code, and names and numbers that explain it.

use std::collections::BTreeMap;
use std::fmt;

use replicator_protocol::closed_list;
use replicator_protocol::refusal::Refusal;
use replicator_protocol::wire::event::Failure;

use crate::host::docker::RuntimeError;

/// Most output a failure carries, in characters: the last words of a container, and room for the runtime's.
const OUTPUT_MAX: usize = 4600;

closed_list! {
    /// The closed list. A code never changes its meaning.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum FailureCode {
        /// The file system refused.
        File = "file",
        /// The folder to write in does not exist.
        ParentMissing = "parent-missing",
        /// A folder on the way is a link that somebody else could turn.
        UnsafeParent = "unsafe-parent",
        /// Something of another type stands there.
        WrongType = "wrong-type",
        /// There is no such login or group.
        UnknownOwner = "unknown-owner",
        /// A secret does not open here.
        CannotOpen = "cannot-open",
        /// What was read back is not what was written.
        ReadBack = "read-back",
        /// The container runtime could not say.
        RuntimeUnreachable = "runtime-unreachable",
        /// The container runtime did not answer in time.
        RuntimeTimedOut = "runtime-timed-out",
        /// The container runtime refused.
        RuntimeRefused = "runtime-refused",
        /// The machine holds no such image, and it is not one to fetch.
        ImageMissing = "image-missing",
        /// A path to be bound into the container does not exist.
        BindMissing = "bind-missing",
        /// A container or network of that name is there, and is not ours.
        NameTaken = "name-taken",
        /// Two networks have one name.
        DuplicateNetwork = "duplicate-network",
        /// A fixed address lies in no network that could be made.
        SubnetTaken = "subnet-taken",
        /// The container ended.
        Exited = "exited",
        /// The container starts and ends again and again.
        Restarting = "restarting",
        /// Its check fails, or did not pass in time.
        Unhealthy = "unhealthy",
        /// A probe was not answered as it demands.
        ProbeFailed = "probe-failed",
        /// A file it takes in could not be written.
        InputFailed = "input-failed",
        /// A file it takes in could not be read, so nobody can tell whether it is the one it was made with.
        InputUnreadable = "input-unreadable",
        /// The container whose network it shares is not there.
        FollowedMissing = "followed-missing",
        /// The replacement that takes this file in failed, so the content before is back.
        ReplacementFailed = "replacement-failed",
        /// The change loses data, and the operator has not agreed.
        NotAcknowledged = "not-acknowledged",
        /// It cannot be removed before what lies in it, or before another resource has taken its place.
        RemovalWaits = "removal-waits",
        /// The ledger could not be written, so nothing was changed.
        NotRecorded = "not-recorded",
        /// The policy of this host does not allow it.
        Policy = "policy",
    }
}

/// A failure with nothing to add to its code.
#[must_use]
pub fn failure(code: FailureCode) -> Failure {
    Failure { code: code.as_str().to_owned(), ..Failure::default() }
}

/// Adds names and numbers. Never a value: it may be a secret.
pub(super) trait With: Sized {
    fn with(self, name: &str, value: impl fmt::Display) -> Self;
}

impl With for Failure {
    fn with(mut self, name: &str, value: impl fmt::Display) -> Self {
        self.fields.insert(name.to_owned(), value.to_string());
        self
    }
}

/// What the policy of this host does not allow: `refused` is the code of the refusal, beside its own fields.
pub(super) fn policy(refusal: &Refusal) -> Failure {
    let refused = failure(FailureCode::Policy).with("refused", refusal.code);
    let fields = refusal.fields.iter().filter(|(name, _)| **name != "resource");
    fields.fold(refused, |failure, (name, value)| failure.with(name, value))
}

/// A file operation that failed.
pub(super) fn file(act: &str, path: &std::path::Path, error: &std::io::Error) -> Failure {
    let kind = error
        .raw_os_error()
        .map_or_else(|| error.kind().to_string(), |number| std::io::Error::from_raw_os_error(number).to_string());
    failure(FailureCode::File).with("act", act).with("path", path.display()).with("error", kind)
}

/// A call to the runtime that failed.
pub(super) fn runtime(error: &RuntimeError) -> Failure {
    let fields: BTreeMap<String, String>;
    let code = match error {
        RuntimeError::Unreachable { call, .. } => {
            fields = BTreeMap::from([("call".to_owned(), (*call).to_owned())]);
            FailureCode::RuntimeUnreachable
        }
        RuntimeError::TimedOut { call, bound } => {
            fields = BTreeMap::from([
                ("call".to_owned(), (*call).to_owned()),
                ("bound".to_owned(), format!("{} s", bound.as_secs())),
            ]);
            FailureCode::RuntimeTimedOut
        }
        RuntimeError::Refused { call, status, .. } => {
            fields =
                BTreeMap::from([("call".to_owned(), (*call).to_owned()), ("status".to_owned(), status.to_string())]);
            FailureCode::RuntimeRefused
        }
    };
    let mut failure = failure(code);
    failure.fields = fields;
    // The runtime's own words are program output: they may quote what they were given, but no secret is ever
    // given to the runtime except an exposed environment. Not cut before that is masked: half of a secret would not
    // be known for one.
    if let RuntimeError::Refused { message, .. } = error {
        failure.output.clone_from(message);
    }
    failure
}

/// The same failure with no more output than a report holds. Whatever is secret in it is masked by now.
pub(super) fn cut(mut failure: Failure) -> Failure {
    if let Some((end, _)) = failure.output.char_indices().nth(OUTPUT_MAX) {
        failure.output.truncate(end);
    }
    failure
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_the_runtime_are_cut_only_once_they_are_masked() {
        let message = format!("{}hunter22hunter22{}", "x".repeat(495), "y".repeat(OUTPUT_MAX));
        let refused = RuntimeError::Refused { call: "start", status: 500, message: message.clone() };
        let whole = runtime(&refused);
        assert_eq!(whole.output, message);
        let masked = Failure { output: whole.output.replace("hunter22hunter22", "[masked]"), ..whole };
        let cut = cut(masked).output;
        assert_eq!(cut.chars().count(), OUTPUT_MAX);
        assert!(cut.contains("x[masked]y") && !cut.contains("hunter"));
        assert_eq!(super::cut(failure(FailureCode::File)), failure(FailureCode::File));
    }
}
