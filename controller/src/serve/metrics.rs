//! Figures for whoever watches, in OpenMetrics text.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};
use replicator_protocol::ids::HostUid;

use crate::state;

type Labels = [(&'static str, String); 1];

/// The figures of one `serve`.
pub(super) struct Metrics {
    registry: Registry,
    events: Counter,
    receipts: Counter,
    faults: Family<Labels, Counter>,
    refilled: Family<Labels, Counter>,
    silent: Family<Labels, Gauge<i64, AtomicI64>>,
    clock: Family<Labels, Gauge<i64, AtomicI64>>,
    heard: Mutex<BTreeMap<HostUid, u64>>,
    last_round: AtomicU64,
}

impl Metrics {
    pub(super) fn new() -> Self {
        let mut registry = Registry::with_prefix("replicator");
        let metrics = (Counter::default(), Counter::default(), Family::default(), Family::default());
        let (events, receipts, faults, refilled) = metrics;
        let (silent, clock): (Family<Labels, Gauge>, Family<Labels, Gauge>) = Default::default();
        registry.register("events_stored", "Events stored since the start", events.clone());
        registry.register("receipts_published", "Receipts published since the start", receipts.clone());
        let faults: Family<Labels, Counter> = faults;
        registry.register("messages_refused", "Batches and heartbeats not stored, by code", faults.clone());
        let refilled: Family<Labels, Counter> = refilled;
        registry.register("broker_refilled", "Things the broker had lost and was given again", refilled.clone());
        let words = "How long ago a host was heard of";
        registry.register_with_unit("host_heartbeat_age", words, Unit::Seconds, silent.clone());
        let words = "How far a host's clock is from this one; negative is behind";
        registry.register_with_unit("host_clock_offset", words, Unit::Other("milliseconds".into()), clock.clone());
        let (heard, last_round) = (Mutex::default(), AtomicU64::default());
        Self { registry, events, receipts, faults, refilled, silent, clock, heard, last_round }
    }

    /// A round of collecting came to its end.
    pub(super) fn round(&self) {
        self.last_round.store(state::now(), Ordering::Relaxed);
    }

    /// When the last round came to its end, in milliseconds since the Unix epoch; 0 for never.
    pub(super) fn last_round(&self) -> u64 {
        self.last_round.load(Ordering::Relaxed)
    }

    pub(super) fn stored(&self, events: u64) {
        self.events.inc_by(events);
    }

    pub(super) fn receipt(&self) {
        self.receipts.inc();
    }

    pub(super) fn fault(&self, code: &str) {
        self.faults.get_or_create(&[("code", code.to_owned())]).inc();
    }

    pub(super) fn refilled(&self, what: &str, count: usize) {
        self.refilled.get_or_create(&[("what", what.to_owned())]).inc_by(count as u64);
    }

    pub(super) fn heartbeat(&self, host: &HostUid, now: u64, clock: u64) {
        let offset = i64::try_from(i128::from(clock) - i128::from(now)).unwrap_or(i64::MAX);
        self.clock.get_or_create(&[("host", host.to_string())]).set(offset);
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).insert(host.clone(), now);
    }

    /// The page, with ages as of `now`.
    pub(super) fn page(&self, now: u64) -> Result<String, std::fmt::Error> {
        for (host, at) in self.heard.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let age = i64::try_from(now.saturating_sub(*at) / 1000).unwrap_or(i64::MAX);
            self.silent.get_or_create(&[("host", host.to_string())]).set(age);
        }
        let mut page = String::new();
        encode(&mut page, &self.registry)?;
        Ok(page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_says_what_was_counted() {
        let metrics = Metrics::new();
        let host = HostUid::parse(&"a".repeat(32)).unwrap();
        metrics.stored(3);
        metrics.fault("chain-gap");
        metrics.heartbeat(&host, 10_000, 9_000);
        let page = metrics.page(12_500).unwrap();
        for line in [
            "replicator_events_stored_total 3".to_owned(),
            "replicator_messages_refused_total{code=\"chain-gap\"} 1".to_owned(),
            format!("replicator_host_heartbeat_age_seconds{{host=\"{host}\"}} 2"),
            format!("replicator_host_clock_offset_milliseconds{{host=\"{host}\"}} -1000"),
        ] {
            assert!(page.contains(&line), "{line} is not in\n{page}");
        }
        assert!(page.ends_with("# EOF\n"));
    }
}
