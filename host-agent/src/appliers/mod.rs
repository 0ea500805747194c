//! Making it so: one file for each kind, and the walk over a whole declaration.
//!
//! A declaration in force comes in; a report goes out, and every step is in the ledger before it is taken and
//! after it. Each kind has the same steps ([`applier::Applier`]); deciding what to do is the planner's.

pub mod applier;
mod bounds;
mod container;
mod directory;
mod executor;
mod failure;
mod file;
mod kept;
mod network;
mod order;

pub use executor::Executor;
pub use failure::{FailureCode, failure};
