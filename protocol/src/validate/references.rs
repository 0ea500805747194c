//! What a resource names must stand before it: order is declaration order, and nothing waits for what comes.

use std::collections::{BTreeMap, BTreeSet};

use crate::ids::ResourceId;
use crate::resources::{Fault, Kind, Resource};
use crate::wire::declaration::{Container, file, resource};

pub(super) fn faults(resources: &[Resource]) -> Vec<(Option<ResourceId>, Fault)> {
    let positions: BTreeMap<(Kind, &str), usize> =
        resources.iter().enumerate().map(|(at, other)| ((other.kind(), other.target()), at)).collect();
    let mut before = BTreeSet::new();
    let mut faults = Vec::new();
    for (at, this) in resources.iter().enumerate() {
        if let resource::Kind::Container(container) = &this.body {
            let found = named(container).into_iter().filter_map(|(field, kind, name)| {
                let problem = match positions.get(&(kind, name)) {
                    Some(other) if *other < at => return None,
                    Some(_) => format!("names the {kind} `{name}`, which is declared after it"),
                    None => format!("names the {kind} `{name}`, which is not declared"),
                };
                Some(Fault::new(field, problem))
            });
            let found = found.chain(dependencies(container, &before)).chain(shown(container, resources));
            faults.extend(found.map(|fault| (Some(this.id.clone()), fault)));
        }
        before.insert(&this.id);
    }
    faults
}

fn named(container: &Container) -> Vec<(&'static str, Kind, &str)> {
    let mut named: Vec<_> =
        container.networks.iter().map(|network| ("networks", Kind::Network, network.name.as_str())).collect();
    if !container.network_of.is_empty() {
        named.push(("network_of", Kind::Container, &container.network_of));
    }
    named
}

fn dependencies<'c>(
    container: &'c Container,
    before: &'c BTreeSet<&ResourceId>,
) -> impl Iterator<Item = Fault> + use<'c> {
    let restart = container.restart_on.iter().map(|name| ("restart_on", name));
    let reload = container.reload_on.iter().map(|name| ("reload_on", name));
    restart.chain(reload).filter_map(|(field, name)| {
        // Text that is no resource is a fault of the field itself.
        let id = ResourceId::parse(name).ok()?;
        (!before.contains(&id)).then(|| Fault::new(field, format!("names `{id}`, which is not declared before it")))
    })
}

/// Environment files that hold a secret, which `inspect` of the container would show to whoever may ask.
fn shown<'c>(container: &'c Container, resources: &'c [Resource]) -> impl Iterator<Item = Fault> + use<'c> {
    let holds_secret = |path: &str| {
        resources.iter().any(|other| match &other.body {
            resource::Kind::File(file) => {
                file.path == path && (!file.secrets.is_empty() || matches!(file.body, Some(file::Body::Sealed(_))))
            }
            resource::Kind::Directory(_) | resource::Kind::Network(_) | resource::Kind::Container(_) => false,
        })
    };
    let hidden = container.environment_files.iter().filter(|path| !container.exposed_environment.contains(path));
    hidden.filter(move |path| holds_secret(path)).map(|path| {
        let problem = format!(
            "names `{path}`, which holds a secret and would be visible to `docker inspect`; mount it as a file, or \
             agree by listing it under `exposed_environment`"
        );
        Fault::new("environment_files", problem)
    })
}
