//! The `base` module: the folder everything of a host lies in, and the network its containers share.

use replicator_protocol::ids::InvalidId;
use replicator_protocol::resources::Resource;
use replicator_protocol::wire::declaration::{Directory, Network, resource};

use super::compile::resource;
use super::intent::Wanted;

/// The folder on the machine. Its name holds the host's, and a dot, so that several hosts on one machine and
/// the agent's own folder never meet.
pub(super) fn folder(wanted: &Wanted) -> String {
    format!("/var/lib/replicator.{}", wanted.host)
}

/// The network's name for the runtime.
pub(super) fn network(wanted: &Wanted) -> String {
    wanted.name_prefix.clone()
}

pub(super) fn compile(wanted: &Wanted) -> Result<Vec<Resource>, InvalidId> {
    let folder = Directory { path: folder(wanted), mode: Some(0o755), ..Directory::default() };
    Ok(vec![
        resource("base", "folder", resource::Kind::Directory(folder))?,
        resource("base", "network", resource::Kind::Network(Network { name: network(wanted) }))?,
    ])
}
