//! What is known of the resources on a host: folded from what was declared and what was reported of it.
//!
//! A resource is as the last declaration said whose apply reported it done; one that failed, was skipped or
//! held is as it was before.

use std::collections::BTreeMap;

use bytes::Bytes;
use prost::Message as _;
use replicator_protocol::change::{self, Facts};
use replicator_protocol::declaration::Declaration;
use replicator_protocol::ids::ResourceId;
use replicator_protocol::refusal::{Code, Refusal};
use replicator_protocol::resources::{Kind, Resource};
use replicator_protocol::strict;
use replicator_protocol::wire;
use replicator_protocol::wire::event::{ApplyReported, Outcome, ResourceResult};

/// One resource as it is known to be.
#[derive(Debug, Clone, PartialEq)]
pub struct Known {
    /// As it was declared.
    pub resource: Resource,
    /// What it is compared by, with the files and dependencies of that declaration.
    pub facts: Facts<Vec<u8>>,
    /// Its place in that declaration.
    pub position: usize,
}

/// Reads the declaration in one of our own envelopes: it comes from the log, which opens with our key only.
///
/// # Errors
///
/// [`Refusal`] where it is none.
pub fn declared(envelope: &Bytes) -> Result<Declaration, Refusal> {
    let envelope =
        wire::envelope::Envelope::decode(envelope.clone()).map_err(|_| Refusal::new(Code::MalformedEnvelope))?;
    Declaration::from_wire(&strict::decode(&envelope.payload)?)
}

/// The facts of the resource at `at`, with the content of what it takes in and all of what it depends on.
pub fn facts(resources: &[Resource], at: usize) -> Option<Facts<Vec<u8>>> {
    let resource = resources.get(at)?;
    let mut facts = Facts::of(resource, <[u8]>::to_vec);
    for path in change::inputs(resource) {
        let file = resources.iter().find(|other| other.kind() == Kind::File && other.target() == path);
        facts.inputs.extend(file.map(|file| (path.to_owned(), change::content(file))));
    }
    if let wire::declaration::resource::Kind::Container(container) = &resource.body {
        for (names, found) in
            [(&container.restart_on, &mut facts.restart_on), (&container.reload_on, &mut facts.reload_on)]
        {
            let named = |name: &String| resources.iter().find(|other| other.id.to_string() == *name);
            found.extend(names.iter().filter_map(|name| Some((name.clone(), whole(named(name)?)))));
        }
    }
    Some(facts)
}

/// All of a resource, as a dependency sees it.
fn whole(resource: &Resource) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in change::fields(resource) {
        for part in [name.as_bytes(), &value] {
            out.extend_from_slice(&(part.len() as u64).to_be_bytes());
            out.extend_from_slice(part);
        }
    }
    out
}

/// What is known after `report` on `declaration` came in.
#[must_use]
pub fn after(
    mut known: BTreeMap<ResourceId, Known>,
    declaration: &Declaration,
    report: &ApplyReported,
) -> BTreeMap<ResourceId, Known> {
    for result in &report.results {
        let Ok(id) = ResourceId::parse(&result.resource) else { continue };
        match outcome(result) {
            Outcome::Changed | Outcome::Unchanged => {
                let at = declaration.resources.iter().position(|resource| resource.id == id);
                let found =
                    at.and_then(|at| Some((at, declaration.resources.get(at)?, facts(&declaration.resources, at)?)));
                if let Some((position, resource, facts)) = found {
                    known.insert(id, Known { resource: resource.clone(), facts, position });
                }
            }
            // A network that something still uses is tried again; everything else that is kept is forgotten.
            Outcome::Kept if known.get(&id).is_some_and(|known| known.facts.kind == Kind::Network) => {}
            Outcome::Removed | Outcome::Kept => {
                known.remove(&id);
            }
            Outcome::Failed | Outcome::Skipped | Outcome::Held | Outcome::Unspecified => {}
        }
    }
    known
}

fn outcome(result: &ResourceResult) -> Outcome {
    Outcome::try_from(result.outcome).unwrap_or(Outcome::Unspecified)
}
