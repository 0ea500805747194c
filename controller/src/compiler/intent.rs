//! What an operator wants of one host: host spec and fleet file brought together, names resolved.

use std::collections::BTreeMap;
use std::net::IpAddr;

use replicator_protocol::ids::{FleetName, Generation, HostId, SecretName};

use crate::spec::names::RepoName;
use crate::spec::schema::gateway::CredentialSetting;

/// Everything the compiler looks at.
#[derive(Debug, Clone, PartialEq)]
pub struct Wanted {
    /// The fleet.
    pub fleet: FleetName,
    /// The host.
    pub host: HostId,
    /// Prefix of every name given to the container runtime.
    pub name_prefix: String,
    /// The zone public names lie under.
    pub zone: String,
    /// Where the proxy listens on the machine.
    pub listen: (IpAddr, u16),
    /// The proxy's image.
    pub proxy_image: Image,
    /// The sign-in, where the spec has the block.
    pub gateway: Option<Gateway>,
    /// One for each developer, in the order of the fleet file.
    pub pods: Vec<Pod>,
    /// The secrets the store holds, without their values.
    pub secrets: BTreeMap<SecretName, HeldSecret>,
}

/// A pinned image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// `repository@sha256:…`, or `sha256:…` for one the machine holds.
    pub pinned: String,
    /// Who its programs run as, where that is known: whoever reads its secrets.
    pub user: Option<User>,
}

/// The numbers a container's programs run under.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct User {
    /// The user's.
    pub owner: u32,
    /// The group's.
    pub group: u32,
}

/// What is known of a secret without its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldSecret {
    /// How often it was set.
    pub generation: Generation,
    /// Its length in bytes: decides the size of the ciphertext, and nothing else.
    pub length: usize,
}

/// The sign-in every public name is behind.
#[derive(Debug, Clone, PartialEq)]
pub struct Gateway {
    /// The name it answers at.
    pub host: String,
    /// Its image.
    pub image: Image,
    /// Its credentials: those the spec names or the store holds, and the required ones.
    pub credentials: Vec<(&'static CredentialSetting, SecretName)>,
}

/// One developer's containers.
#[derive(Debug, Clone, PartialEq)]
pub struct Pod {
    /// Whose.
    pub developer: String,
    /// The image of the container whose network the others share.
    pub net_image: Image,
    /// The enabled repositories, in the order of the fleet file.
    pub repositories: Vec<Repository>,
}

/// One repository's container.
#[derive(Debug, Clone, PartialEq)]
pub struct Repository {
    /// `owner/name`.
    pub repository: RepoName,
    /// Its image.
    pub image: Image,
    /// What it serves.
    pub ports: Vec<Route>,
    /// Plain variables.
    pub environment: BTreeMap<String, String>,
    /// Secrets it reads as files.
    pub secrets: Vec<SecretName>,
}

/// One port of a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    /// The port inside the pod.
    pub port: u16,
    /// Whether a public name leads to it.
    pub public: bool,
    /// Whether the sign-in stands before it.
    pub signed_in: bool,
}

/// A public name and where it leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The public name.
    pub host: String,
    /// Alias of the container it leads to.
    pub alias: String,
    /// The port there.
    pub port: u16,
    /// Whether the sign-in stands before it.
    pub signed_in: bool,
    /// Developer and repository, for a name of a pod.
    pub route: Option<(String, String)>,
}
