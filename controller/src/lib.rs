//! The controller: reads host specs and fleet files, compiles, seals, signs and publishes declarations,
//! and collects what hosts report.

pub mod beside;
pub mod bootstrap;
pub mod cli;
pub mod compiler;
pub mod fleet;
pub mod home;
pub mod keys;
pub mod link;
pub mod planner;
pub mod point;
pub mod projections;
pub mod publisher;
pub mod secrets;
pub mod serve;
pub mod spec;
pub mod state;
pub mod words;
