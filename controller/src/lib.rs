//! The controller: reads host specs and fleet files, compiles, seals, signs and publishes declarations,
//! and collects what hosts report.

pub mod cli;
pub mod home;
pub mod secrets;
pub mod state;
