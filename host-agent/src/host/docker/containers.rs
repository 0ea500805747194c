//! Containers, looked up by type and acted on by id.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use bollard::models::{
    ContainerCreateBody, ContainerInspectResponse, ContainerStateStatusEnum, ContainerSummaryStateEnum,
    ContainerUpdateBody, EndpointSettings, HealthConfig, HealthStatusEnum, NetworkConnectRequest,
    NetworkDisconnectRequest,
};
use bollard::query_parameters::{
    CreateContainerOptionsBuilder, InspectContainerOptions, KillContainerOptionsBuilder, ListContainersOptionsBuilder,
    LogsOptionsBuilder, RemoveContainerOptionsBuilder, RenameContainerOptionsBuilder, StartContainerOptions,
    StopContainerOptionsBuilder,
};
use futures_util::TryStreamExt as _;

use super::{CHANGE, Docker, LOOK, RuntimeError, found};
use crate::host::point::Effect;

/// Most that is read of a container's last output, in bytes.
const OUTPUT_MAX: usize = 4096;
/// Between two looks at something that is under way.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// Lines of a container's last output.
const OUTPUT_LINES: &str = "20";

/// Whether a container serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// It runs, and is not found unhealthy.
    Running,
    /// It runs, and its own check has not passed yet.
    Starting,
    /// It runs, and its own check fails.
    Unhealthy,
    /// It was started and ended, and is started again and again.
    Restarting,
    /// It does not run.
    Stopped,
}

/// A container of this host in the list of all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The runtime's id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// The id of its image.
    pub image_id: String,
    /// Whether it runs.
    pub running: bool,
    /// Whether it ended, and the runtime starts it again and again.
    pub restarting: bool,
}

/// A container, seen.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    /// The runtime's id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Whether it serves.
    pub condition: Condition,
    /// Exit status of its last run.
    pub exit_code: i64,
    /// How often the runtime started it again.
    pub restarts: i64,
    /// When it started, as the runtime writes it: RFC 3339, UTC.
    pub started_at: String,
    /// The id of its image.
    pub image_id: String,
    /// The id of the container whose network it shares; empty where it has one of its own.
    pub followed: String,
    /// Its main process, as the host numbers it; 0 where it does not run.
    pub pid: i64,
    /// Ids of the networks it is on, by name.
    pub networks: BTreeMap<String, String>,
    /// Its address on each network, by name.
    pub addresses: BTreeMap<String, String>,
    /// Memory limit in bytes, thousandths of a processor, number of processes; 0 where there is none.
    pub limits: (i64, i64, i64),
    /// How long it was made to be given to stop by itself; none where it was not said.
    pub stop_timeout: Option<Duration>,
    /// How long its check, its image's too, takes to find that it does not serve; none where it has no check.
    pub check_within: Option<Duration>,
}

/// How long a check takes until it has failed as often as it may. What it leaves open is Docker's default: 30 s between
/// two, 30 s for each, three of them, and no time to start.
fn within(check: &HealthConfig) -> Option<Duration> {
    let kind = check.test.as_ref().and_then(|test| test.first()).map_or("", String::as_str);
    if ["", "NONE"].contains(&kind) {
        return None;
    }
    let time = |nanoseconds: Option<i64>| u64::try_from(nanoseconds.unwrap_or_default()).map(Duration::from_nanos).ok();
    let or_default = |nanoseconds| time(nanoseconds).filter(|time| !time.is_zero()).unwrap_or(Duration::from_secs(30));
    let tries = u32::try_from(check.retries.unwrap_or_default()).ok().filter(|tries| *tries > 0).unwrap_or(3);
    let each = or_default(check.interval).saturating_add(or_default(check.timeout));
    Some(time(check.start_period).unwrap_or_default().saturating_add(each.saturating_mul(tries)))
}

impl Seen {
    fn of(answer: ContainerInspectResponse) -> Self {
        let state = answer.state.unwrap_or_default();
        let health = state.health.as_ref().and_then(|health| health.status);
        let status = state.status.unwrap_or(ContainerStateStatusEnum::EMPTY);
        let condition = match (status, health) {
            (ContainerStateStatusEnum::RESTARTING, _) => Condition::Restarting,
            (ContainerStateStatusEnum::RUNNING, Some(HealthStatusEnum::STARTING)) => Condition::Starting,
            (ContainerStateStatusEnum::RUNNING, Some(HealthStatusEnum::UNHEALTHY)) => Condition::Unhealthy,
            (ContainerStateStatusEnum::RUNNING, _) => Condition::Running,
            _ => Condition::Stopped,
        };
        let networks = answer.network_settings.and_then(|settings| settings.networks).unwrap_or_default();
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        let host = answer.host_config.unwrap_or_default();
        let config = answer.config.unwrap_or_default();
        Self {
            id: answer.id.unwrap_or_default(),
            name: answer.name.map(bare).unwrap_or_default(),
            stop_timeout: config.stop_timeout.and_then(|seconds| u64::try_from(seconds).ok()).map(Duration::from_secs),
            check_within: config.healthcheck.as_ref().and_then(within),
            labels: config.labels.unwrap_or_default().into_iter().collect(),
            condition,
            exit_code: state.exit_code.unwrap_or_default(),
            restarts: answer.restart_count.unwrap_or_default(),
            started_at: state.started_at.unwrap_or_default(),
            image_id: answer.image.unwrap_or_default(),
            followed: host
                .network_mode
                .as_deref()
                .and_then(|mode| mode.strip_prefix("container:"))
                .unwrap_or_default()
                .to_owned(),
            pid: state.pid.unwrap_or_default(),
            addresses: networks.iter().map(|(name, end)| (name.clone(), text(&end.ip_address))).collect(),
            networks: networks.iter().map(|(name, end)| (name.clone(), text(&end.network_id))).collect(),
            limits: (
                host.memory.unwrap_or_default(),
                host.nano_cpus.unwrap_or_default() / 1_000_000,
                host.pids_limit.unwrap_or_default().max(0),
            ),
        }
    }
}

impl Seen {
    /// Whether it started earlier than `other`.
    #[must_use]
    pub fn started_before(&self, other: &Self) -> bool {
        // Of one form but for the end: the zeros of a fraction are left out, and the letter of the zone follows.
        let moment = |seen: &Self| seen.started_at.trim_end_matches('Z').to_owned();
        moment(self) < moment(other)
    }
}

/// The runtime writes a name behind a slash.
fn bare(name: String) -> String {
    name.strip_prefix('/').map(str::to_owned).unwrap_or(name)
}

impl Docker {
    /// Every container labelled with this host, running or not.
    ///
    /// # Errors
    ///
    /// [`RuntimeError`].
    pub async fn list(&self, host: &str) -> Result<Vec<Listed>, RuntimeError> {
        let filters = HashMap::from([("label", vec![format!("replicator.host={host}")])]);
        let options = ListContainersOptionsBuilder::default().all(true).filters(&filters).build();
        let all = self.bounded("container.list", LOOK, self.client()?.list_containers(Some(options))).await?;
        Ok(all
            .into_iter()
            .map(|one| Listed {
                id: one.id.unwrap_or_default(),
                name: one.names.and_then(|names| names.into_iter().next()).map(bare).unwrap_or_default(),
                labels: one.labels.unwrap_or_default().into_iter().collect(),
                image_id: one.image_id.unwrap_or_default(),
                running: one.state == Some(ContainerSummaryStateEnum::RUNNING),
                restarting: one.state == Some(ContainerSummaryStateEnum::RESTARTING),
            })
            .collect())
    }

    /// The container of this name or id; `None` where there is none.
    ///
    /// # Errors
    ///
    /// [`RuntimeError`].
    pub async fn container(&self, name: &str) -> Result<Option<Seen>, RuntimeError> {
        Ok(self.inspect(name).await?.map(Seen::of))
    }

    /// All that the runtime tells of the container of this name or id; `None` where there is none. It holds the
    /// whole environment: compare it, and tell nothing of it.
    ///
    /// # Errors
    ///
    /// [`RuntimeError`].
    pub async fn inspect(&self, name: &str) -> Result<Option<ContainerInspectResponse>, RuntimeError> {
        let answer = self.client()?.inspect_container(name, None::<InspectContainerOptions>);
        let seen = found(self.bounded("container.inspect", LOOK, answer).await)?;
        // The runtime answers to the beginning of an id as well, and a name may read like one.
        let asked_for = |seen: &ContainerInspectResponse| {
            let of_name = seen.name.as_deref().and_then(|given| given.strip_prefix('/'));
            seen.id.as_deref() == Some(name) || of_name == Some(name)
        };
        Ok(seen.filter(asked_for))
    }

    /// Makes a container, stopped, and returns its id. Only one network may be named in `body` (the runtime's
    /// own limit); the others are joined afterwards.
    ///
    /// # Errors
    ///
    /// [`RuntimeError`]; after [`RuntimeError::Refused`] with status 500 it may exist all the same.
    pub async fn create(&self, name: &str, body: ContainerCreateBody) -> Result<String, RuntimeError> {
        let options = CreateContainerOptionsBuilder::default().name(name).build();
        let made = self.client()?.create_container(Some(options), body);
        Ok(self.effect(Effect::ContainerCreate, CHANGE, made).await?.id)
    }

    /// Joins a container, running or not, to one more network.
    ///
    /// # Errors
    ///
    /// [`RuntimeError`].
    pub async fn join(&self, id: &str, network: &str, endpoint: EndpointSettings) -> Result<(), RuntimeError> {
        let request = NetworkConnectRequest { container: id.to_owned(), endpoint_config: Some(endpoint) };
        let joined = self.client()?.connect_network(network, request);
        self.bounded("network.connect", CHANGE, joined).await
    }

    /// Takes a container, running or not, off a network; one that is not on it is no error.
    ///
    /// # Errors
    ///
    /// [`RuntimeError`].
    pub async fn leave(&self, id: &str, network: &str) -> Result<(), RuntimeError> {
        let request = NetworkDisconnectRequest { container: id.to_owned(), force: None };
        let left = self.client()?.disconnect_network(network, request);
        found(self.bounded("network.disconnect", CHANGE, left).await).map(drop)
    }

    /// Sets the limits of a container, running or not: memory in bytes, thousandths of a processor, number of
    /// processes. 0 leaves one as it is: the runtime lifts none.
    ///
    /// # Errors
    ///
    /// [`RuntimeError`].
    pub async fn limit(&self, id: &str, (memory, cpus, pids): (i64, i64, i64)) -> Result<(), RuntimeError> {
        let given = |limit: i64| (limit > 0).then_some(limit);
        let body = ContainerUpdateBody {
            memory: given(memory),
            // As the runtime itself makes it for one of this memory.
            memory_swap: given(memory).map(|memory| memory.saturating_mul(2)),
            nano_cpus: given(cpus).map(|cpus| cpus.saturating_mul(1_000_000)),
            pids_limit: given(pids),
            ..ContainerUpdateBody::default()
        };
        self.bounded("container.update", CHANGE, self.client()?.update_container(id, body)).await
    }

    /// Starts a container; one that runs already is no error.
    ///
    /// # Errors
    ///
    /// [`RuntimeError`].
    pub async fn start(&self, id: &str) -> Result<(), RuntimeError> {
        let started = self.client()?.start_container(id, None::<StartContainerOptions>);
        self.effect(Effect::ContainerStart, CHANGE, started).await
    }

    /// Stops a container by its own signal, after `grace` by force; one that is stopped or gone is no error.
    ///
    /// # Errors
    ///
    /// [`RuntimeError`]; it may still run.
    pub async fn stop(&self, id: &str, grace: Duration) -> Result<(), RuntimeError> {
        let seconds = i32::try_from(grace.as_secs()).unwrap_or(i32::MAX);
        let options = StopContainerOptionsBuilder::default().t(seconds).build();
        let stopped = self.client()?.stop_container(id, Some(options));
        // The runtime kills after the grace; it gets as long again to see the end of it.
        found(self.effect(Effect::ContainerStop, grace + super::CHANGE, stopped).await).map(drop)
    }

    /// Gives a container another name.
    ///
    /// # Errors
    ///
    /// [`RuntimeError`].
    pub async fn rename(&self, id: &str, name: &str) -> Result<(), RuntimeError> {
        let options = RenameContainerOptionsBuilder::default().name(name).build();
        self.effect(Effect::ContainerRename, CHANGE, self.client()?.rename_container(id, options)).await
    }

    /// Removes a container by force, its anonymous volumes with it; one that is gone is no error.
    ///
    /// # Errors
    ///
    /// [`RuntimeError`].
    pub async fn remove(&self, id: &str) -> Result<(), RuntimeError> {
        let options = RemoveContainerOptionsBuilder::default().force(true).v(true).build();
        let removed = self.client()?.remove_container(id, Some(options));
        match found(self.effect(Effect::ContainerRemove, CHANGE, removed).await) {
            // Somebody's request to remove it is under way, be it that of an agent that died.
            Err(error) if error.is_conflict() => self.await_gone(id, error).await,
            removed => removed.map(drop),
        }
    }

    async fn await_gone(&self, id: &str, error: RuntimeError) -> Result<(), RuntimeError> {
        let deadline = tokio::time::Instant::now() + CHANGE;
        while self.container(id).await?.is_some() {
            if tokio::time::Instant::now() > deadline {
                return Err(error);
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        Ok(())
    }

    /// Sends a signal to the main process.
    ///
    /// # Errors
    ///
    /// [`RuntimeError`].
    pub async fn signal(&self, id: &str, signal: &str) -> Result<(), RuntimeError> {
        let options = KillContainerOptionsBuilder::default().signal(signal).build();
        self.effect(Effect::ContainerSignal, CHANGE, self.client()?.kill_container(id, Some(options))).await
    }

    /// The last lines a container wrote, cut. They may hold a secret: mask them before they go anywhere.
    pub async fn last_output(&self, id: &str) -> Vec<u8> {
        let options = LogsOptionsBuilder::default().stdout(true).stderr(true).tail(OUTPUT_LINES).build();
        let Ok(client) = self.client() else { return Vec::new() };
        let lines = client.logs(id, Some(options));
        let gathered = lines.try_fold(Vec::new(), |mut all, line| async move {
            all.extend_from_slice(&line.into_bytes());
            Ok(all)
        });
        let mut all = self.bounded("container.logs", LOOK, gathered).await.unwrap_or_default();
        let surplus = all.len().saturating_sub(OUTPUT_MAX);
        if surplus == 0 {
            return all;
        }
        // The cut may run through a secret, and what is left of it would not be known for one: whole lines only.
        let kept = all.split_off(surplus);
        let line = kept.iter().position(|byte| *byte == b'\n').map_or(kept.len(), |end| end + 1);
        kept[line..].to_vec()
    }
}

#[cfg(test)]
mod tests {
    use bollard::models::ContainerConfig;

    use super::*;

    #[test]
    fn time_to_stop_is_the_one_it_was_made_with() {
        let made = |stop_timeout| {
            let config = Some(ContainerConfig { stop_timeout, ..ContainerConfig::default() });
            Seen::of(ContainerInspectResponse { config, ..ContainerInspectResponse::default() }).stop_timeout
        };
        assert_eq!((made(Some(90)), made(None)), (Some(Duration::from_secs(90)), None));
    }

    #[test]
    fn check_is_waited_for_as_long_as_it_takes_to_fail_also_where_the_image_leaves_the_times_open() {
        let second = 1_000_000_000;
        let within = |check: HealthConfig| {
            let config = Some(ContainerConfig { healthcheck: Some(check), ..ContainerConfig::default() });
            Seen::of(ContainerInspectResponse { config, ..ContainerInspectResponse::default() }).check_within
        };
        let test = |words: &[&str]| Some(words.iter().map(|word| (*word).to_owned()).collect());
        let open = HealthConfig { test: test(&["CMD", "/check"]), ..HealthConfig::default() };
        assert_eq!(within(open.clone()), Some(Duration::from_secs(180)));
        let zero = HealthConfig { interval: Some(0), timeout: Some(0), retries: Some(0), ..open.clone() };
        assert_eq!(within(zero), Some(Duration::from_secs(180)), "as Docker writes what is left open");
        let told = HealthConfig {
            interval: Some(5 * second),
            timeout: Some(2 * second),
            retries: Some(4),
            start_period: Some(60 * second),
            ..open
        };
        assert_eq!(within(told), Some(Duration::from_secs(88)));
        assert_eq!(within(HealthConfig { test: test(&["NONE"]), ..HealthConfig::default() }), None);
        assert_eq!(within(HealthConfig::default()), None);
    }
}
