//! The blocks of a fleet file: what may be written there, and what becomes of it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use replicator_protocol::ids::SecretName;

use crate::spec::names::{ImageRef, RepoName, Slug, VariableName, Zone};

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
