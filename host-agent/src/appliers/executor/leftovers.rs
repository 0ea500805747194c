//! What cut-off steps have left in the container runtime, of which no record speaks and which nothing declared will
//! take up: it bears our labels, and so it is known for the agent's own.
//!
//! Only reads. What somebody else made, or was taken over, bears no label of ours.

use std::collections::BTreeSet;

use replicator_protocol::ids::ResourceId;
use replicator_protocol::resources::{Kind, Resource};
use replicator_protocol::wire::event::Record;

use super::super::applier::{RESOURCE, Tools};
use super::super::container::{IDENTITY, base};
use crate::host::docker::{Listed, RuntimeError, SeenNetwork};
use crate::ledger::projections::resources::Resources;

/// One of them, by the name under which its removal is planned and told.
pub(super) type Leftover = (ResourceId, Record);

/// All of them: containers, then networks with nothing on them but such containers. A runtime that cannot say is
/// asked again at the next full look.
pub(super) async fn find(tools: &Tools, declared: &[Resource], ledger: &Resources) -> Vec<Leftover> {
    match in_runtime(tools, declared, ledger).await {
        Ok(left) => named(left, declared, ledger),
        Err(error) => {
            tracing::debug!(%error, "what steps have left in the runtime could not be told");
            Vec::new()
        }
    }
}

async fn in_runtime(
    tools: &Tools,
    declared: &[Resource],
    ledger: &Resources,
) -> Result<Vec<(String, Record)>, RuntimeError> {
    let docker = &tools.docker;
    let mut left = Vec::new();
    for container in containers(docker.list(tools.host.as_str()).await?, declared, ledger) {
        // One that somebody made from an image of a container of ours bears our labels too.
        let image = docker.image(&container.image_id).await?;
        if image.is_some_and(|image| !tools.is_ours(&image.labels)) {
            left.push(told(Kind::Container, container.name, container.id, container.labels));
        }
    }
    let going: BTreeSet<String> = left.iter().map(|(_, record)| record.target.clone()).collect();
    for network in networks(docker.networks_of(tools.host.as_str()).await?, declared, ledger) {
        let on_it = docker.on_network(&network.id).await?.unwrap_or_default();
        if on_it.iter().all(|name| going.contains(name)) {
            left.push(told(Kind::Network, network.name, network.id, network.labels));
        }
    }
    Ok(left)
}

/// What a record of it would say, and the resource it was made for.
fn told(
    kind: Kind,
    target: String,
    runtime_id: String,
    mut labels: std::collections::BTreeMap<String, String>,
) -> (String, Record) {
    let record = Record { kind: kind.as_str().to_owned(), target, runtime_id, ..Record::default() };
    (labels.remove(RESOURCE).unwrap_or_default(), record)
}

/// The containers that no record speaks of and no declared name takes up.
fn containers(mut listed: Vec<Listed>, declared: &[Resource], ledger: &Resources) -> Vec<Listed> {
    let recorded = recorded(ledger);
    listed.retain(|one| {
        let ours = one.labels.contains_key(IDENTITY) && one.labels.contains_key(RESOURCE);
        ours && !recorded.contains(one.id.as_str()) && !is_declared(declared, Kind::Container, base(&one.name))
    });
    listed
}

/// Likewise the networks.
fn networks(mut seen: Vec<SeenNetwork>, declared: &[Resource], ledger: &Resources) -> Vec<SeenNetwork> {
    let recorded = recorded(ledger);
    seen.retain(|one| {
        let ours = one.labels.contains_key(RESOURCE);
        ours && !recorded.contains(one.id.as_str()) && !is_declared(declared, Kind::Network, &one.name)
    });
    seen
}

fn recorded(ledger: &Resources) -> BTreeSet<&str> {
    let applied = ledger.applied.values();
    let records = applied.flat_map(|applied| std::iter::once(&applied.record).chain(&applied.before));
    records.map(|record| record.runtime_id.as_str()).collect()
}

fn is_declared(declared: &[Resource], kind: Kind, name: &str) -> bool {
    declared.iter().any(|resource| resource.kind() == kind && resource.target() == name)
}

/// Gives each a name that nothing else has in a plan or a report: the resource it was made for, unless that is
/// declared or recorded, for then the name is not free; else one of that module with the beginning of its id.
fn named(left: Vec<(String, Record)>, declared: &[Resource], ledger: &Resources) -> Vec<Leftover> {
    let mut named: Vec<Leftover> = Vec::new();
    for (resource, record) in left {
        let Ok(made_for) = ResourceId::parse(&resource) else { continue };
        let id = record.runtime_id.get(..12).unwrap_or(&record.runtime_id);
        let Ok(other) = ResourceId::parse(&format!("{}.left-{id}", made_for.module)) else { continue };
        let free = |name: &ResourceId| {
            let known = ledger.applied.contains_key(&name.to_string()) || named.iter().any(|(taken, _)| taken == name);
            !known && declared.iter().all(|resource| resource.id != *name)
        };
        let free = [made_for, other].into_iter().find(free);
        named.extend(free.map(|name| (name, record)));
    }
    named
}

#[cfg(test)]
mod tests;
