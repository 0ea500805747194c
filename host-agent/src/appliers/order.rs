//! Which earlier resources each one waits for: those it names. Pure.

use std::path::Path;

use replicator_protocol::resources::{Kind, Resource};
use replicator_protocol::wire::declaration::{Container, mount::Source, resource};

/// For each resource, the positions of the earlier ones that must be settled before it.
pub(super) fn waits(resources: &[Resource]) -> Vec<Vec<usize>> {
    let earlier = |at: usize| resources.iter().enumerate().take(at);
    let named = |at: usize| {
        let this = &resources[at];
        earlier(at).filter(|(_, other)| names(this, other)).map(|(position, _)| position).collect()
    };
    (0..resources.len()).map(named).collect()
}

fn names(this: &Resource, other: &Resource) -> bool {
    let holds = other.kind() == Kind::Directory && Path::new(this.target()).starts_with(other.target());
    match &this.body {
        resource::Kind::Container(container) => contains(container, other),
        resource::Kind::File(_) | resource::Kind::Directory(_) => holds,
        resource::Kind::Network(_) => false,
    }
}

fn contains(container: &Container, other: &Resource) -> bool {
    let target = other.target();
    let bound = || {
        container.mounts.iter().any(|mount| match &mount.source {
            // The path itself, what lies in it, and the folders it lies in.
            Some(Source::Bind(source)) => {
                Path::new(target).starts_with(source) || Path::new(source).starts_with(target)
            }
            Some(Source::Volume(_) | Source::Tmpfs(_)) | None => false,
        })
    };
    let by_target = match other.kind() {
        Kind::Network => container.networks.iter().any(|network| network.name == target),
        Kind::Container => container.network_of == target,
        Kind::File => container.environment_files.iter().any(|path| path == target) || bound(),
        Kind::Directory => bound(),
        Kind::Package
        | Kind::Access
        | Kind::User
        | Kind::Archive
        | Kind::Interface
        | Kind::Service
        | Kind::Process
        | Kind::Action => false,
    };
    let id = other.id.to_string();
    by_target || container.restart_on.contains(&id) || container.reload_on.contains(&id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use replicator_protocol::ids::ResourceId;
    use replicator_protocol::wire::declaration::{Directory, File, Mount, Network, NetworkAttachment};

    fn resource(id: &str, body: resource::Kind) -> Resource {
        Resource { id: ResourceId::parse(id).unwrap(), confirms_link: false, body }
    }

    #[test]
    fn container_waits_for_what_it_names_and_for_nothing_else() {
        let directory = Directory { path: "/srv/web".into(), ..Directory::default() };
        let file = |path: &str| resource::Kind::File(File { path: path.into(), ..File::default() });
        let mount = Mount { source: Some(Source::Bind("/srv/web".into())), ..Mount::default() };
        let network = NetworkAttachment { name: "lan".into(), ..NetworkAttachment::default() };
        let container = Container {
            mounts: vec![mount],
            networks: vec![network],
            reload_on: vec!["a.other".into()],
            ..Container::default()
        };
        let resources = [
            resource("a.folder", resource::Kind::Directory(directory)),
            resource("a.inside", file("/srv/web/x")),
            resource("a.stranger", file("/srv/website")),
            resource("a.other", file("/etc/other")),
            resource("a.lan", resource::Kind::Network(Network { name: "lan".into() })),
            resource("b.app", resource::Kind::Container(container)),
        ];
        assert_eq!(waits(&resources), [vec![], vec![0], vec![], vec![], vec![], vec![0, 1, 3, 4]]);
    }
}
