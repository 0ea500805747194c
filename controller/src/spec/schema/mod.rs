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

use super::names::Slug;

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
