//! How several things and moments read in a sentence.

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
}
