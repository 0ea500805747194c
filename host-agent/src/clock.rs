//! Time, handed in: nothing else in the agent asks the machine for its date. Waits are measured with `Instant`.

use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

/// Where times come from.
pub trait Clock: Send + Sync {
    /// Milliseconds since the Unix epoch, UTC. For people; it may jump either way and never decides order.
    fn wall_time(&self) -> u64;

    /// Milliseconds since boot, time asleep included. It never runs backwards within one boot.
    fn monotonic_time(&self) -> u64;

    /// Tells one boot from the next.
    fn boot_id(&self) -> String;
}

/// The machine's own clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn wall_time(&self) -> u64 {
        // A clock set before 1970 reads as 1970.
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| milliseconds(since.as_secs(), since.subsec_millis()))
    }

    fn monotonic_time(&self) -> u64 {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let milliseconds_part = u32::try_from(now.tv_nsec / 1_000_000).unwrap_or_default();
        milliseconds(u64::try_from(now.tv_sec).unwrap_or_default(), milliseconds_part)
    }

    fn boot_id(&self) -> String {
        // Absent only where /proc is not mounted; then every boot looks like one, and only people are misled.
        fs::read_to_string("/proc/sys/kernel/random/boot_id").map(|id| id.trim().to_owned()).unwrap_or_default()
    }
}

fn milliseconds(seconds: u64, part: u32) -> u64 {
    seconds.saturating_mul(1000).saturating_add(u64::from(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machine_knows_its_time_and_its_boot() {
        let clock = SystemClock;
        assert!(clock.wall_time() > 1_700_000_000_000);
        assert!(clock.monotonic_time() <= clock.monotonic_time());
        assert_eq!(clock.boot_id(), clock.boot_id());
        assert!(!clock.boot_id().is_empty());
    }
}
