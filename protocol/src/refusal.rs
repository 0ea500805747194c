//! Every reason to say no, with its stable code.
//!
//! A refusal means that we will not; nothing was touched. Errors (that we could not) are other types, one
//! for each room.

use std::collections::BTreeMap;
use std::fmt;

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $says:literal, $hint:literal;)*) => {
        /// The closed list of reasons. A code never changes its meaning and is never used again.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code { $($(#[$doc])* $name,)* }

        impl Code {
            /// Every code, in the order of the list.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The stable code, as it stands in events and documents.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $code,)* }
            }

            /// What was refused, for people.
            #[must_use]
            pub fn says(self) -> &'static str {
                match self { $(Self::$name => $says,)* }
            }

            /// The next thing to do.
            #[must_use]
            pub fn hint(self) -> &'static str {
                match self { $(Self::$name => $hint,)* }
            }
        }
    };
}

codes! {
    /// Not an envelope at all.
    MalformedEnvelope = "malformed-envelope", "the message is not a signed envelope",
        "see who publishes on this subject";
    /// Bytes that decode, but are not the one canonical encoding.
    NotCanonical = "not-canonical", "the message is not in its one canonical form, or holds fields unknown here",
        "upgrade the older side; if both are current, someone has altered the message";
    /// Above a limit that holds before parsing.
    TooLarge = "too-large", "the message is larger than may be accepted",
        "make the largest resource smaller";
    /// More signatures than may be checked.
    TooManySignatures = "too-many-signatures", "the envelope carries more signatures than may be checked",
        "see who publishes on this subject";
    /// Another payload type than this channel carries.
    WrongType = "wrong-type", "the message has another type than this channel carries",
        "see who publishes on this subject";
    /// No signature by a trusted key of the role.
    UntrustedKey = "untrusted-key", "the message is not signed by a key that is trusted for it",
        "if the controller has a new signing key, start `replicator serve` there, which publishes its keyring; if it has not, \
         someone else is publishing";
    /// A key id that is not that of the key which verified.
    WrongKeyId = "wrong-key-id", "a signature names another key than the one that made it",
        "see who publishes on this subject";
    /// Sealed for another host, place or key, or altered.
    CannotOpen = "cannot-open", "a secret does not open here: it was sealed for another host or place, or altered",
        "converge the host again, so that its secrets are sealed anew";
    /// Larger than the largest padding step.
    SecretTooLarge = "secret-too-large", "a secret is larger than may be sealed",
        "keep secrets under 64 KiB";
    /// A public key that no honest party uses.
    WeakKey = "weak-key", "a public key is of low order or malformed",
        "make the key pair again";
    /// Another root document than the one pinned at enrolment.
    WrongRoot = "wrong-root", "the root document is not the one pinned here",
        "enrol the host again if the fleet was set up anew; if it was not, someone else is publishing";
    /// A keyring that contradicts itself or the one before it.
    InvalidKeyring = "invalid-keyring", "the keyring contradicts itself or the one in force",
        "see who publishes on this subject; start `replicator serve`, which compares what lies there with this fleet's";
    /// A keyring version other than the next.
    KeyringOutOfOrder = "keyring-out-of-order", "the keyring is not the version after the one in force",
        "start `replicator serve`, which publishes the versions between";
    /// A name, number or enum in a declaration's head that is none.
    InvalidDeclaration = "invalid-declaration", "the declaration breaks a rule of its language",
        "correct what is named, then converge again";
    /// A mode this agent cannot keep.
    UnsupportedMode = "unsupported-mode", "the declaration is in a mode that this agent does not offer",
        "declare mode `converge`, or upgrade the agent";
    /// A level above what is spoken here.
    UnsupportedLevel = "unsupported-level", "the declaration uses a higher level than this host speaks",
        "upgrade the agent on that host, or leave out what it cannot apply";
    /// A kind for which the host lacks something.
    UnsupportedKind = "unsupported-kind", "the declaration has a kind of resource that this host cannot apply",
        "install on that host what it lacks, and the declaration is taken up by itself; or leave out what needs it";
    /// Addressed to another host or fleet.
    WrongHost = "wrong-host", "the message is addressed to another host",
        "see who publishes on this subject";
    /// Signed by a key of the right role that may not speak about this host.
    OutOfScope = "out-of-scope", "the key that signed may not speak about this host",
        "sign with a key whose scope holds the host";
    /// Below the last position accepted.
    StaleSequence = "stale-sequence", "the declaration is older than the last one accepted",
        "to go back, converge again with the old content; if the controller's state was put back from a backup, put a later \
         one back, or converge as often as declarations were lost: the number counts on";
    /// The position accepted last, with other content.
    Equivocation = "equivocation", "two declarations carry one number and differ",
        "find who else holds the signing key, then converge again with a higher number";
    /// Further ahead than any controller counts.
    SequenceJump = "sequence-jump", "the declaration's number is too far above the last one accepted",
        "see who publishes on this subject; a controller counts one by one";
    /// Another epoch than the keyring says.
    WrongEpoch = "wrong-epoch", "the declaration's epoch is not that of the keyring in force",
        "start `replicator serve`, which publishes the keyring in force, then converge again";
    /// Past its last day.
    Expired = "expired", "the declaration may not be taken up any more",
        "converge the host again; if it was issued just now, look at the clocks";
    /// A bind source that would give a container the machine.
    ForbiddenBind = "forbidden-bind", "the host's policy does not allow this bind source",
        "to allow it, add the line to `policy.toml` on that host, then converge again";
    /// A capability as good as root's.
    ForbiddenCapability = "forbidden-capability", "the host's policy does not allow this capability",
        "to allow it, add the line to `policy.toml` on that host, then converge again";
    /// A file that others run or obey as root, or the agent's own.
    ForbiddenPath = "forbidden-path", "the host's policy does not allow a declaration to write there",
        "to allow it, add the line to `policy.toml` on that host, then converge again";
    /// What this host allows cannot be read, so nothing is known to be allowed.
    Policy = "policy", "the host's policy cannot be read, and nothing is accepted without it",
        "correct `policy.toml` on that host, or remove it; the declaration is then taken up by itself";
    /// A message of an enrolment that does not fit the one before it, or the token.
    InvalidEnrolment = "invalid-enrolment", "the enrolment's message does not belong to this token and this exchange",
        "enrol again with a new token";
    /// A proof that only the holder of the token's secret or of the sealing key can make, and that is wrong.
    WrongProof = "wrong-proof", "the other side of the enrolment has not proved what it claims",
        "enrol again with a new token; if it happens again, someone stands between";
    /// A token that was used before, here or by the other side.
    SpentToken = "spent-token", "the enrolment token was used before, and is good for one use",
        "enrol again with a new token; if nobody here used this one, someone else has it";
    /// A token past its hour.
    ExpiredToken = "expired-token", "the enrolment token has ended",
        "enrol again with a new token; if it was issued just now, look at the clocks";
}

impl fmt::Display for Code {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

/// A reason with the numbers and names that explain it. Never holds a value that could be secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Refusal {
    /// Why.
    pub code: Code,
    /// What we got and what we have, by name.
    pub fields: BTreeMap<&'static str, String>,
}

impl Refusal {
    /// A refusal with nothing to add to its code.
    #[must_use]
    pub fn new(code: Code) -> Self {
        Self { code, fields: BTreeMap::new() }
    }

    /// Adds one explaining name or number.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl fmt::Display) -> Self {
        self.fields.insert(name, value.to_string());
        self
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "refused ({}): {}", self.code, self.code.says())?;
        let mut lead = " (";
        for (name, value) in &self.fields {
            write!(out, "{lead}{name} {value}")?;
            lead = ", ";
        }
        if self.fields.is_empty() { Ok(()) } else { out.write_str(")") }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn codes_are_distinct_and_kebab_case() {
        let codes: BTreeSet<_> = Code::ALL.iter().map(|code| code.as_str()).collect();
        assert_eq!(codes.len(), Code::ALL.len());
        assert!(codes.iter().all(|code| code.bytes().all(|b| b.is_ascii_lowercase() || b == b'-')));
    }

    /// The page for operators, as it must read.
    fn page() -> String {
        let mut page = "# Refusals\n\n\
            Every reason for which a message or a declaration is refused. A refusal means that nothing was touched. A\n\
            code never changes its meaning. This page is made from `protocol/src/refusal.rs`; a test fails where it is\n\
            stale, and writes it anew with `REPLICATOR_WRITE_DOCS=1`.\n\n\
            | code | what it means | what to do |\n|---|---|---|\n"
            .to_owned();
        for code in Code::ALL {
            page.push_str(&format!("| `{code}` | {} | {} |\n", code.says(), code.hint()));
        }
        page
    }

    #[test]
    fn page_for_operators_is_current() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/refusals.md");
        if std::env::var_os("REPLICATOR_WRITE_DOCS").is_some() {
            std::fs::write(path, page()).unwrap();
        }
        assert_eq!(std::fs::read_to_string(path).unwrap(), page(), "run it with `REPLICATOR_WRITE_DOCS=1`");
    }

    #[test]
    fn refusal_gives_its_numbers_as_a_pair() {
        let refusal = Refusal::new(Code::TooLarge).with("got", 9).with("have", 8);
        assert_eq!(
            refusal.to_string(),
            "refused (too-large): the message is larger than may be accepted (got 9, have 8)"
        );
    }
}
