//! The `base` module: the folder everything of a host lies in, and the network its containers share.

use replicator_protocol::resources::Resource;
use replicator_protocol::wire::declaration::{Directory, Network, resource};

use super::compile::{CompileError, named};
use super::intent::Wanted;

/// The folder on the machine. Its name holds the host's, and a dot, so that several hosts on one machine and
/// the agent's own folder never meet.
pub(super) fn folder(wanted: &Wanted) -> String {
    format!("/var/lib/replicator.{}", wanted.host)
}

/// The folder that holds a folder of secrets for each container that reads any.
pub(super) fn secrets(wanted: &Wanted) -> String {
    format!("{}/secrets", folder(wanted))
}

/// The network's name for the runtime.
pub(super) fn network(wanted: &Wanted) -> String {
    wanted.name_prefix.clone()
}

pub(super) fn compile(wanted: &Wanted) -> Result<Vec<Resource>, CompileError> {
    let directory = |path| resource::Kind::Directory(Directory { path, mode: Some(0o755), ..Directory::default() });
    Ok(vec![
        named("base", "folder", directory(folder(wanted)))?,
        named("base", "secrets", directory(secrets(wanted)))?,
        named("base", "network", resource::Kind::Network(Network { name: network(wanted) }))?,
    ])
}
