//! Which brokers carry what this workspace says.

/// The oldest nats-server whose streams behave as ours have to, as major and minor number: older ones silently ignore
/// the discard of a single subject and direct gets of batches.
pub const OLDEST: (u64, u64) = (2, 12);

/// Whether a nats-server of this `version`, as its greeting says it, is older than [`OLDEST`]. What is no version is.
#[must_use]
pub fn is_too_old(version: &str) -> bool {
    let mut numbers = version.split('.').map_while(|number| number.parse::<u64>().ok());
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) < OLDEST
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_below_the_oldest_and_what_is_none_are_too_old() {
        for old in ["2.9.10", "2.11.99", "1.99.0", "", "next", "v2.15.1"] {
            assert!(is_too_old(old), "{old}");
        }
        for good in ["2.12.0", "2.12", "2.15.1-beta.1", "3.0.0", "10.0.0"] {
            assert!(!is_too_old(good), "{good}");
        }
    }
}
