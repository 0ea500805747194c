//! Whether two containers are made from the same definition, as the runtime tells of both. Pure.
//!
//! One stands already, whoever made it; the other was made from the declaration and never started. What the
//! runtime fills in by itself is then the same on both sides, and what is left over differs by how it was asked
//! for: the same mount in another form, an empty list for none, another order.

use std::collections::BTreeMap;

use bollard::models::{ContainerInspectResponse, MountPoint};
use serde_json::{Map, Value};

/// What says nothing of how a container runs: who watched it being made, and what is told elsewhere in other words.
const LEFT_OUT: &[&str] = &[
    "ArgsEscaped",
    "AttachStderr",
    "AttachStdin",
    "AttachStdout",
    "Binds",
    "ConsoleSize",
    "ContainerIDFile",
    "ExposedPorts",
    "Image",
    "Mounts",
    "NetworkMode",
    "OnBuild",
    "StopTimeout",
    "Volumes",
];
/// What has no order.
const UNORDERED: &[&str] = &[
    "CapAdd",
    "CapDrop",
    "Devices",
    "Env",
    "ExtraHosts",
    "GroupAdd",
    "MaskedPaths",
    "ReadonlyPaths",
    "SecurityOpt",
    "Ulimits",
];
/// The runtime's words for what a declaration calls otherwise; any other is told as the runtime has it.
const WORDS: &[(&str, &str)] = &[
    ("CapAdd", "capabilities"),
    ("CapDrop", "capabilities"),
    ("Cmd", "command"),
    ("Devices", "devices"),
    ("Dns", "dns"),
    ("Entrypoint", "entrypoint"),
    ("Env", "environment"),
    ("ExtraHosts", "hosts"),
    ("Healthcheck", "health"),
    ("Hostname", "hostname"),
    ("Init", "init"),
    ("Labels", "labels"),
    ("LogConfig", "log"),
    ("Memory", "memory"),
    ("NanoCpus", "milli_cpus"),
    ("PidsLimit", "pids"),
    ("PortBindings", "ports"),
    ("ReadonlyRootfs", "read_only"),
    ("ShmSize", "shm_size"),
    ("StopSignal", "stop_signal"),
    ("Sysctls", "sysctls"),
    ("Tmpfs", "mounts"),
    ("Ulimits", "ulimits"),
    ("User", "user"),
    ("WorkingDir", "working_directory"),
];
/// Length of the part of its id that a container is called by inside.
const SHORT_ID: usize = 12;
/// Length of the name of a volume that nobody named.
const NAMELESS_VOLUME: usize = 64;

/// The first thing in which `standing` is not what `made` is, by the name of the declared field where one speaks
/// of it. Labels that `made` has not are whoever's it was: nothing inside sees them.
pub(super) fn first_difference(standing: &ContainerInspectResponse, made: &ContainerInspectResponse) -> Option<String> {
    let (mut standing, made) = (definition(standing), definition(made));
    let wanted = made.get("Labels").and_then(Value::as_object).cloned().unwrap_or_default();
    if let Some(labels) = standing.get_mut("Labels").and_then(Value::as_object_mut) {
        labels.retain(|name, _| wanted.contains_key(name));
    }
    let standing: BTreeMap<_, _> = standing.into_iter().filter_map(|(key, value)| Some((key, told(value)?))).collect();
    let mut keys: Vec<_> = standing.keys().chain(made.keys()).collect();
    keys.sort_unstable();
    let key = keys.into_iter().find(|key| standing.get(*key) != made.get(*key))?;
    let word = WORDS.iter().find(|(runtime, _)| runtime == key).map_or(key.as_str(), |(_, declared)| declared);
    Some(word.to_owned())
}

/// Whether every one of these named volumes is mounted in it.
pub(super) fn mounts_all(seen: &ContainerInspectResponse, volumes: &[String]) -> bool {
    let mounted = seen.mounts.as_deref().unwrap_or_default();
    volumes.iter().all(|volume| mounted.iter().any(|mount| mount.name.as_ref() == Some(volume)))
}

fn definition(seen: &ContainerInspectResponse) -> BTreeMap<String, Value> {
    let mut all = BTreeMap::new();
    for part in [object(&seen.config), object(&seen.host_config)] {
        let counts = part.into_iter().filter(|(key, _)| !LEFT_OUT.contains(&key.as_str()));
        all.extend(counts.map(|(key, value)| (key.clone(), in_one_form(&key, value))));
    }
    let id = seen.id.as_deref().unwrap_or_default();
    let short = id.get(..SHORT_ID).unwrap_or(id);
    if all.get("Hostname").and_then(Value::as_str) == Some(short) {
        all.remove("Hostname");
    }
    all.insert("image".into(), seen.image.clone().into());
    all.insert("mounts".into(), mounts(seen));
    all.insert("network_of".into(), followed(seen));
    all.insert("networks".into(), networks(seen, short));
    all.into_iter().filter_map(|(key, value)| Some((key, told(value)?))).collect()
}

fn object(part: &impl serde::Serialize) -> Map<String, Value> {
    match serde_json::to_value(part) {
        Ok(Value::Object(object)) => object,
        Ok(_) | Err(_) => Map::new(),
    }
}

fn in_one_form(key: &str, value: Value) -> Value {
    match (key, value) {
        ("Labels", Value::Object(mut labels)) => {
            labels.retain(|name, _| !name.starts_with("replicator."));
            Value::Object(labels)
        }
        ("WorkingDir", Value::String(folder)) if folder == "/" => Value::Null,
        // As many as there are; what the kernel does by itself.
        ("PidsLimit" | "MemorySwappiness", Value::Number(number)) if number.as_i64() == Some(-1) => Value::Null,
        ("CapAdd" | "CapDrop", Value::Array(names)) => {
            let bare = |name: &Value| name.as_str().map(|name| name.trim_start_matches("CAP_").to_owned());
            sorted(names.iter().filter_map(bare).map(Value::String).collect())
        }
        ("PortBindings", Value::Object(ports)) => {
            Value::Object(ports.into_iter().map(|(port, bound)| (port, bindings(bound))).collect())
        }
        (key, Value::Array(list)) if UNORDERED.contains(&key) => sorted(list),
        (_, value) => value,
    }
}

fn bindings(bound: Value) -> Value {
    let Value::Array(mut bound) = bound else { return bound };
    for address in bound.iter_mut().filter_map(|binding| binding.get_mut("HostIp")) {
        if address == "0.0.0.0" {
            *address = Value::Null;
        }
    }
    sorted(bound.into_iter().filter_map(told).collect())
}

fn sorted(mut list: Vec<Value>) -> Value {
    list.sort_by_cached_key(Value::to_string);
    Value::Array(list)
}

/// What is mounted where, in whichever form it was asked for.
fn mounts(seen: &ContainerInspectResponse) -> Value {
    let asked = seen.host_config.as_ref().and_then(|host| host.mounts.as_deref()).unwrap_or_default();
    let one = |mount: &MountPoint| {
        let target = mount.destination.clone().unwrap_or_default();
        let named = mount.name.clone().filter(|name| name.len() != NAMELESS_VOLUME);
        let bound = mount.source.clone().filter(|_| mount.typ.as_deref() == Some("bind"));
        let tmpfs = asked.iter().find(|asked| asked.target.as_ref() == Some(&target));
        let value = serde_json::json!({
            "type": mount.typ,
            "name": named,
            "source": bound,
            "driver": mount.driver,
            "writable": mount.rw,
            "propagation": mount.propagation,
            "tmpfs": tmpfs.map(|asked| Value::Object(object(&asked.tmpfs_options))),
        });
        (target, value)
    };
    Value::Object(seen.mounts.iter().flatten().map(one).collect())
}

/// The id of the container whose network it shares, or the name of a network that the runtime itself has.
fn followed(seen: &ContainerInspectResponse) -> Value {
    let mode = seen.host_config.as_ref().and_then(|host| host.network_mode.as_deref()).unwrap_or_default();
    match mode {
        "default" => "bridge".into(),
        "bridge" | "none" | "host" => mode.into(),
        shared if shared.starts_with("container:") => shared.into(),
        // One that was made; it is among the networks.
        _ => Value::Null,
    }
}

/// By name, what was asked for on each. A container is found by its own name and id in any case.
fn networks(seen: &ContainerInspectResponse, short: &str) -> Value {
    let own = seen.name.as_deref().unwrap_or_default().trim_start_matches('/');
    let joined = seen.network_settings.as_ref().and_then(|settings| settings.networks.as_ref());
    let one = |(name, end): (&String, &bollard::models::EndpointSettings)| {
        let aliases = end.aliases.iter().flatten().filter(|alias| *alias != own && *alias != short);
        let value = serde_json::json!({
            "joined": true,
            "aliases": sorted(aliases.cloned().map(Value::String).collect()),
            "address": object(&end.ipam_config),
            "links": end.links,
            "driver": end.driver_opts,
        });
        (name.clone(), value)
    };
    Value::Object(joined.into_iter().flatten().map(one).collect())
}

/// The same without what stands for nothing: `null`, `false`, 0, and what is empty.
fn told(value: Value) -> Option<Value> {
    match value {
        Value::Null | Value::Bool(false) => None,
        Value::Number(number) => (number.as_f64() != Some(0.0)).then_some(Value::Number(number)),
        Value::String(text) => (!text.is_empty()).then_some(Value::String(text)),
        Value::Bool(true) => Some(value),
        Value::Array(list) => (!list.is_empty()).then_some(Value::Array(list)),
        Value::Object(object) => {
            let object: Map<_, _> = object.into_iter().filter_map(|(key, value)| Some((key, told(value)?))).collect();
            (!object.is_empty()).then_some(Value::Object(object))
        }
    }
}

#[cfg(test)]
mod tests;
