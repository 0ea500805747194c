//! The host agent: verifies a declaration, makes the machine match it, reads back what it wrote, and
//! appends what happened to a log that only grows.

pub mod abilities;
pub mod appliers;
pub mod cli;
pub mod clock;
pub mod config;
pub mod daemon;
pub mod durable;
pub mod host;
pub mod inbox;
pub mod keys;
pub mod ledger;
pub mod link;
pub mod planner;
pub mod policy;
pub mod reporter;

#[cfg(test)]
mod testing;
