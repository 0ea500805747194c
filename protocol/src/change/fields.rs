//! The fields of each kind, and which of them decide whether a thing is still the one declared.
//!
//! One table lists every field; a test holds it against the messages, so that a new field in neither list
//! fails. A field that takes no part can never reach a container that already runs.

use std::collections::BTreeMap;

use crate::resources::{Kind, Resource};
use crate::wire::declaration::{Container, Directory, File, Sealed, file, resource};

/// What a field does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// A change of it is a change of the thing.
    Identity,
    /// It says how the thing is changed, watched or fetched, and nothing about what it is.
    Handling,
}

/// Every field of every kind of level 1, by the name it has in the messages.
pub const FIELDS: &[(Kind, &str, Part)] = &[
    (Kind::File, "path", Part::Identity),
    (Kind::File, "content", Part::Identity),
    (Kind::File, "bytes", Part::Identity),
    (Kind::File, "sealed", Part::Identity),
    (Kind::File, "secrets", Part::Identity),
    (Kind::File, "owner", Part::Identity),
    (Kind::File, "group", Part::Identity),
    (Kind::File, "mode", Part::Identity),
    (Kind::File, "create_once", Part::Handling),
    (Kind::Directory, "path", Part::Identity),
    (Kind::Directory, "owner", Part::Identity),
    (Kind::Directory, "group", Part::Identity),
    (Kind::Directory, "mode", Part::Identity),
    (Kind::Network, "name", Part::Identity),
    (Kind::Container, "name", Part::Identity),
    (Kind::Container, "image", Part::Identity),
    (Kind::Container, "command", Part::Identity),
    (Kind::Container, "entrypoint", Part::Identity),
    (Kind::Container, "environment", Part::Identity),
    (Kind::Container, "environment_files", Part::Identity),
    (Kind::Container, "exposed_environment", Part::Identity),
    (Kind::Container, "mounts", Part::Identity),
    (Kind::Container, "ports", Part::Identity),
    (Kind::Container, "networks", Part::Identity),
    (Kind::Container, "network_of", Part::Identity),
    (Kind::Container, "hosts", Part::Identity),
    (Kind::Container, "dns", Part::Identity),
    (Kind::Container, "hostname", Part::Identity),
    (Kind::Container, "user", Part::Identity),
    (Kind::Container, "working_directory", Part::Identity),
    (Kind::Container, "labels", Part::Identity),
    (Kind::Container, "capabilities", Part::Identity),
    (Kind::Container, "devices", Part::Identity),
    (Kind::Container, "sysctls", Part::Identity),
    (Kind::Container, "read_only", Part::Identity),
    (Kind::Container, "init", Part::Identity),
    (Kind::Container, "shm_size", Part::Identity),
    (Kind::Container, "memory", Part::Identity),
    (Kind::Container, "milli_cpus", Part::Identity),
    (Kind::Container, "pids", Part::Identity),
    (Kind::Container, "ulimits", Part::Identity),
    (Kind::Container, "health", Part::Identity),
    (Kind::Container, "stop_signal", Part::Identity),
    (Kind::Container, "stop_timeout", Part::Handling),
    (Kind::Container, "log", Part::Identity),
    (Kind::Container, "pull", Part::Handling),
    (Kind::Container, "restart_on", Part::Handling),
    (Kind::Container, "reload_on", Part::Handling),
    (Kind::Container, "reload_signal", Part::Handling),
    (Kind::Container, "probes", Part::Handling),
    (Kind::Container, "rollover", Part::Handling),
];

/// Each field given alone to a message of its kind and encoded: equal bytes exactly for equal values.
macro_rules! alone {
    ($message:ident, $whole:expr, $out:expr, [$($field:ident),* $(,)?]) => {
        $(put($out, stringify!($field), &$message { $field: $whole.$field.clone(), ..$message::default() });)*
    };
}

fn put(out: &mut BTreeMap<String, Vec<u8>>, name: impl Into<String>, message: &impl prost::Message) {
    let bytes = message.encode_to_vec();
    // A field at its default has no bytes, and is not there.
    if !bytes.is_empty() {
        out.insert(name.into(), bytes);
    }
}

/// A secret as far as equality goes: its name and how often it was set. Ciphertexts differ at every sealing.
fn put_secret(out: &mut BTreeMap<String, Vec<u8>>, name: impl Into<String>, sealed: &Sealed) {
    put(out, name, &Sealed { secret: sealed.secret.clone(), generation: sealed.generation, ..Sealed::default() });
}

/// The fields that make up what `resource` is, in bytes that are equal exactly for equal values; secrets count
/// by name and generation. Each entry of `secrets` stands on its own as `secrets/KEY`, each variable as
/// `environment/NAME`.
#[must_use]
pub fn fields(resource: &Resource) -> BTreeMap<String, Vec<u8>> {
    fields_of(&resource.body)
}

/// The same of what a resource is, whatever it is called.
#[must_use]
pub fn fields_of(body: &resource::Kind) -> BTreeMap<String, Vec<u8>> {
    let mut out = BTreeMap::new();
    match body {
        resource::Kind::File(file) => {
            alone!(File, file, &mut out, [path, owner, group]);
            put(&mut out, "mode", &File { mode: Some(crate::resources::file::mode(file)), ..File::default() });
            put_content(&mut out, file);
        }
        resource::Kind::Directory(directory) => {
            alone!(Directory, directory, &mut out, [path, owner, group]);
            let mode = directory.mode.unwrap_or(crate::resources::directory::DEFAULT_MODE);
            put(&mut out, "mode", &Directory { mode: Some(mode), ..Directory::default() });
        }
        resource::Kind::Network(network) => put(&mut out, "name", network),
        resource::Kind::Container(container) => {
            alone!(
                Container,
                container,
                &mut out,
                [
                    name,
                    image,
                    command,
                    entrypoint,
                    environment_files,
                    exposed_environment,
                    mounts,
                    ports,
                    networks,
                    network_of,
                    dns,
                    hostname,
                    user,
                    working_directory,
                    labels,
                    capabilities,
                    devices,
                    sysctls,
                    read_only,
                    init,
                    shm_size,
                    memory,
                    milli_cpus,
                    pids,
                    ulimits,
                    health,
                    stop_signal,
                    log,
                ]
            );
            for (name, value) in &container.environment {
                let environment = BTreeMap::from([(name.clone(), value.clone())]);
                put(&mut out, format!("environment/{name}"), &Container { environment, ..Container::default() });
            }
            let mut hosts = container.hosts.clone();
            hosts.sort_by(|one, other| (&one.name, &one.address).cmp(&(&other.name, &other.address)));
            put(&mut out, "hosts", &Container { hosts, ..Container::default() });
        }
    }
    out
}

fn put_content(out: &mut BTreeMap<String, Vec<u8>>, file: &File) {
    let alone = |body: file::Body| File { body: Some(body), ..File::default() };
    // What a seed grew into is not ours, and neither is a new seed for it.
    match &file.body {
        None => {}
        Some(_) if file.create_once => {}
        Some(file::Body::Content(content)) => put(out, "content", &alone(file::Body::Content(content.clone()))),
        Some(file::Body::Bytes(bytes)) => put(out, "bytes", &alone(file::Body::Bytes(bytes.clone()))),
        Some(file::Body::Sealed(sealed)) => put_secret(out, "sealed", sealed),
    }
    if !file.create_once {
        for (name, sealed) in &file.secrets {
            put_secret(out, format!("secrets/{name}"), sealed);
        }
    }
}

/// All that `resource` is, in bytes that are equal exactly for equal values: what a dependency on it compares.
#[must_use]
pub fn whole(resource: &Resource) -> Vec<u8> {
    joined(fields(resource))
}

/// What of a file reaches a container that takes it in: its content, not its owner or mode. Empty for anything
/// but a file.
#[must_use]
pub fn content(resource: &Resource) -> Vec<u8> {
    let mut out = BTreeMap::new();
    if let resource::Kind::File(file) = &resource.body {
        put_content(&mut out, file);
    }
    joined(out)
}

fn joined(parts: BTreeMap<String, Vec<u8>>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, value) in parts {
        for part in [name.as_bytes(), &value] {
            bytes.extend_from_slice(&(part.len() as u64).to_be_bytes());
            bytes.extend_from_slice(part);
        }
    }
    bytes
}
