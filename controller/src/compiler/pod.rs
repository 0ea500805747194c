//! The `pod.DEVELOPER` modules: a container that holds the network, and one for each repository sharing it.

use replicator_protocol::resources::Resource;
use replicator_protocol::wire::declaration::{Container, Mount, NetworkAttachment, Rollover, mount, resource};

use super::base;
use super::error::{CompileError, named};
use super::files::{self, SecretFile};
use super::intent::{Place, Pod, Repository, Wanted};
use crate::fleet::NET;
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
        let slug = repository.repository.label();
        let routed = repository.ports.clone().into_iter().filter(|route| route.public);
        let place = move |port: u16, signed_in: bool| Place {
            host: format!("{slug}-{port}--{}.{}", pod.developer, wanted.zone),
            alias: alias(pod),
            port,
            signed_in,
            route: Some((pod.developer.clone(), slug.to_string())),
        };
        routed.map(move |route| place(route.port, route.signed_in)).collect::<Vec<_>>()
    };
    pod.repositories.iter().flat_map(of).collect()
}

pub(super) fn compile(wanted: &Wanted, pod: &Pod) -> Result<Vec<Resource>, CompileError> {
    let module = format!("pod.{}", pod.developer);
    let prefix = format!("{}_{}", wanted.name_prefix, pod.developer);
    let net = net(wanted, pod, format!("{prefix}_{NET}"));
    let shared = net.name.clone();
    let mut resources = vec![named(&module, NET, resource::Kind::Container(net))?];
    for repository in &pod.repositories {
        let label = repository.repository.label();
        let mut container = workload(repository, &prefix, &shared);
        let read: Vec<_> = repository.secrets.iter().map(SecretFile::named_after).collect();
        let at = (module.as_str(), label.as_str());
        resources.extend(files::mount(wanted, at, &mut container, &repository.image, &read)?);
        resources.push(named(&module, label.as_str(), resource::Kind::Container(container))?);
    }
    Ok(resources)
}

fn net(wanted: &Wanted, pod: &Pod, name: String) -> Container {
    Container {
        name,
        image: pod.net_image.pinned.clone(),
        hostname: pod.developer.clone(),
        networks: vec![NetworkAttachment { name: base::network(wanted), aliases: vec![alias(pod)], ip: String::new() }],
        rollover: Rollover::StopFirst.into(),
        ..Container::default()
    }
}

fn workload(repository: &Repository, prefix: &str, shared: &str) -> Container {
    let slug = repository.repository.label();
    let workspace = Mount {
        source: Some(mount::Source::Volume(format!("{prefix}_{slug}_workspace"))),
        target: "/workspace".into(),
        read_only: false,
    };
    Container {
        name: format!("{prefix}_{slug}"),
        image: repository.image.pinned.clone(),
        environment: repository.environment.clone(),
        mounts: vec![workspace],
        network_of: shared.to_owned(),
        rollover: Rollover::StopFirst.into(),
        ..Container::default()
    }
}
