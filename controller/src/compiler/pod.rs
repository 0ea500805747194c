//! The `pod.DEVELOPER` modules: a container that holds the network, and one for each repository sharing it.

use replicator_protocol::ids::InvalidId;
use replicator_protocol::resources::Resource;
use replicator_protocol::wire::declaration::{Container, Mount, NetworkAttachment, Rollover, mount, resource};

use super::base;
use super::compile::{mount_secrets, pull, resource};
use super::intent::{Place, Pod, Repository, Wanted};
use crate::secrets::Need;

pub(super) fn needs(pod: &Pod) -> Vec<Need> {
    let of = |repository: &Repository| {
        let reason = format!("`env.secrets` of `{}`", repository.repository);
        let files = repository.secrets.clone().into_iter();
        files.map(move |secret| Need { secret, reason: reason.clone() }).collect::<Vec<_>>()
    };
    pod.repositories.iter().flat_map(of).collect()
}

/// What the proxy reaches the pod by.
fn alias(pod: &Pod) -> String {
    format!("pod-{}", pod.developer)
}

/// The public names of a pod: `<repository>-<port>--<developer>.<zone>`.
pub(super) fn places(wanted: &Wanted, pod: &Pod) -> Vec<Place> {
    let of = |repository: &Repository| {
        let slug = repository.slug();
        let routed = repository.ports.clone().into_iter().filter(|route| route.public);
        let place = move |port: u16, signed_in: bool| Place {
            host: format!("{slug}-{port}--{}.{}", pod.developer, wanted.zone),
            alias: alias(pod),
            port,
            signed_in,
            route: Some(format!("{}/{slug}", pod.developer)),
        };
        routed.map(move |route| place(route.port, route.signed_in)).collect::<Vec<_>>()
    };
    pod.repositories.iter().flat_map(of).collect()
}

pub(super) fn compile(wanted: &Wanted, pod: &Pod) -> Result<Vec<Resource>, InvalidId> {
    let module = format!("pod.{}", pod.developer);
    let prefix = format!("{}_{}", wanted.name_prefix, pod.developer);
    let net = net(wanted, pod, format!("{prefix}_net"));
    let shared = net.name.clone();
    let mut resources = vec![resource(&module, "net", resource::Kind::Container(net))?];
    for repository in &pod.repositories {
        let container = workload(wanted, repository, &prefix, &shared);
        resources.push(resource(&module, &repository.slug(), resource::Kind::Container(container))?);
    }
    Ok(resources)
}

fn net(wanted: &Wanted, pod: &Pod, name: String) -> Container {
    let mut container = Container {
        name,
        image: pod.net_image.pinned.clone(),
        hostname: pod.developer.clone(),
        networks: vec![NetworkAttachment { name: base::network(wanted), aliases: vec![alias(pod)], ip: String::new() }],
        rollover: Rollover::StopFirst.into(),
        ..Container::default()
    };
    pull(wanted, &mut container, &pod.net_image);
    container
}

fn workload(wanted: &Wanted, repository: &Repository, prefix: &str, shared: &str) -> Container {
    let slug = repository.slug();
    let workspace = Mount {
        source: Some(mount::Source::Volume(format!("{prefix}_{slug}_workspace"))),
        target: "/workspace".into(),
        read_only: false,
    };
    let mut container = Container {
        name: format!("{prefix}_{slug}"),
        image: repository.image.pinned.clone(),
        environment: repository.environment.clone(),
        mounts: vec![workspace],
        network_of: shared.to_owned(),
        rollover: Rollover::StopFirst.into(),
        ..Container::default()
    };
    let files: Vec<_> = repository.secrets.iter().map(|secret| (format!("{secret}_FILE"), secret.clone())).collect();
    mount_secrets(wanted, &mut container, &files);
    pull(wanted, &mut container, &repository.image);
    container
}
