//! The `base` module: the folder everything of a host lies in, and the network its containers share.

use replicator_protocol::resources::Resource;
use replicator_protocol::wire::declaration::{Directory, Network, resource};

use super::error::{CompileError, named};
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
    let directory = |path, mode| resource::Kind::Directory(Directory { path, mode, ..Directory::default() });
    Ok(vec![
        named("base", "folder", directory(folder(wanted), Some(0o755)))?,
        // Closed to the accounts of this machine: a secret's owner is the number of a user inside a container,
        // which may be that of somebody else here. The runtime reaches the files as root.
        named("base", "secrets", directory(secrets(wanted), Some(0o700)))?,
        named("base", "network", resource::Kind::Network(Network { name: network(wanted) }))?,
    ])
}
