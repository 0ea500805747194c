//! The controller: reads host specs, compiles, seals, signs and publishes declarations, and collects
//! what hosts report. The library does the work and never prints; `main.rs` and `cli` speak to people.

pub mod bootstrap;
pub mod cli;
pub mod compiler;
pub mod fleet;
pub mod keys;
pub mod planner;
pub mod projections;
pub mod publisher;
pub mod secrets;
pub mod serve;
pub mod spec;
pub mod state;
