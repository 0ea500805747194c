//! The collector: what hosts say is verified, stored, and only then receipted; and a broker that lost something
//! is given it again.
//!
//! Comes in: batches of events and heartbeats from the broker. Goes out: `events.db`, signed receipts, figures
//! for whoever watches. It never decides what a host should be.

pub mod chain;
mod collector;
mod heartbeats;
mod http;
mod keys;
mod metrics;
mod refill;
pub mod service;
pub mod store;

pub use service::{ServeError, Settings, serve};
pub use store::{Store, StoreError};
