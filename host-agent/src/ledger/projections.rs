//! Answers folded from the ledger's events. Any of them may be deleted at any time and is folded again.
//!
//! Events are dropped one day; what they fold to is kept in a checkpoint. An answer therefore has a bound of its own.

mod applies;
pub mod resources;
mod status;
mod store;

use replicator_protocol::wire::event::Event;

pub use applies::{Applies, Apply};
pub use status::{Accepted, Refused, ResourceStatus, Status};
pub use store::{ProjectionError, Projections, status_at};

/// An answer that is a fold over events: the same events give the same answer, byte for byte.
pub trait Fold {
    /// Takes one event, the next in order.
    fn fold(&mut self, event: &Event);
}
