//! The fleet file: which repositories run for which developers, on which host.
//!
//! Comes in: `clanker.yml`, or `factory.yml` where the first is absent. Goes out: a [`FleetFile`], or every fault
//! of the file at once. Never resolves a name, never touches the network.

pub mod schema;

pub use schema::{Auth, Developer, Env, FleetFile, HostRequirements, Port, Repo};
