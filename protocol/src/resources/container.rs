//! `container`: a container that stays up.

use std::collections::BTreeSet;

use super::{Fault, text};
use crate::ids::ResourceId;
use crate::wire::declaration::{
    Container, Health, Mount, Port, Probe, Protocol, Rollover, health::Test, mount::Source,
};

/// Longest time a health check, its start or a stop may be given, in seconds: nothing waits for ever.
pub const BOUND_MAX: u64 = 3600;
/// Signals a program can catch, by the names the runtime takes.
const SIGNALS: [&str; 9] =
    ["SIGHUP", "SIGINT", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGTERM", "SIGWINCH", "SIGCONT", "SIGKILL"];

/// How an image is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Image<'a> {
    /// `repository@sha256:…`: pulled where it is missing.
    Registry {
        /// The repository, without tag.
        repository: &'a str,
        /// `sha256:` and 64 hex digits.
        digest: &'a str,
    },
    /// `sha256:…`: held by the machine already, never pulled.
    Held {
        /// `sha256:` and 64 hex digits.
        digest: &'a str,
    },
}

/// Reads a pinned image; a tag is no pin.
#[must_use]
pub fn image(image: &str) -> Option<Image<'_>> {
    let is_digest = |text: &str| {
        let hex = text.strip_prefix("sha256:").unwrap_or_default();
        hex.len() == 64 && hex.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    };
    let Some((repository, digest)) = image.split_once('@') else {
        return is_digest(image).then_some(Image::Held { digest: image });
    };
    let last = repository.rsplit('/').next().unwrap_or_default();
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"./_-:".contains(&b);
    let named = !last.is_empty() && !last.contains(':') && repository.bytes().all(plain);
    (named && is_digest(digest)).then_some(Image::Registry { repository, digest })
}

pub(super) fn faults(container: &Container) -> Vec<Fault> {
    let mut faults = Vec::new();
    text::runtime_name("name", &container.name, &mut faults);
    if image(&container.image).is_none() {
        faults
            .push(Fault::new("image", "is not pinned: `repository@sha256:…`, or `sha256:…` for one the machine holds"));
    }
    surroundings(container, &mut faults);
    mounts(&container.mounts, &mut faults);
    network(container, &mut faults);
    lifecycle(container, &mut faults);
    for (index, probe) in container.probes.iter().enumerate() {
        probed(&format!("probes[{index}]"), probe, &mut faults);
    }
    if let Some(pull) = &container.pull {
        text::sealed("pull", pull, &mut faults);
        if matches!(image(&container.image), Some(Image::Held { .. })) {
            faults.push(Fault::new("pull", "has no use: an image named by `sha256:…` alone is never pulled"));
        }
    }
    faults
}

/// Environment, user, folders and limits.
fn surroundings(container: &Container, faults: &mut Vec<Fault>) {
    for name in container.environment.keys() {
        let plain = name.bytes().all(|b| b.is_ascii_graphic() && b != b'=');
        if name.is_empty() || !plain {
            faults.push(Fault::new("environment", "has a key that is not the name of a variable"));
        }
    }
    for (name, _) in container.environment.iter().filter(|(_, value)| value.contains('\0')) {
        faults.push(Fault::new(format!("environment.{name}"), "holds a NUL, which ends a variable"));
    }
    if let Some(capabilities) = &container.capabilities {
        capabilities_named("add", &capabilities.add, faults);
        capabilities_named("drop", &capabilities.drop, faults);
    }
    for (index, file) in container.environment_files.iter().enumerate() {
        text::path(&format!("environment_files[{index}]"), file, faults);
    }
    for (index, file) in container.exposed_environment.iter().enumerate() {
        if !container.environment_files.contains(file) {
            faults.push(Fault::new(format!("exposed_environment[{index}]"), "is not among `environment_files`"));
        }
    }
    if !container.working_directory.is_empty() && container.working_directory != "/" {
        text::path("working_directory", &container.working_directory, faults);
    }
    if let Some(key) = container.labels.keys().find(|key| key.starts_with("replicator.")) {
        faults.push(Fault::new(format!("labels.{key}"), "is kept for the agent (`replicator.`)"));
    }
    if container.memory.is_some_and(|bytes| bytes < 6 * 1024 * 1024) {
        faults.push(Fault::new("memory", "is under 6 MiB, the least the runtime takes"));
    }
    if container.milli_cpus == Some(0) {
        faults.push(Fault::new("cpus", "is 0"));
    }
    for (index, limit) in container.ulimits.iter().enumerate() {
        if limit.name.is_empty() || (limit.hard >= 0 && limit.soft > limit.hard) {
            faults.push(Fault::new(format!("ulimits[{index}]"), "needs a name, and a soft limit up to the hard one"));
        }
    }
    for (index, device) in container.devices.iter().enumerate() {
        text::path(&format!("devices[{index}].host_path"), &device.host_path, faults);
        text::path(&format!("devices[{index}].container_path"), &device.container_path, faults);
        if device.permissions.is_empty() || !device.permissions.bytes().all(|b| b"rwm".contains(&b)) {
            faults.push(Fault::new(format!("devices[{index}].permissions"), "is not made of `r`, `w`, `m`"));
        }
    }
}

/// Only as capabilities(7) spells them: the runtime takes any case, and a policy must not have to.
fn capabilities_named(field: &str, names: &[String], faults: &mut Vec<Fault>) {
    for (index, name) in names.iter().enumerate() {
        let bare = name.strip_prefix("CAP_").unwrap_or(name);
        if bare.is_empty() || !bare.bytes().all(|b| b.is_ascii_uppercase() || b == b'_') {
            let what = "is not a capability in capital letters, such as `NET_BIND_SERVICE`";
            faults.push(Fault::new(format!("capabilities.{field}[{index}]"), what));
        }
    }
}

fn mounts(mounts: &[Mount], faults: &mut Vec<Fault>) {
    let mut targets = BTreeSet::new();
    for (index, mount) in mounts.iter().enumerate() {
        let field = format!("mounts[{index}]");
        text::path(&format!("{field}.target"), &mount.target, faults);
        if !targets.insert(&mount.target) {
            faults.push(Fault::new(format!("{field}.target"), "is a target twice"));
        }
        match &mount.source {
            Some(Source::Bind(source)) => text::path(&format!("{field}.bind"), source, faults),
            Some(Source::Volume(name)) => text::runtime_name(&format!("{field}.volume"), name, faults),
            Some(Source::Tmpfs(tmpfs)) => text::mode(&format!("{field}.tmpfs.mode"), tmpfs.mode, faults),
            None => faults.push(Fault::new(field, "needs exactly one of `bind`, `volume`, `tmpfs`")),
        }
    }
}

fn network(container: &Container, faults: &mut Vec<Fault>) {
    if !container.network_of.is_empty() {
        text::runtime_name("network_of", &container.network_of, faults);
        if container.network_of == container.name {
            faults.push(Fault::new("network_of", "is the container itself"));
        }
        let beside = [
            ("ports", container.ports.is_empty()),
            ("networks", container.networks.is_empty()),
            ("hosts", container.hosts.is_empty()),
            ("dns", container.dns.is_empty()),
            ("hostname", container.hostname.is_empty()),
        ];
        for (field, _) in beside.into_iter().filter(|(_, empty)| !empty) {
            faults.push(Fault::new(field, "cannot stand beside `network_of`: the network is the other container's"));
        }
    }
    let mut bound = BTreeSet::new();
    for (index, port) in container.ports.iter().enumerate() {
        published(&format!("ports[{index}]"), port, faults);
        if !bound.insert((&port.host_address, port.host_port, port.protocol)) {
            faults.push(Fault::new(format!("ports[{index}].host_port"), "is bound twice"));
        }
    }
    let mut names = BTreeSet::new();
    for (index, attachment) in container.networks.iter().enumerate() {
        let field = format!("networks[{index}]");
        text::runtime_name(&format!("{field}.name"), &attachment.name, faults);
        if !names.insert(&attachment.name) {
            faults.push(Fault::new(format!("{field}.name"), "is joined twice"));
        }
        for alias in &attachment.aliases {
            text::host_name(&format!("{field}.aliases"), alias, faults);
        }
        if !attachment.ip.is_empty() {
            text::address(&format!("{field}.ip"), &attachment.ip, faults);
        }
    }
    for (index, entry) in container.hosts.iter().enumerate() {
        text::host_name(&format!("hosts[{index}].name"), &entry.name, faults);
        text::address(&format!("hosts[{index}].address"), &entry.address, faults);
    }
    for (index, server) in container.dns.iter().enumerate() {
        text::address(&format!("dns[{index}]"), server, faults);
    }
    if !container.hostname.is_empty() {
        text::host_name("hostname", &container.hostname, faults);
    }
}

fn published(field: &str, port: &Port, faults: &mut Vec<Fault>) {
    if !port.host_address.is_empty() {
        text::address(&format!("{field}.host_address"), &port.host_address, faults);
    }
    for (name, number) in [("host_port", port.host_port), ("container_port", port.container_port)] {
        if !(1..=65_535).contains(&number) {
            faults.push(Fault::new(format!("{field}.{name}"), "is not a port (1 to 65535)"));
        }
    }
    if matches!(Protocol::try_from(port.protocol), Err(_) | Ok(Protocol::Unspecified)) {
        faults.push(Fault::new(format!("{field}.protocol"), "is neither `tcp` nor `udp`"));
    }
}

fn lifecycle(container: &Container, faults: &mut Vec<Fault>) {
    if let Some(health) = &container.health {
        checked(health, faults);
    }
    for (field, signal) in [("stop_signal", &container.stop_signal), ("reload_signal", &container.reload_signal)] {
        if !signal.is_empty() && !SIGNALS.contains(&signal.as_str()) {
            faults.push(Fault::new(field, format!("is not one of {}", SIGNALS.map(|s| format!("`{s}`")).join(", "))));
        }
    }
    if container.reload_on.is_empty() != container.reload_signal.is_empty() {
        faults.push(Fault::new("reload_signal", "and `reload_on` stand together or not at all"));
    }
    if container.stop_timeout.is_some_and(|seconds| u64::from(seconds) > BOUND_MAX) {
        faults.push(Fault::new("stop_timeout", "is above 3600 seconds"));
    }
    for (field, names) in [("restart_on", &container.restart_on), ("reload_on", &container.reload_on)] {
        for (index, name) in names.iter().enumerate() {
            if ResourceId::parse(name).is_err() {
                faults.push(Fault::new(format!("{field}[{index}]"), "is not a resource (`module.name`)"));
            }
        }
    }
    match Rollover::try_from(container.rollover) {
        Ok(Rollover::StopFirst) => {}
        // Start first waits until it can be proven against a client that sees no failed request.
        Ok(Rollover::StartFirst) => faults.push(Fault::new("rollover", "is `start first`, which no level yet offers")),
        Ok(Rollover::Unspecified) | Err(_) => faults.push(Fault::new("rollover", "is missing")),
    }
}

fn checked(health: &Health, faults: &mut Vec<Fault>) {
    match &health.test {
        Some(Test::Command(command)) if command.arguments.first().is_some_and(|program| !program.is_empty()) => {}
        Some(Test::Command(_)) => faults.push(Fault::new("health.command", "is empty")),
        Some(Test::Http(http)) => {
            if !(1..=65_535).contains(&http.port) || !http.path.starts_with('/') {
                faults.push(Fault::new("health.http", "needs a port (1 to 65535) and a path that starts with `/`"));
            }
            statuses("health.http.statuses", &http.statuses, faults);
        }
        None => faults.push(Fault::new("health", "needs exactly one of `command`, `http`")),
    }
    let times = [("interval", health.interval), ("timeout", health.timeout)];
    for (name, _) in times.into_iter().filter(|(_, ms)| !(1..=BOUND_MAX * 1000).contains(ms)) {
        faults.push(Fault::new(format!("health.{name}"), "is not between 1 ms and 3600 s"));
    }
    if health.start_period > BOUND_MAX * 1000 {
        faults.push(Fault::new("health.start_period", "is above 3600 s"));
    }
    if !(1..=100).contains(&health.retries) {
        faults.push(Fault::new("health.retries", "is not between 1 and 100"));
    }
}

fn probed(field: &str, probe: &Probe, faults: &mut Vec<Fault>) {
    text::address(&format!("{field}.address"), &probe.address, faults);
    if !(1..=65_535).contains(&probe.port) {
        faults.push(Fault::new(format!("{field}.port"), "is not a port (1 to 65535)"));
    }
    if !probe.host.is_empty() {
        text::host_name(&format!("{field}.host"), &probe.host, faults);
    }
    if !probe.path.starts_with('/') {
        faults.push(Fault::new(format!("{field}.path"), "does not start with `/`"));
    }
    statuses(&format!("{field}.statuses"), &probe.statuses, faults);
}

fn statuses(field: &str, statuses: &[u32], faults: &mut Vec<Fault>) {
    if statuses.is_empty() || statuses.iter().any(|status| !(100..=599).contains(status)) {
        faults.push(Fault::new(field, "needs at least one status, each between 100 and 599"));
    }
}

#[cfg(test)]
mod tests;
