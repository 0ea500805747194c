//! When to look next. Pure; times are milliseconds on the monotonic clock.

use super::Depth;
use crate::config::{Intervals, jittered};

/// Pauses before what failed is tried again, in seconds; after the last, the full look's interval holds.
const RETRIES: [u64; 5] = [30, 60, 120, 240, 480];

/// How long after a look that failed something that happens in the runtime brings on no other: it may be what that
/// look itself did, and would do again.
const QUIET: u64 = 30_000;

/// What is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    /// A look.
    Look(Depth),
    /// What failed is tried again.
    Retry,
}

/// The next look of each depth, and the next retry.
#[derive(Debug, Clone)]
pub(super) struct Schedule {
    intervals: Intervals,
    cheap: u64,
    full: u64,
    retry: Option<u64>,
    failures: usize,
    /// How often the runtime came back since all was well, and before when its next return brings nothing on.
    returns: (usize, u64),
    /// When the last look ended, where it failed and had tried something.
    failed: Option<u64>,
}

impl Schedule {
    pub(super) fn new(intervals: Intervals, now: u64, random: u64) -> Self {
        let (cheap, full) = (after(intervals.cheap, now, random), after(intervals.full, now, random));
        Self { intervals, cheap, full, retry: None, failures: 0, returns: (0, 0), failed: None }
    }

    /// When something is due.
    pub(super) fn next(&self) -> u64 {
        self.cheap.min(self.full).min(self.retry.unwrap_or(u64::MAX))
    }

    /// What is due at `now`, the most thorough first.
    pub(super) fn due(&self, now: u64) -> Option<Due> {
        if self.retry.is_some_and(|at| at <= now) {
            Some(Due::Retry)
        } else if self.full <= now {
            Some(Due::Look(Depth::Full))
        } else {
            (self.cheap <= now).then_some(Due::Look(Depth::Cheap))
        }
    }

    /// An apply or a look of `depth` has ended; `well` where nothing of it failed.
    pub(super) fn ended(&mut self, depth: Depth, well: bool, (now, random): (u64, u64)) {
        self.cheap = after(self.intervals.cheap, now, random);
        self.failed = (!well).then_some(now);
        match depth {
            // What a cheap look finds sound says nothing of what a full one found failing.
            Depth::Cheap if well => return,
            Depth::Cheap => {}
            Depth::Full => self.full = after(self.intervals.full, now, random),
        }
        let tried_again_anyway = depth == Depth::Cheap && self.retry.is_some_and(|at| now < at);
        if well {
            self.begin_anew();
        } else if !tried_again_anyway {
            self.retry = RETRIES.get(self.failures).map(|pause| after(*pause, now, random));
            self.failures += 1;
        }
    }

    /// The look that ended last did nothing to the machine: whatever happens in the runtime now is not its doing.
    pub(super) fn touched_nothing(&mut self) {
        self.failed = None;
    }

    /// Something happened in the runtime: whether that is looked at now. If not, the next look comes sooner.
    pub(super) fn is_looked_at(&mut self, now: u64) -> bool {
        let quiet_until = self.failed.map_or(0, |at| at.saturating_add(QUIET));
        self.cheap = self.cheap.min(quiet_until.max(now));
        quiet_until <= now
    }

    /// The runtime was away and is back: what failed may have failed for that, and is tried again now; and where nothing
    /// failed, it is looked whether everything came up with it. One that goes away over what is tried again brings it on
    /// after growing pauses only.
    pub(super) fn runtime_is_back(&mut self, now: u64) {
        let (returned, quiet_until) = self.returns;
        if self.failures == 0 {
            self.cheap = self.cheap.min(now);
        } else if quiet_until <= now {
            (self.retry, self.failures) = (Some(now), 0);
            let pause = RETRIES[returned.min(RETRIES.len() - 1)];
            self.returns = (returned + 1, now.saturating_add(pause * 1000));
        }
    }

    /// Something newer is in force: what failed before says nothing of it.
    pub(super) fn begin_anew(&mut self) {
        (self.retry, self.failures, self.returns) = (None, 0, (0, 0));
    }
}

fn after(interval: u64, now: u64, random: u64) -> u64 {
    let wait = u64::try_from(jittered(interval, random).as_millis()).unwrap_or(u64::MAX);
    now.saturating_add(wait)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule() -> Schedule {
        // With 0 as the random number every wait is its shortest: four fifths.
        Schedule::new(Intervals::default(), 0, 0)
    }

    #[test]
    fn cheap_look_comes_each_minute_and_the_full_one_each_ten() {
        let mut schedule = schedule();
        assert_eq!((schedule.next(), schedule.due(47_999)), (48_000, None));
        assert_eq!(schedule.due(48_000), Some(Due::Look(Depth::Cheap)));
        schedule.ended(Depth::Cheap, true, (48_000, 0));
        assert_eq!(schedule.next(), 96_000);
        assert_eq!(schedule.due(480_000), Some(Due::Look(Depth::Full)));
    }

    #[test]
    fn failure_is_tried_again_after_growing_pauses_and_then_left_to_the_full_look() {
        let mut schedule = schedule();
        let mut pauses = Vec::new();
        for _ in 0..6 {
            schedule.ended(Depth::Full, false, (0, 0));
            pauses.push(schedule.retry);
        }
        let shortest = |seconds: u64| Some(seconds * 800);
        assert_eq!(pauses, [shortest(30), shortest(60), shortest(120), shortest(240), shortest(480), None]);
    }

    #[test]
    fn what_happens_right_after_a_failed_look_is_looked_at_later() {
        let mut schedule = schedule();
        assert!(schedule.is_looked_at(1_000));
        schedule.ended(Depth::Cheap, false, (1_000, 0));
        assert!(!schedule.is_looked_at(1_500), "it may be what the look itself did");
        assert_eq!((schedule.due(30_999), schedule.next()), (Some(Due::Retry), 25_000));
        schedule.ended(Depth::Full, false, (25_000, 0));
        assert!(!schedule.is_looked_at(25_500));
        assert_eq!(
            (schedule.next(), schedule.due(55_000)),
            (55_000, Some(Due::Look(Depth::Cheap))),
            "not a minute later"
        );
        assert!(schedule.is_looked_at(55_000));
        schedule.ended(Depth::Cheap, true, (55_000, 0));
        assert!(schedule.is_looked_at(55_500), "a sound one brings on nothing");
        schedule.ended(Depth::Cheap, false, (60_000, 0));
        schedule.touched_nothing();
        assert!(schedule.is_looked_at(60_500), "nor does one that tried nothing");
    }

    #[test]
    fn cheap_looks_that_fail_use_up_no_pauses_before_the_retry_is_due() {
        let mut schedule = schedule();
        schedule.ended(Depth::Cheap, false, (0, 0));
        for now in [5_000, 10_000, 15_000, 20_000, 23_999] {
            // A runtime that is away wakes the agent every few seconds.
            schedule.ended(Depth::Cheap, false, (now, 0));
        }
        assert_eq!(schedule.due(24_000), Some(Due::Retry));
        schedule.ended(Depth::Full, false, (24_000, 0));
        assert_eq!(schedule.retry, Some(24_000 + 48_000), "the second pause");
    }

    #[test]
    fn runtime_that_is_back_brings_on_what_failed_however_often_that_was() {
        let mut schedule = schedule();
        schedule.runtime_is_back(1_000);
        assert_eq!(schedule.due(1_000), Some(Due::Look(Depth::Cheap)), "nothing had failed");
        for _ in 0..=RETRIES.len() {
            schedule.ended(Depth::Full, false, (2_000, 0));
        }
        assert_eq!((schedule.retry, schedule.due(3_000)), (None, None));
        schedule.runtime_is_back(3_000);
        assert_eq!(schedule.due(3_000), Some(Due::Retry));
        schedule.ended(Depth::Full, false, (3_000, 0));
        assert_eq!(schedule.retry, Some(3_000 + 24_000), "the first pause again");
    }

    #[test]
    fn runtime_that_comes_back_over_and_over_brings_on_what_failed_after_growing_pauses() {
        let mut schedule = schedule();
        schedule.ended(Depth::Full, false, (0, 0));
        let mut tried = Vec::new();
        for now in (0..500_000).step_by(5_000) {
            schedule.runtime_is_back(now);
            if schedule.retry == Some(now) {
                tried.push(now / 1000);
                schedule.ended(Depth::Full, false, (now, 0));
            }
        }
        assert_eq!(tried, [0, 30, 90, 210, 450]);
        schedule.ended(Depth::Full, true, (500_000, 0));
        schedule.ended(Depth::Full, false, (500_001, 0));
        schedule.runtime_is_back(500_002);
        assert_eq!(schedule.due(500_002), Some(Due::Retry), "all was well in between");
    }

    #[test]
    fn sound_cheap_look_does_not_call_off_a_retry() {
        let mut schedule = schedule();
        schedule.ended(Depth::Full, false, (0, 0));
        schedule.ended(Depth::Cheap, true, (0, 0));
        assert_eq!(schedule.due(24_000), Some(Due::Retry));
        schedule.ended(Depth::Full, true, (24_000, 0));
        assert_eq!(schedule.due(24_001), None);
    }
}
