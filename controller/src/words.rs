//! How several things, moments and the end of an apply read in a sentence.

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

/// How an apply ended: whether every resource was attempted, and how many failed.
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

    #[test]
    fn apply_is_not_called_done_where_something_failed() {
        let all = [(true, 0), (true, 1), (false, 0), (false, 2)].map(|(complete, failed)| ended(complete, failed));
        assert_eq!(all, ["done", "1 failed", "cut short", "cut short, 2 failed"]);
    }

    #[test]
    fn things_are_listed_and_moments_are_to_the_second() {
        assert_eq!(listed(["a", "b"]), "`a`, `b`");
        assert_eq!(listed([0_u8; 0]), "");
        assert_eq!(moment(1_500).as_deref(), Some("1970-01-01T00:00:01Z"));
        assert_eq!(moment(u64::MAX), None);
    }
}
