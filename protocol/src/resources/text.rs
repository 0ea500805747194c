//! Forms that several kinds share: paths, owners, modes, addresses, runtime names, sealed values.

use std::net::IpAddr;
use std::path::{Component, Path};

use super::Fault;
use crate::ids::SecretName;
use crate::wire::declaration::Sealed;

/// Longest path, in bytes (Linux `PATH_MAX` less the end mark).
const PATH_MAX: usize = 4095;
/// Longest name given to the container runtime, in bytes.
const RUNTIME_NAME_MAX: usize = 128;
/// Permission bits, with setuid, setgid and sticky.
const MODE_MAX: u32 = 0o7777;

/// Demands an absolute path in its shortest form, below the root.
pub(super) fn path(field: &str, path: &str, faults: &mut Vec<Fault>) {
    let plain = Path::new(path).components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    let shortest = !path.contains("//") && !path.ends_with('/') && !path.contains("/./") && !path.ends_with("/.");
    if !(path.starts_with('/') && plain && shortest && path.len() <= PATH_MAX && !path.contains('\0')) {
        faults
            .push(Fault::new(field, "is not an absolute path in its shortest form (no `..`, `//` or `/` at the end)"));
    }
}

/// Demands a login or group name, or a numeric id; empty means root.
pub(super) fn owner(field: &str, owner: &str, faults: &mut Vec<Fault>) {
    let numeric = owner.parse::<u32>().is_ok_and(|id| id != u32::MAX) && owner.bytes().all(|b| b.is_ascii_digit());
    let name = owner.len() <= 32
        && owner.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && owner.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"_-".contains(&b));
    if !owner.is_empty() && !numeric && !name {
        faults.push(Fault::new(field, "is neither a login name nor a numeric id"));
    }
}

/// Demands permission bits.
pub(super) fn mode(field: &str, mode: Option<u32>, faults: &mut Vec<Fault>) {
    if mode.is_some_and(|mode| mode > MODE_MAX) {
        faults.push(Fault::new(field, "is not a mode (got more than `7777`)"));
    }
}

/// Demands an address: a name would reach the runtime as it stands, and be refused after the old container stopped.
pub(super) fn address(field: &str, address: &str, faults: &mut Vec<Fault>) {
    if address.parse::<IpAddr>().is_err() {
        faults.push(Fault::new(field, "is not an IP address; names are not accepted here"));
    }
}

/// Demands a name the container runtime takes for a container, network or volume.
pub(super) fn runtime_name(field: &str, name: &str, faults: &mut Vec<Fault>) {
    let inner = |b: u8| b.is_ascii_alphanumeric() || b"_.-".contains(&b);
    let fits = name.len() <= RUNTIME_NAME_MAX
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.bytes().all(inner);
    // A swap uses these two endings itself.
    if !fits || name.ends_with(".next") || name.ends_with(".prev") {
        faults.push(Fault::new(
            field,
            "is not a runtime name (letters, digits, `_`, `.`, `-`; not ending in `.next` or `.prev`)",
        ));
    }
}

/// Whether `name` is the DNS name of a machine (RFC 1123, section 2.1), with no dot at its end.
#[must_use]
pub fn is_host_name(name: &str) -> bool {
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    name.len() <= 253 && name.split('.').all(label)
}

/// Demands a DNS name.
pub(super) fn host_name(field: &str, name: &str, faults: &mut Vec<Fault>) {
    if !is_host_name(name) {
        faults.push(Fault::new(field, "is not a host name"));
    }
}

/// Demands the parts of a sealed value; that it opens is found out on the host.
pub(super) fn sealed(field: &str, sealed: &Sealed, faults: &mut Vec<Fault>) {
    if SecretName::parse(&sealed.secret).is_err() {
        faults.push(Fault::new(format!("{field}.secret"), "is not the name of a secret"));
    }
    if sealed.generation == 0 {
        faults.push(Fault::new(format!("{field}.generation"), "starts at 1"));
    }
    if sealed.key_id.len() != 32 || sealed.encapsulated_key.len() != 32 || sealed.ciphertext.is_empty() {
        faults.push(Fault::new(field, "is not a sealed value"));
    }
}
