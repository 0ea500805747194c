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

use super::finding::Report;
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
pub(super) fn read(node: &Node, report: &mut Report) -> Option<HostSpec> {
    let root = Block::root(node, KEYS, report)?;
    let id = root.require("id", "this-machine", report).and_then(|field| field.parsed(HostId::parse, report));
    let name_prefix = root.require("namePrefix", "acme", report).and_then(|field| field.parsed(Slug::parse, report));
    let compute = root.require("compute", "{ provider: existing-host, existingHost: { address: local } }", report);
    let compute = compute.and_then(|field| compute::read(&field, report));
    let ingress = root.require("ingress", "{ provider: none }", report);
    let ingress = ingress.and_then(|field| ingress::read(&field, report));
    let dns = root.require("dns", "{ provider: manual, zones: [ acme.localhost ] }", report);
    let dns = dns.and_then(|field| dns::read(&field, report));
    let access = root.get("access").map(|field| access::read(&field, report));
    let secrets = root.require("secrets", "{ provider: replicator }", report);
    let secrets = secrets.and_then(|field| state::read_secrets(&field, report));
    let state = root.require("state", "{ provider: replicator, replicator: { backend: local } }", report);
    let state = state.and_then(|field| state::read(&field, report));
    let image = root.get("image").map(|field| image::read(&field, report));
    let gateway = root.get("gateway").map(|field| gateway::read(&field, report));
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
