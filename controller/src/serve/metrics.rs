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

use crate::publisher::streams::Fill;
use crate::state;

type Labels = [(&'static str, String); 1];

/// The figures of one `serve`.
pub(super) struct Metrics {
    registry: Registry,
    events: Counter,
    receipts: Counter,
    mended: Counter,
    overtaken: Gauge,
    unreadable: Gauge,
    faults: Family<Labels, Counter>,
    refilled: Family<Labels, Counter>,
    silent: Family<Labels, Gauge<i64, AtomicI64>>,
    clock: Family<Labels, Gauge<i64, AtomicI64>>,
    streams: [Family<Labels, Gauge<i64, AtomicI64>>; 3],
    heard: Mutex<BTreeMap<HostUid, u64>>,
    last_round: AtomicU64,
    last_compared: AtomicU64,
}

impl Metrics {
    pub(super) fn new() -> Self {
        let mut registry = Registry::with_prefix("replicator");
        let metrics = (Counter::default(), Counter::default(), Family::default(), Family::default());
        let (events, receipts, faults, refilled) = metrics;
        let (silent, clock): (Family<Labels, Gauge>, Family<Labels, Gauge>) = Default::default();
        registry.register("events_stored", "Events stored since the start", events.clone());
        registry.register("receipts_published", "Receipts published since the start", receipts.clone());
        let mended = Counter::default();
        registry.register("store_mended", "Times the store was found damaged, gone or replaced", mended.clone());
        let (overtaken, words) = (Gauge::default(), "Hosts whose declaration at the broker another controller issued");
        registry.register("declarations_overtaken", words, overtaken.clone());
        let (unreadable, words) = (Gauge::default(), "Provisioning logs that cannot be read");
        registry.register("logs_unreadable", words, unreadable.clone());
        let faults: Family<Labels, Counter> = faults;
        registry.register("messages_refused", "Batches and heartbeats not stored, by code", faults.clone());
        let refilled: Family<Labels, Counter> = refilled;
        registry.register("broker_refilled", "Things the broker had lost and was given again", refilled.clone());
        let words = "How long ago a host was heard of";
        registry.register_with_unit("host_heartbeat_age", words, Unit::Seconds, silent.clone());
        let words = "How far a host's clock is from this one; negative is behind";
        registry.register_with_unit("host_clock_offset", words, Unit::Other("milliseconds".into()), clock.clone());
        let streams: [Family<Labels, Gauge>; 3] = Default::default();
        let [used, room, alarm] = &streams;
        registry.register_with_unit("broker_stream_used", "Bytes a stream holds", Unit::Bytes, used.clone());
        registry.register_with_unit("broker_stream_room", "Bytes a stream may hold", Unit::Bytes, room.clone());
        registry.register("broker_stream_alarm", "1 where a stream is nearly full", alarm.clone());
        let (heard, last_round, last_compared) = (Mutex::default(), AtomicU64::default(), AtomicU64::default());
        Self {
            registry,
            events,
            receipts,
            mended,
            overtaken,
            unreadable,
            faults,
            refilled,
            silent,
            clock,
            streams,
            heard,
            last_round,
            last_compared,
        }
    }

    /// A round of collecting came to its end.
    pub(super) fn round(&self) {
        self.last_round.store(state::now(), Ordering::Relaxed);
    }

    /// When the last round came to its end, in milliseconds since the Unix epoch; 0 for never.
    pub(super) fn last_round(&self) -> u64 {
        self.last_round.load(Ordering::Relaxed)
    }

    /// The broker was compared, and holds what it has to.
    pub(super) fn compared(&self) {
        self.last_compared.store(state::now(), Ordering::Relaxed);
    }

    /// When that was last, in milliseconds since the Unix epoch; 0 for never.
    pub(super) fn last_compared(&self) -> u64 {
        self.last_compared.load(Ordering::Relaxed)
    }

    pub(super) fn stored(&self, events: u64) {
        self.events.inc_by(events);
    }

    pub(super) fn receipt(&self) {
        self.receipts.inc();
    }

    pub(super) fn mended(&self) {
        self.mended.inc();
    }

    pub(super) fn overtaken(&self, hosts: usize) {
        self.overtaken.set(i64::try_from(hosts).unwrap_or(i64::MAX));
    }

    pub(super) fn unreadable(&self, logs: usize) {
        self.unreadable.set(i64::try_from(logs).unwrap_or(i64::MAX));
    }

    pub(super) fn fault(&self, code: &str) {
        self.faults.get_or_create(&[("code", code.to_owned())]).inc();
    }

    pub(super) fn refilled(&self, what: &str, count: usize) {
        self.refilled.get_or_create(&[("what", what.to_owned())]).inc_by(count as u64);
    }

    pub(super) fn fill(&self, fill: &Fill) {
        let values = [fill.bytes, fill.room, u64::from(fill.alarms())];
        for (family, value) in self.streams.iter().zip(values) {
            let value = i64::try_from(value).unwrap_or(i64::MAX);
            family.get_or_create(&[("stream", fill.stream.clone())]).set(value);
        }
    }

    pub(super) fn heartbeat(&self, host: &HostUid, now: u64, clock: u64) {
        let offset = i64::try_from(i128::from(clock) - i128::from(now)).unwrap_or(i64::MAX);
        self.clock.get_or_create(&[("host", host.to_string())]).set(offset);
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).insert(host.clone(), now);
    }

    /// A heartbeat that was kept by an earlier `serve`, received at `at`.
    pub(super) fn heard_before(&self, host: &HostUid, at: u64) {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).entry(host.clone()).or_insert(at);
    }

    /// Says nothing more of hosts that are not admitted any more: one that is retired is not silent.
    pub(super) fn only(&self, is_admitted: impl Fn(&HostUid) -> bool) {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).retain(|host, _| {
            let stays = is_admitted(host);
            if !stays {
                let labels = [("host", host.to_string())];
                self.silent.remove(&labels);
                self.clock.remove(&labels);
            }
            stays
        });
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
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn page_says_what_was_counted() {
        let metrics = Metrics::new();
        let host = HostUid::parse(&"a".repeat(32)).unwrap();
        metrics.stored(3);
        metrics.fault("chain-gap");
        metrics.heartbeat(&host, 10_000, 9_000);
        metrics.fill(&Fill { stream: "EVT".into(), bytes: 75, room: 100 });
        let page = metrics.page(12_500).unwrap();
        for line in [
            "replicator_events_stored_total 3".to_owned(),
            "replicator_messages_refused_total{code=\"chain-gap\"} 1".to_owned(),
            "replicator_broker_stream_used_bytes{stream=\"EVT\"} 75".to_owned(),
            "replicator_broker_stream_room_bytes{stream=\"EVT\"} 100".to_owned(),
            "replicator_broker_stream_alarm{stream=\"EVT\"} 1".to_owned(),
            format!("replicator_host_heartbeat_age_seconds{{host=\"{host}\"}} 2"),
            format!("replicator_host_clock_offset_milliseconds{{host=\"{host}\"}} -1000"),
        ] {
            assert!(page.contains(&line), "{line} is not in\n{page}");
        }
        assert!(page.ends_with("# EOF\n"));
    }

    #[test]
    fn host_that_was_heard_of_before_the_start_is_told_until_it_is_retired() {
        let metrics = Metrics::new();
        let (silent, retired) = (HostUid::parse(&"a".repeat(32)).unwrap(), HostUid::parse(&"b".repeat(32)).unwrap());
        for host in [&silent, &retired] {
            metrics.heard_before(host, 1_000);
        }
        metrics.heartbeat(&retired, 2_000, 2_000);
        metrics.heard_before(&retired, 1_000);
        let ages = |page: &str| -> Vec<String> {
            page.lines()
                .filter_map(|line| line.strip_prefix("replicator_host_heartbeat_age_seconds"))
                .map(str::to_owned)
                .collect()
        };
        assert_eq!(
            ages(&metrics.page(9_000).unwrap()).into_iter().collect::<BTreeSet<_>>(),
            BTreeSet::from([format!("{{host=\"{silent}\"}} 8"), format!("{{host=\"{retired}\"}} 7")])
        );
        metrics.only(|host| *host == silent);
        let page = metrics.page(9_000).unwrap();
        assert_eq!(ages(&page), [format!("{{host=\"{silent}\"}} 8")]);
        assert!(!page.contains(&format!("host_clock_offset_milliseconds{{host=\"{retired}\"}}")), "{page}");
    }
}
