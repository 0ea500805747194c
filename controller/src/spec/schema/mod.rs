//! The blocks of a host spec, a file each: what may be written there, and what becomes of it.

pub mod access;
pub mod compute;
pub mod dns;
pub mod gateway;
pub mod image;
pub mod ingress;
pub mod state;

use replicator_protocol::ids::HostId;

pub use access::Access;
pub use compute::{Address, Capacity, Compute, Firewall};
pub use dns::Dns;
pub use gateway::{Gateway, GatewayCredential};
pub use image::Image;
pub use ingress::Ingress;
pub use state::{Backend, Secrets, State};

use super::finding::Findings;
use super::names::Slug;
use super::read::{Block, Key, key, later, renamed};
use super::yaml::Node;

/// One machine, as its owner wants it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostSpec {
    /// Its name for people.
    pub id: HostId,
    /// Prefix of every name made for it.
    pub name_prefix: Slug,
    /// What it runs on.
    pub compute: Compute,
    /// How the public reaches it.
    pub ingress: Ingress,
    /// Where its names are written.
    pub dns: Dns,
    /// How people reach it; a host at address `local` needs none.
    pub access: Option<Access>,
    /// Where `secret:NAME` resolves.
    pub secrets: Secrets,
    /// Where its state is kept.
    pub state: State,
    /// Images of the engine's own containers.
    pub image: Image,
    /// The coordination server, where the host has one.
    pub gateway: Option<Gateway>,
}

const KEYS: &[Key] = &[
    key("id"),
    key("namePrefix"),
    key("compute"),
    key("ingress"),
    key("dns"),
    key("access"),
    key("secrets"),
    key("state"),
    key("image"),
    key("gateway"),
    later("resources", "remove it: this version provides no shared backends"),
    later("providers", "remove it: this version runs no provider of your own"),
    renamed("clankbase", "gateway"),
];

/// Reads the whole file. Where a block is missing or wrong there is no spec, and a finding for each.
pub(super) fn read(node: &Node, findings: &mut Findings) -> Option<HostSpec> {
    let root = Block::root(node, KEYS, findings)?;
    let id = root.require("id", "this-machine", findings).and_then(|field| field.parsed(HostId::parse, findings));
    let name_prefix =
        root.require("namePrefix", "acme", findings).and_then(|field| field.parsed(Slug::parse, findings));
    let compute = root.require("compute", "{ provider: existing-host, existingHost: { address: local } }", findings);
    let compute = compute.and_then(|field| compute::read(&field, findings));
    let ingress = root.require("ingress", "{ provider: none }", findings);
    let ingress = ingress.and_then(|field| ingress::read(&field, findings));
    let dns = root.require("dns", "{ provider: manual, zones: [ acme.localhost ] }", findings);
    let dns = dns.and_then(|field| dns::read(&field, findings));
    let access = root.get("access").map(|field| access::read(&field, findings));
    let secrets = root.require("secrets", "{ provider: replicator }", findings);
    let secrets = secrets.and_then(|field| state::read_secrets(&field, findings));
    let state = root.require("state", "{ provider: replicator, replicator: { backend: local } }", findings);
    let state = state.and_then(|field| state::read(&field, findings));
    let image = root.get("image").map(|field| image::read(&field, findings));
    let gateway = root.get("gateway").map(|field| gateway::read(&field, findings));
    Some(HostSpec {
        id: id?,
        name_prefix: name_prefix?,
        compute: compute?,
        ingress: ingress?,
        dns: dns?,
        access: absent_or(access)?,
        secrets: secrets?,
        state: state?,
        image: image.unwrap_or(Some(Image::default()))?,
        gateway: absent_or(gateway)?,
    })
}

/// Absent is well; written and wrong is not.
fn absent_or<T>(read: Option<Option<T>>) -> Option<Option<T>> {
    match read {
        None => Some(None),
        Some(None) => None,
        Some(Some(value)) => Some(Some(value)),
    }
}
