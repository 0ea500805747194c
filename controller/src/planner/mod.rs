//! What a declaration would change on a host, before it is issued; pure.
//!
//! Comes in: what is known of the host's resources, and what was compiled. Goes out: steps, by the same
//! comparison the agent makes, so that a plan read as data equals the report of the apply that follows.

mod data;
mod diff;
mod hints;
mod report;
mod words;

use replicator_protocol::change::{self, Facts, Step};
use replicator_protocol::ids::{Digest, Position, ResourceId};

pub use data::{PlanData, ReasonData, ReportData, ResultData, StepData};
pub use hints::hint;
pub use report::{Counts, Unwell, report_text};

use crate::compiler::{Compiled, Place};
use crate::secrets::Need;
use crate::state::HostState;

/// Separates plan ids from every other digest.
const PLAN: &[u8] = b"replicator plan v1\0";

/// What would be done.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// One for each declared resource, in order, then the removals.
    pub steps: Vec<Step>,
    /// The number the declaration would get.
    pub next: Position,
    /// The last declaration whose report was seen: what the steps start from.
    pub applied: Option<Position>,
    /// Over what is asked for and what it starts from: equal exactly while nothing moved.
    pub id: Digest,
    /// The public names.
    pub places: Vec<Place>,
    /// The secrets it takes, with a reason each.
    pub needs: Vec<Need>,
}

/// Plans the way from what is known to what was compiled. `head` is the number of the log's last entry.
#[must_use]
pub fn plan(state: &HostState, head: u64, compiled: &Compiled, intent: &Digest, needs: Vec<Need>) -> Plan {
    let applied = state.reported.as_ref().map(|reported| reported.position);
    let wanted = change::wanted(&compiled.resources, <[u8]>::to_vec);
    Plan {
        steps: change::plan(&known(state), &compiled.resources, &wanted),
        next: state.next_position(),
        applied,
        id: id(intent, head, applied),
        places: compiled.places.clone(),
        needs,
    }
}

/// What is known, in the order it was applied.
fn known(state: &HostState) -> Vec<(ResourceId, Facts<Vec<u8>>)> {
    let mut known: Vec<_> = state.known.iter().collect();
    // Stable: those of one place stay by name, as the host has them.
    known.sort_by_key(|(_, one)| one.place);
    known.into_iter().map(|(id, one)| (id.clone(), one.facts.clone())).collect()
}

/// The plan's name: over the intent, the log's head and the sequence applied last.
#[must_use]
pub fn id(intent: &Digest, head: u64, applied: Option<Position>) -> Digest {
    let applied = applied.unwrap_or(Position { epoch: 0, sequence: 0 });
    let numbers = [head, applied.epoch, applied.sequence].map(u64::to_be_bytes).concat();
    Digest::of(&[PLAN, &intent.0, &numbers].concat())
}

#[cfg(test)]
mod tests;
