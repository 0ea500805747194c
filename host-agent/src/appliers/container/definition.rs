//! A declared container in the runtime's own terms. Pure.

use std::collections::{BTreeMap, HashMap};

use bollard::models::{
    ContainerCreateBody, DeviceMapping, EndpointIpamConfig, EndpointSettings, HealthConfig, HostConfig,
    HostConfigLogConfig, Mount, MountTmpfsOptions, MountType, MountVolumeOptions, NetworkingConfig, PortBinding,
    ResourcesUlimits, RestartPolicy, RestartPolicyNameEnum,
};
use replicator_protocol::wire::declaration::{Container, NetworkAttachment, Protocol, health::Test, mount::Source};

/// Log of a container that declares none: rotated, so that it never fills the disk.
const LOG_DRIVER: &str = "json-file";
/// Size of one log file and how many are kept.
const LOG_OPTIONS: [(&str, &str); 2] = [("max-size", "10m"), ("max-file", "3")];

/// What the declaration does not say and the machine does.
pub(super) struct Surroundings {
    /// The image's id.
    pub(super) image: String,
    /// Variables read from environment files, in the order of the files.
    pub(super) variables: Vec<(String, String)>,
    /// The id of the container whose network is shared.
    pub(super) followed: Option<String>,
    /// Labels of the agent's own.
    pub(super) labels: BTreeMap<String, String>,
}

/// The definition, with its first network; the others are joined once it is made.
pub(super) fn definition(container: &Container, surroundings: &Surroundings) -> ContainerCreateBody {
    let mut variables: BTreeMap<_, _> = surroundings.variables.iter().cloned().collect();
    variables.extend(container.environment.clone());
    let mut labels = container.labels.clone();
    labels.extend(surroundings.labels.clone());
    let first = container.networks.first().map(|network| {
        let endpoint = HashMap::from([(network.name.clone(), endpoint(network))]);
        NetworkingConfig { endpoints_config: Some(endpoint) }
    });
    ContainerCreateBody {
        hostname: text(&container.hostname),
        user: text(&container.user),
        image: Some(surroundings.image.clone()),
        cmd: list(&container.command),
        entrypoint: list(&container.entrypoint),
        env: Some(variables.into_iter().map(|(name, value)| format!("{name}={value}")).collect()),
        exposed_ports: Some(container.ports.iter().map(|port| key(port.container_port, port.protocol())).collect()),
        healthcheck: healthcheck(container),
        working_dir: text(&container.working_directory),
        labels: Some(labels.into_iter().collect()),
        stop_signal: text(&container.stop_signal),
        stop_timeout: container.stop_timeout.map(i64::from),
        host_config: Some(host_config(container, surroundings)),
        networking_config: first,
        ..ContainerCreateBody::default()
    }
}

/// A container's place on one network.
pub(super) fn endpoint(network: &NetworkAttachment) -> EndpointSettings {
    let fixed = text(&network.ip);
    EndpointSettings {
        aliases: list(&network.aliases),
        ipam_config: fixed.map(|ip| EndpointIpamConfig { ipv4_address: Some(ip), ..EndpointIpamConfig::default() }),
        ..EndpointSettings::default()
    }
}

fn host_config(container: &Container, surroundings: &Surroundings) -> HostConfig {
    let capabilities = container.capabilities.clone().unwrap_or_default();
    let signed = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    let network_mode = match (&surroundings.followed, container.networks.first()) {
        (Some(id), _) => format!("container:{id}"),
        (None, Some(network)) => network.name.clone(),
        // A container that asks for no network gets none: the runtime's own bridge would join it to strangers.
        (None, None) => if container.ports.is_empty() { "none" } else { "bridge" }.to_owned(),
    };
    HostConfig {
        memory: container.memory.map(signed),
        nano_cpus: container.milli_cpus.map(|thousandths| signed(thousandths.saturating_mul(1_000_000))),
        pids_limit: container.pids.map(i64::from),
        devices: Some(
            container
                .devices
                .iter()
                .map(|device| DeviceMapping {
                    path_on_host: Some(device.host_path.clone()),
                    path_in_container: Some(device.container_path.clone()),
                    cgroup_permissions: Some(device.permissions.clone()),
                })
                .collect(),
        ),
        ulimits: Some(
            container
                .ulimits
                .iter()
                .map(|limit| ResourcesUlimits {
                    name: Some(limit.name.clone()),
                    soft: Some(limit.soft),
                    hard: Some(limit.hard),
                })
                .collect(),
        ),
        init: Some(container.init),
        log_config: Some(log(container)),
        network_mode: Some(network_mode),
        port_bindings: Some(ports(container)),
        restart_policy: Some(RestartPolicy {
            name: Some(RestartPolicyNameEnum::UNLESS_STOPPED),
            maximum_retry_count: None,
        }),
        mounts: Some(container.mounts.iter().filter_map(|mount| mounted(mount, &surroundings.labels)).collect()),
        cap_add: list(&capabilities.add),
        cap_drop: list(&capabilities.drop),
        dns: list(&container.dns),
        extra_hosts: list(&hosts(container)),
        readonly_rootfs: Some(container.read_only),
        shm_size: container.shm_size.map(signed),
        sysctls: Some(container.sysctls.clone().into_iter().collect()),
        ..HostConfig::default()
    }
}

fn hosts(container: &Container) -> Vec<String> {
    let mut entries: Vec<_> = container.hosts.iter().map(|entry| format!("{}:{}", entry.name, entry.address)).collect();
    entries.sort();
    entries
}

fn log(container: &Container) -> HostConfigLogConfig {
    let declared = container.log.as_ref().map(|log| (log.driver.clone(), log.options.clone().into_iter().collect()));
    let (driver, options) = declared.unwrap_or_else(|| {
        let options = LOG_OPTIONS.map(|(name, value)| (name.to_owned(), value.to_owned()));
        (LOG_DRIVER.to_owned(), options.into())
    });
    HostConfigLogConfig { typ: Some(driver), config: Some(options) }
}

fn ports(container: &Container) -> HashMap<String, Option<Vec<PortBinding>>> {
    let mut all: HashMap<String, Option<Vec<PortBinding>>> = HashMap::new();
    for port in &container.ports {
        let binding = PortBinding { host_ip: text(&port.host_address), host_port: Some(port.host_port.to_string()) };
        all.entry(key(port.container_port, port.protocol())).or_default().get_or_insert_default().push(binding);
    }
    all
}

fn key(port: u32, protocol: Protocol) -> String {
    let protocol = match protocol {
        Protocol::Udp => "udp",
        Protocol::Tcp | Protocol::Unspecified => "tcp",
    };
    format!("{port}/{protocol}")
}

fn mounted(mount: &replicator_protocol::wire::declaration::Mount, labels: &BTreeMap<String, String>) -> Option<Mount> {
    let plain = Mount { target: Some(mount.target.clone()), read_only: Some(mount.read_only), ..Mount::default() };
    Some(match mount.source.as_ref()? {
        // The mount form: a source that is not there is an error, and not made by the runtime as root.
        Source::Bind(source) => Mount { typ: Some(MountType::BIND), source: Some(source.clone()), ..plain },
        Source::Volume(name) => Mount {
            typ: Some(MountType::VOLUME),
            source: Some(name.clone()),
            volume_options: Some(MountVolumeOptions {
                labels: Some(labels.clone().into_iter().collect()),
                ..MountVolumeOptions::default()
            }),
            ..plain
        },
        Source::Tmpfs(tmpfs) => Mount {
            typ: Some(MountType::TMPFS),
            tmpfs_options: Some(MountTmpfsOptions {
                size_bytes: (tmpfs.size > 0).then(|| i64::try_from(tmpfs.size).unwrap_or(i64::MAX)),
                mode: tmpfs.mode.map(i64::from),
                ..MountTmpfsOptions::default()
            }),
            ..plain
        },
    })
}

fn healthcheck(container: &Container) -> Option<HealthConfig> {
    let health = container.health.as_ref()?;
    let nanoseconds =
        |milliseconds: u64| Some(i64::try_from(milliseconds.saturating_mul(1_000_000)).unwrap_or(i64::MAX));
    match health.test.as_ref()? {
        Test::Command(command) => Some(HealthConfig {
            test: Some(std::iter::once("CMD".to_owned()).chain(command.arguments.clone()).collect()),
            interval: nanoseconds(health.interval),
            timeout: nanoseconds(health.timeout),
            retries: Some(i64::from(health.retries)),
            start_period: nanoseconds(health.start_period),
            ..HealthConfig::default()
        }),
        // Asked by the agent.
        Test::Http(_) => None,
    }
}

fn text(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

fn list(list: &[String]) -> Option<Vec<String>> {
    (!list.is_empty()).then(|| list.to_vec())
}

/// The variables of an environment file: `NAME=VALUE` a line; empty lines and lines that start with `#` count
/// for nothing. Quotes are part of the value, as the runtime's own client has it.
pub(super) fn variables(file: &str) -> Vec<(String, String)> {
    let lines = file.lines().map(str::trim_start).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.filter_map(|line| line.split_once('=')).map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use replicator_protocol::wire::declaration::{Health, HealthCommand, Mount as Declared, Port};

    fn surroundings() -> Surroundings {
        Surroundings {
            image: "sha256:1".into(),
            variables: variables("# c\nA=1\n B=x=y\n\nC"),
            followed: None,
            labels: BTreeMap::from([("replicator.host".into(), "h".into())]),
        }
    }

    #[test]
    fn declared_variables_win_over_those_of_files() {
        let environment = BTreeMap::from([("A".to_owned(), "2".to_owned())]);
        let body = definition(&Container { environment, ..Container::default() }, &surroundings());
        assert_eq!(body.env.unwrap(), ["A=2", "B=x=y"]);
        assert_eq!(body.labels.unwrap()["replicator.host"], "h");
    }

    #[test]
    fn bound_path_is_a_mount_and_never_a_bind_string() {
        let mount = Declared { source: Some(Source::Bind("/srv".into())), target: "/data".into(), read_only: true };
        let body = definition(&Container { mounts: vec![mount], ..Container::default() }, &surroundings());
        let host = body.host_config.unwrap();
        assert_eq!(host.binds, None);
        assert_eq!(host.mounts.unwrap()[0].source.as_deref(), Some("/srv"));
    }

    #[test]
    fn container_told_nothing_has_no_hosts_no_dns_and_a_rotated_log() {
        let host = definition(&Container::default(), &surroundings()).host_config.unwrap();
        assert_eq!((host.extra_hosts, host.dns), (None, None));
        assert_eq!(host.network_mode.as_deref(), Some("none"));
        assert_eq!(host.log_config.unwrap().config.unwrap()["max-size"], "10m");
    }

    #[test]
    fn shared_network_is_bound_to_the_id() {
        let followed = Surroundings { followed: Some("abc".into()), ..surroundings() };
        let host = definition(&Container { network_of: "net".into(), ..Container::default() }, &followed);
        assert_eq!(host.host_config.unwrap().network_mode.as_deref(), Some("container:abc"));
    }

    #[test]
    fn time_to_stop_reaches_the_runtime() {
        let body = |stop_timeout| definition(&Container { stop_timeout, ..Container::default() }, &surroundings());
        assert_eq!((body(Some(90)).stop_timeout, body(None).stop_timeout), (Some(90), None));
    }

    #[test]
    fn ports_and_checks_reach_the_runtime() {
        let port = Port { host_address: "127.0.0.1".into(), host_port: 8080, container_port: 80, protocol: 1 };
        let command = HealthCommand { arguments: vec!["/check".into()] };
        let health = Health { test: Some(Test::Command(command)), interval: 1000, retries: 3, ..Health::default() };
        let body =
            definition(&Container { ports: vec![port], health: Some(health), ..Container::default() }, &surroundings());
        let bound = body.host_config.unwrap().port_bindings.unwrap()["80/tcp"].clone().unwrap();
        assert_eq!(bound[0].host_port.as_deref(), Some("8080"));
        let check = body.healthcheck.unwrap();
        assert_eq!((check.test.unwrap(), check.interval), (vec!["CMD".into(), "/check".into()], Some(1_000_000_000)));
    }
}
