//! How several things, moments and the causes of an error read in a sentence.

use std::fmt::Display;

/// Each of `things` in backticks, with commas between.
pub fn listed(things: impl IntoIterator<Item = impl Display>) -> String {
    things.into_iter().map(|thing| format!("`{thing}`")).collect::<Vec<_>>().join(", ")
}

/// Milliseconds since the Unix epoch as a time in UTC, to the second; `None` for one that no calendar has.
pub fn moment(milliseconds: u64) -> Option<String> {
    let at = jiff::Timestamp::from_millisecond(i64::try_from(milliseconds).ok()?).ok()?;
    Some(format!("{at:.0}"))
}

/// An error and each of its causes, in one line.
pub fn chain_of(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        next = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn things_are_listed_and_moments_are_to_the_second() {
        assert_eq!(listed(["a", "b"]), "`a`, `b`");
        assert_eq!(listed([0_u8; 0]), "");
        assert_eq!(moment(1_500).as_deref(), Some("1970-01-01T00:00:01Z"));
        assert_eq!(moment(u64::MAX), None);
    }

    #[test]
    fn causes_follow_their_error_in_one_line() {
        #[derive(Debug, thiserror::Error)]
        #[error("cannot read it")]
        struct Outer(#[source] std::io::Error);
        assert_eq!(chain_of(&Outer(std::io::Error::other("disk"))), "cannot read it: disk");
    }
}
