//! What is refused although every entry is right on its own, and what a fleet and its host demand of each other.

use std::collections::BTreeMap;

use super::schema::{Auth, FleetFile, Repo};
use crate::spec::finding::{Code, Findings};
use crate::spec::names::Slug;
use crate::spec::schema::{Compute, HostSpec, Ingress};

/// Longest label of a public name, in bytes (RFC 1035, section 2.3.4).
const LABEL_MAX: usize = 63;
/// What the container is called whose network a pod shares; no repository can be called so.
pub const NET: &str = "net";
/// Bytes of a GiB, which is what `capacity` counts in.
const GIB: u64 = 1024 * 1024 * 1024;

/// Where the entry of `repo` stands, as a path.
fn entry(fleet: &FleetFile, repo: &Repo) -> String {
    let index = fleet.repos.iter().position(|other| std::ptr::eq(other, repo));
    index.map_or_else(|| "repos".into(), |index| format!("repos[{index}]"))
}

/// Adds every refusal that concerns the fleet file alone.
pub(super) fn check(fleet: &FleetFile, findings: &mut Findings) {
    pod_default(fleet, findings);
    developers(fleet, findings);
    names(fleet, findings);
    ports(fleet, findings);
}

fn pod_default(fleet: &FleetFile, findings: &mut Findings) {
    let Some(name) = &fleet.pod_default else { return };
    let place = findings.place("pod.default");
    match fleet.repos.iter().find(|repo| repo.repo == *name) {
        Some(repo) if repo.enabled => {}
        Some(_) => findings.fault(
            Code::Conflict,
            place,
            format!("makes `{name}` the default, which is not enabled (`pod.default`)"),
            "enable it under `repos`, or name one that is",
        ),
        None => findings.fault(
            Code::Conflict,
            place,
            format!("makes `{name}` the default, which is not among `repos` (`pod.default`)"),
            "write the `repo` of one of the entries",
        ),
    }
}

fn developers(fleet: &FleetFile, findings: &mut Findings) {
    if fleet.developers.is_empty() && fleet.enabled().next().is_some() {
        let place = findings.place("developers");
        let says = "has repositories to run, and no developer whose pod they run in";
        findings.fault(Code::MissingKey, place, says, "write `developers: [ { slug: ada } ]`");
    }
}

/// Containers and folders are named by the repository alone, public names by repository, port and developer.
fn names(fleet: &FleetFile, findings: &mut Findings) {
    let mut labels: BTreeMap<Slug, &Repo> = BTreeMap::new();
    for repo in fleet.enabled() {
        if repo.repo.label().as_str() == NET {
            let place = findings.place(&format!("{}.repo", entry(fleet, repo)));
            let says = format!("names `{}`, and `{NET}` is what holds the network of a pod", repo.repo);
            findings.fault(Code::Conflict, place, says, "give the repository another name");
        }
        if let Some(first) = labels.insert(repo.repo.label(), repo) {
            let says = format!(
                "names `{}`, which is called `{}` in a pod as `{}` is",
                repo.repo,
                repo.repo.label(),
                first.repo
            );
            let place = findings.place(&format!("{}.repo", entry(fleet, repo)));
            findings.fault(Code::Conflict, place, says, "enable one of them only");
        }
        for (index, port) in repo.ports.iter().enumerate().filter(|(_, port)| port.public) {
            for developer in &fleet.developers {
                let label = format!("{}-{}--{}", repo.repo.label(), port.port, developer.slug);
                if label.len() > LABEL_MAX {
                    let says = format!(
                        "needs the public name `{label}`, which is too long (got {}, have {LABEL_MAX})",
                        label.len()
                    );
                    let place = findings.place(&format!("{}.ports[{index}]", entry(fleet, repo)));
                    findings.fault(
                        Code::Conflict,
                        place,
                        says,
                        "shorten the developer's slug, or the repository's name",
                    );
                }
            }
        }
    }
}

/// The containers of a pod share one network, so a port is there once.
fn ports(fleet: &FleetFile, findings: &mut Findings) {
    let mut taken: BTreeMap<u16, &Repo> = BTreeMap::new();
    for repo in fleet.enabled() {
        for (index, port) in repo.ports.iter().enumerate() {
            if let Some(first) = taken.insert(port.port, repo) {
                let says =
                    format!("gives port {} to `{}`, and `{}` has it in the same pod", port.port, repo.repo, first.repo);
                let place = findings.place(&format!("{}.ports[{index}].port", entry(fleet, repo)));
                findings.fault(Code::Conflict, place, says, "give one of them another port: a pod has one network");
            }
        }
    }
}

/// Adds what the fleet demands of its host, and the host of the fleet; `findings` is the fleet file's.
pub fn check_with_host(fleet: &FleetFile, host: &HostSpec, findings: &mut Findings) {
    zone(fleet, host, findings);
    if host.gateway.is_some() && fleet.enabled().next().is_none() {
        let says =
            format!("enables no repository, and `{}` has a gateway that lets in whoever can push to one", host.id);
        findings.fault(Code::Conflict, findings.place("repos"), says, "enable one, or remove `gateway` from the host");
    }
    for repo in fleet.enabled() {
        public_ports(fleet, repo, host, findings);
        requirements(fleet, repo, host, findings);
    }
}

fn zone(fleet: &FleetFile, host: &HostSpec, findings: &mut Findings) {
    let Some(zone) = &fleet.zone else { return };
    if !host.dns.zones.contains(zone) {
        let listed: Vec<_> = host.dns.zones.iter().map(|zone| format!("`{zone}`")).collect();
        let says = format!("puts public names in `{zone}`, which is not a zone of `{}` (`hostnames.zone`)", host.id);
        findings.fault(
            Code::Conflict,
            findings.place("hostnames.zone"),
            says,
            format!("write {}", listed.join(" or ")),
        );
    }
}

fn public_ports(fleet: &FleetFile, repo: &Repo, host: &HostSpec, findings: &mut Findings) {
    for (index, port) in repo.ports.iter().enumerate().filter(|(_, port)| port.public) {
        let place = findings.place(&format!("{}.ports[{index}]", entry(fleet, repo)));
        match (port.auth, &host.gateway) {
            (Auth::Gateway, None) => {
                let says = format!(
                    "makes port {} of `{}` public, and `{}` has no gateway to stand before it",
                    port.port, repo.repo, host.id
                );
                let hint = "write `auth: none` to let everyone in, or give the host a `gateway`";
                findings.fault(Code::Conflict, place, says, hint);
            }
            (Auth::Gateway, Some(_)) | (Auth::None, _) => {}
        }
        match host.ingress {
            Ingress::None => {
                let says =
                    format!("makes port {} of `{}` public, and `{}` has no ingress", port.port, repo.repo, host.id);
                let hint =
                    "it is reached through the proxy on the host itself; nothing is to be done where that is meant";
                findings.warning(Code::Note, place, says, hint);
            }
        }
    }
}

fn requirements(fleet: &FleetFile, repo: &Repo, host: &HostSpec, findings: &mut Findings) {
    let Compute::ExistingHost { capacity, .. } = &host.compute;
    let path = format!("{}.hostRequirements", entry(fleet, repo));
    if !findings.has(&path) {
        return;
    }
    let Some(capacity) = capacity else {
        let says = format!("says what `{}` requires, and nothing is known of what `{}` can hold", repo.repo, host.id);
        let hint = "write `capacity: { cpus: …, memoryGb: …, diskGb: … }` under `compute` of the host";
        findings.warning(Code::Note, findings.place(&path), says, hint);
        return;
    };
    let wanted = repo.host_requirements;
    let pairs = [
        ("cpus", "cpus", wanted.cpus.map(u64::from), u64::from(capacity.cpus), 1, ""),
        ("memory", "memoryGb", wanted.memory, u64::from(capacity.memory_gb) * GIB, GIB, " GiB"),
        ("storage", "diskGb", wanted.storage, u64::from(capacity.disk_gb) * GIB, GIB, " GiB"),
    ];
    for (name, key, wanted, have, unit, of) in pairs {
        if let Some(wanted) = wanted.filter(|wanted| *wanted > have) {
            let says = format!(
                "requires more {name} for `{}` than `{}` can hold (got {}{of}, have {}{of})",
                repo.repo,
                host.id,
                wanted.div_ceil(unit),
                have / unit
            );
            let hint = format!("lower it, or raise `compute.capacity.{key}` of the host if it holds more");
            findings.fault(Code::Conflict, findings.place(&format!("{path}.{name}")), says, hint);
        }
    }
}
