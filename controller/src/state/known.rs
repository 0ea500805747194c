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
use replicator_protocol::resources::Resource;
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
    /// Its place in that report, which the host knows too: resources are removed in the reverse of this order.
    pub place: usize,
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

/// What is known after `report` on `declaration` came in.
#[must_use]
pub fn after(
    mut known: BTreeMap<ResourceId, Known>,
    declaration: &Declaration,
    report: &ApplyReported,
) -> BTreeMap<ResourceId, Known> {
    let wanted = change::wanted(&declaration.resources, <[u8]>::to_vec);
    for (place, result) in report.results.iter().enumerate() {
        let Ok(id) = ResourceId::parse(&result.resource) else { continue };
        match outcome(result) {
            Outcome::Changed | Outcome::Unchanged => {
                let at = declaration.resources.iter().position(|resource| resource.id == id);
                if let Some((at, facts)) = at.and_then(|at| Some((at, wanted.get(at)?.clone()))) {
                    known.insert(id, Known { resource: declaration.resources[at].clone(), facts, place });
                }
            }
            // What is kept is forgotten by the host too.
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
