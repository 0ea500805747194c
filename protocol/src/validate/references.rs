//! What a resource names must stand before it: order is declaration order, and nothing waits for what comes.

use std::collections::{BTreeMap, BTreeSet};

use crate::ids::ResourceId;
use crate::resources::{Fault, Kind, Resource};
use crate::wire::declaration::{Container, resource};

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
            let found = found.chain(dependencies(container, &before));
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
