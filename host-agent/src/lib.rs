//! The host agent: verifies a declaration, makes the machine match it, reads back what it wrote, and
//! appends what happened to a log that only grows.

pub mod cli;
pub mod clock;
pub mod config;
pub mod daemon;
pub mod durable;
pub mod inbox;
pub mod keys;
pub mod ledger;
pub mod link;
pub mod reporter;

#[cfg(test)]
mod testing;
