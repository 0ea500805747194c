//! Secrets by name: kept encrypted, handed out to be sealed, and masked wherever something is printed.
//!
//! Comes in: values on standard input. Goes out: a value to the sealing, names to everyone else.

pub mod needed;
pub mod store;

pub use needed::{Missing, Need};
pub use store::{Kept, SecretStore, Set, StoreError};
