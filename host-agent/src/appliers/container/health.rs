//! Whether a container serves: awaited after a start, asked by probes.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use replicator_protocol::wire::declaration::{Container, Health, Probe, health::Test};
use replicator_protocol::wire::event::Failure;
use tokio::time::{Instant, sleep, timeout};

use super::Containers;
use crate::appliers::bounds;
use crate::appliers::failure::{self, FailureCode, With as _, failure};
use crate::host::docker::{Condition, Seen};
use crate::host::http;

impl Containers<'_> {
    /// Waits until a started container serves: its check passes or, where it has none, it has kept running. That
    /// it was started again by itself `restarts` times before is no sign.
    pub(super) async fn await_serving(&self, declared: &Container, id: &str, restarts: i64) -> Result<Seen, Failure> {
        let declared_bound = bound(declared.health.as_ref());
        let started = Instant::now();
        let mut ended = None;
        let mut last;
        loop {
            let seen = self.tools.docker.container(id).await.map_err(|error| failure::runtime(&error))?;
            let Some(seen) = seen else { return Err(failure(FailureCode::Exited).with("container", "gone")) };
            // Where none is declared, its image may have a check of its own, which may begin late.
            let bound = declared_bound.max(seen.check_within.unwrap_or_default());
            let down = matches!(seen.condition, Condition::Stopped | Condition::Restarting);
            if seen.restarts > restarts && !down && ended.get_or_insert_with(Instant::now).elapsed() < bounds::SETTLE {
                // It ended and was started again: how it ended is told only while it is down.
                sleep(bounds::POLL).await;
                continue;
            }
            if seen.restarts > restarts || down {
                return Err(failure(FailureCode::Exited)
                    .with("exit_code", seen.exit_code)
                    .with("after", format!("{:.1} s", started.elapsed().as_secs_f64())));
            }
            let http = match declared.health.as_ref().and_then(|health| health.test.as_ref()) {
                Some(Test::Http(http)) => Some(http),
                Some(Test::Command(_)) | None => None,
            };
            last = match (&http, seen.condition) {
                (_, Condition::Unhealthy) => return Err(failure(FailureCode::Unhealthy)),
                (Some(http), _) => {
                    let answered = match self.address(declared, &seen).await? {
                        Some(address) => ask(SocketAddr::new(address, port(http.port)), "", &http.path).await,
                        None => Err("it has no address".to_owned()),
                    };
                    match answered {
                        Ok(answer) if http.statuses.contains(&u32::from(answer.status)) => return Ok(seen),
                        Ok(answer) => format!("status {}", answer.status),
                        Err(error) => error,
                    }
                }
                (None, Condition::Running) if declared.health.is_some() => return Ok(seen),
                (None, Condition::Running) if started.elapsed() >= bounds::SETTLE => return Ok(seen),
                (None, _) => "its check has not passed".to_owned(),
            };
            if started.elapsed() > bound {
                let unhealthy = failure(FailureCode::Unhealthy).with("bound", format!("{} s", bound.as_secs()));
                return Err(unhealthy.with("last", last));
            }
            sleep(bounds::POLL).await;
        }
    }

    /// An address of the container, or of the one whose network it shares.
    async fn address(&self, declared: &Container, seen: &Seen) -> Result<Option<IpAddr>, Failure> {
        let of = |seen: &Seen| seen.addresses.values().find_map(|address| address.parse().ok());
        if declared.network_of.is_empty() {
            return Ok(of(seen));
        }
        let followed = self.tools.docker.container(&declared.network_of).await;
        Ok(followed.map_err(|error| failure::runtime(&error))?.as_ref().and_then(of))
    }

    /// Asks every probe until each is answered as it demands, within a bound that holds for all of them.
    pub(in crate::appliers) async fn probe(&self, declared: &Container) -> Result<(), Failure> {
        let deadline = Instant::now() + bounds::PROBED;
        for probe in &declared.probes {
            let mut last = probed(probe).await;
            while last.is_err() && Instant::now() < deadline {
                sleep(bounds::POLL).await;
                last = probed(probe).await;
            }
            if let Err(last) = last {
                return Err(failure(FailureCode::ProbeFailed)
                    .with("host", &probe.host)
                    .with("path", &probe.path)
                    .with("port", probe.port)
                    .with("last", last));
            }
        }
        Ok(())
    }
}

async fn probed(probe: &Probe) -> Result<(), String> {
    let address = probe.address.parse::<IpAddr>().map_err(|_| "its address is none".to_owned())?;
    let answer = ask(SocketAddr::new(address, port(probe.port)), &probe.host, &probe.path).await?;
    if !probe.statuses.contains(&u32::from(answer.status)) {
        return Err(format!("status {}", answer.status));
    }
    let body = String::from_utf8_lossy(&answer.body);
    if body.contains(&probe.body) { Ok(()) } else { Err("another body".to_owned()) }
}

async fn ask(address: SocketAddr, host: &str, path: &str) -> Result<http::Answer, String> {
    match timeout(bounds::PROBE, http::get(address, host, path)).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => Err(error.kind().to_string()),
        Err(_) => Err(format!("no answer within {} s", bounds::PROBE.as_secs())),
    }
}

fn port(number: u32) -> u16 {
    // Checked on arrival: 1 to 65535.
    u16::try_from(number).unwrap_or_default()
}

/// How long a container may take to serve: until its own check would have called it unhealthy.
fn bound(health: Option<&Health>) -> Duration {
    let Some(health) = health else { return bounds::HEALTH_LEAST };
    let tries = u64::from(health.retries).saturating_mul(health.interval.saturating_add(health.timeout));
    bounds::HEALTH_LEAST.max(Duration::from_millis(health.start_period.saturating_add(tries)))
}
