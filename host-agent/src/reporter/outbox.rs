//! What has been sent, what is settled, and what has to go again. Pure.

use std::collections::VecDeque;

/// How long an acknowledged batch waits for its receipt before it goes again, in milliseconds: acknowledged
/// messages can be lost with the broker's disk.
const RECEIPT_WITHIN: u64 = 10 * 60 * 1000;

/// The state of sending one chain. Times are milliseconds on the monotonic clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outbox {
    settled: u64,
    sent: u64,
    /// Last number of each batch acknowledged and not settled, with when.
    waiting: VecDeque<(u64, u64)>,
    /// When something was asked for again last.
    again: Option<u64>,
}

impl Outbox {
    /// Begins behind `settled`: what was sent before this process began may never have arrived.
    #[must_use]
    pub fn new(settled: u64) -> Self {
        Self { settled, sent: settled, waiting: VecDeque::new(), again: None }
    }

    /// The number behind which the next batch begins.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// How far a receipt reaches.
    #[must_use]
    pub fn settled(&self) -> u64 {
        self.settled
    }

    /// What tells a delivery that was asked for again from those before it: the broker drops for two minutes what it
    /// took under one name already, and what was asked for again may have been lost behind it since.
    #[must_use]
    pub fn delivery(&self) -> Option<u64> {
        self.again
    }

    /// The broker has acknowledged the batch that ends with `last`.
    pub fn acknowledged(&mut self, last: u64, now: u64) {
        self.sent = last;
        self.waiting.push_back((last, now));
    }

    /// A receipt reaches to `number`. Lower than one before: the collector was restored, and gets the rest again.
    pub fn receipt(&mut self, number: u64, now: u64) {
        if number < self.settled {
            self.ask_again(number, now);
        } else {
            self.waiting.retain(|(last, _)| *last > number);
            self.sent = self.sent.max(number);
        }
        self.settled = number;
    }

    /// Goes back to what is settled where a batch has waited too long for its receipt. Returns whether it did.
    pub fn overdue(&mut self, now: u64) -> bool {
        let overdue = self.waiting.front().is_some_and(|(_, at)| now.saturating_sub(*at) >= RECEIPT_WITHIN);
        if overdue {
            self.ask_again(self.settled, now);
        }
        overdue
    }

    fn ask_again(&mut self, after: u64, now: u64) {
        self.sent = after;
        self.waiting.clear();
        self.again = Some(now);
    }

    /// Whether something that was sent still waits for its receipt.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acknowledged_batch_is_not_settled() {
        let mut outbox = Outbox::new(0);
        outbox.acknowledged(64, 0);
        assert_eq!((outbox.sent(), outbox.settled()), (64, 0));
        outbox.receipt(64, 5);
        assert_eq!((outbox.settled(), outbox.is_waiting()), (64, false));
    }

    #[test]
    fn batch_without_a_receipt_goes_again_after_ten_minutes() {
        let mut outbox = Outbox::new(10);
        outbox.acknowledged(20, 1000);
        outbox.acknowledged(30, 500_000);
        assert!(!outbox.overdue(600_999));
        assert_eq!(outbox.delivery(), None);
        assert!(outbox.overdue(601_000));
        assert_eq!((outbox.sent(), outbox.delivery()), (10, Some(601_000)));
        assert!(!outbox.overdue(601_001), "once");
    }

    #[test]
    fn receipt_ends_the_wait_of_what_it_covers_only() {
        let mut outbox = Outbox::new(0);
        outbox.acknowledged(20, 0);
        outbox.acknowledged(30, 400_000);
        outbox.receipt(20, 5);
        assert!(!outbox.overdue(600_000));
        assert!(outbox.overdue(1_000_000));
        assert_eq!(outbox.sent(), 20);
    }

    #[test]
    fn lower_receipt_sends_again_from_there() {
        let mut outbox = Outbox::new(0);
        outbox.acknowledged(30, 0);
        outbox.receipt(30, 5);
        assert_eq!(outbox.delivery(), None);
        outbox.receipt(12, 6);
        assert_eq!((outbox.sent(), outbox.settled(), outbox.delivery()), (12, 12, Some(6)));
        outbox.acknowledged(30, 7);
        outbox.receipt(30, 8);
        outbox.receipt(12, 9);
        assert_eq!(outbox.delivery(), Some(9), "lost a second time it goes under a third name");
    }
}
