//! The blocks of a fleet file: what may be written there, and what becomes of it; `repos` has a file of its own.

use std::collections::BTreeMap;
use std::path::PathBuf;

use replicator_protocol::ids::SecretName;

use crate::spec::finding::{Code, Findings};
use crate::spec::names::{ImageRef, RepoName, Slug, VariableName, Zone};
use crate::spec::read::{Block, Field, Key, key, later, once};
use crate::spec::yaml::Node;

mod repo;

/// What runs on a host, for whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetFile {
    /// The specs of its hosts; relative ones start at the folder of the fleet file.
    pub hosts: Vec<PathBuf>,
    /// The repository a pod opens with; one of `repos`.
    pub pod_default: Option<RepoName>,
    /// Who has a pod.
    pub developers: Vec<Developer>,
    /// The zone public names are in; one of the host's, the first of them where this is absent.
    pub zone: Option<Zone>,
    /// What runs in every pod.
    pub repos: Vec<Repo>,
}

impl FleetFile {
    /// The repositories that run.
    pub fn enabled(&self) -> impl Iterator<Item = &Repo> {
        self.repos.iter().filter(|repo| repo.enabled)
    }
}

/// Someone with a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Developer {
    /// Their name in public names.
    pub slug: Slug,
}

/// A repository and the container it runs in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repo {
    /// Its name.
    pub repo: RepoName,
    /// Whether it runs.
    pub enabled: bool,
    /// What it runs: never by tag of a registry.
    pub image: ImageRef,
    /// Where it listens.
    pub ports: Vec<Port>,
    /// What it is told.
    pub env: Env,
    /// What it needs of the host.
    pub host_requirements: HostRequirements,
}

/// A port a repository listens on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Port {
    /// The number, inside the pod.
    pub port: u16,
    /// Whether it has a public name.
    pub public: bool,
    /// Who may open it.
    pub auth: Auth,
}

/// Who may open a public port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Auth {
    /// Those the gateway signs in.
    Gateway,
    /// Everyone.
    None,
}

/// What a container is told.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Env {
    /// Variables in clear.
    pub plain: BTreeMap<VariableName, String>,
    /// Secrets, each under its own name.
    pub secrets: Vec<SecretName>,
}

/// What a repository needs of its host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HostRequirements {
    /// Processors.
    pub cpus: Option<u32>,
    /// Memory, in bytes.
    pub memory: Option<u64>,
    /// Disk, in bytes.
    pub storage: Option<u64>,
}

impl FleetFile {
    /// The zone public names are in: its own choice, else the first of `zones`, those of the host.
    pub fn zone_among<'a>(&'a self, zones: &'a [Zone]) -> Option<&'a Zone> {
        self.zone.as_ref().or_else(|| zones.first())
    }
}

const KEYS: &[Key] = &[
    key("host"),
    key("hosts"),
    key("pod"),
    key("developers"),
    key("hostnames"),
    key("repos"),
    later("access", "remove it: this version asks no forge for access"),
    later("modules", "remove it: this version takes resources from `repos` only"),
];
const POD: &[Key] = &[key("default")];
const HOSTNAMES: &[Key] = &[key("zone")];
const DEVELOPER: &[Key] = &[key("slug"), key("sshKeys"), key("login")];

/// Whether `node` is a fleet file rather than a host spec, by the keys it has.
pub fn is_fleet(node: &Node) -> bool {
    ["repos", "host", "hosts", "developers"].iter().any(|key| node.get(key).is_some())
}

/// Reads the whole file. Where something essential is missing there is no fleet, and a finding for each.
pub(super) fn read(node: &Node, findings: &mut Findings) -> Option<FleetFile> {
    let root = Block::root(node, KEYS, findings)?;
    let hosts = hosts(&root, findings);
    let pod_default = match root.get("pod").and_then(|field| field.block(POD, findings)) {
        Some(pod) => pod.get("default").map(|field| field.parsed(RepoName::parse, findings)),
        None => None,
    };
    let developers = root.get("developers").map_or(Some(Vec::new()), |field| developers(&field, findings));
    let zone = match root.get("hostnames").and_then(|field| field.block(HOSTNAMES, findings)) {
        Some(hostnames) => hostnames.get("zone").map(|field| field.parsed(Zone::parse, findings)),
        None => None,
    };
    let repos = root.require("repos", "[ { repo: acme/web, image: … } ]", findings);
    let repos = repos.and_then(|field| repo::read_all(&field, findings));
    Some(FleetFile {
        hosts: hosts?,
        pod_default: pod_default.map_or(Some(None), |read| read.map(Some))?,
        developers: developers?,
        zone: zone.map_or(Some(None), |read| read.map(Some))?,
        repos: repos?,
    })
}

/// The host specs that `node` names, whatever else is wrong with it.
pub(super) fn hosts_of(node: &Node, findings: &mut Findings) -> Option<Vec<PathBuf>> {
    hosts(&Block::root(node, KEYS, findings)?, findings)
}

fn hosts(root: &Block<'_>, findings: &mut Findings) -> Option<Vec<PathBuf>> {
    match (root.get("host"), root.get("hosts")) {
        (Some(field), None) => host(&field, findings).map(|host| vec![host]),
        (None, Some(field)) => {
            let items = field.list(findings)?;
            if items.len() > 1 {
                let says = "names several hosts, which is not offered by this version (`hosts`)";
                field.fault(Code::NotOffered, says, "write one; the others take a fleet file of their own", findings);
            } else if items.is_empty() {
                field.fault(Code::InvalidValue, "names no host (`hosts`)", "write `host: ./hosts/acme.yml`", findings);
            }
            let hosts: Vec<_> = items.iter().map(|item| host(item, findings)).collect();
            if hosts.len() == 1 { hosts.into_iter().collect() } else { None }
        }
        (Some(_), Some(field)) => {
            findings.fault(Code::Conflict, field.place, "has both `host` and `hosts`", "keep one of them");
            None
        }
        (None, None) => {
            root.require("host", "./hosts/this-machine.yml", findings);
            None
        }
    }
}

fn host(field: &Field<'_>, findings: &mut Findings) -> Option<PathBuf> {
    let text = field.text(findings)?;
    if text.starts_with("repo:") {
        let says =
            format!("names a host spec in another repository, which is not offered by this version (`{}`)", field.path);
        field.fault(Code::NotOffered, says, "write the path of a file, as `./hosts/acme.yml`", findings);
        return None;
    }
    if text.is_empty() {
        field.fault(
            Code::InvalidValue,
            format!("names no file (`{}`)", field.path),
            "write the path of a file",
            findings,
        );
        return None;
    }
    Some(PathBuf::from(text))
}

fn developers(field: &Field<'_>, findings: &mut Findings) -> Option<Vec<Developer>> {
    let items = field.list(findings)?;
    let read: Vec<_> = items.iter().map(|item| developer(item, findings)).collect();
    let slugs = read
        .iter()
        .zip(&items)
        .filter_map(|(developer, item)| Some((developer.as_ref()?.slug.clone(), format!("{}.slug", item.path))));
    once(slugs, findings);
    read.into_iter().collect()
}

fn developer(field: &Field<'_>, findings: &mut Findings) -> Option<Developer> {
    let block = field.block(DEVELOPER, findings)?;
    let slug = block.require("slug", "ada", findings).and_then(|field| field.parsed(Slug::parse, findings));
    if let Some(field) = block.get("sshKeys") {
        for key in field.list(findings).unwrap_or_default() {
            key.text(findings);
        }
        field.unused("in this version: a pod takes no SSH", findings);
    }
    if let Some(field) = block.get("login") {
        field.text(findings);
        field.unused("in this version: nobody is looked up at a forge", findings);
    }
    Some(Developer { slug: slug? })
}
