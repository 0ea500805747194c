//! The host spec: what one machine should be, in a file that holds no secret.
//!
//! Comes in: `hosts/<id>.yml`. Goes out: a [`HostSpec`], or every fault of the file at once, each with its line.
//! Never resolves a name, never touches the network.

pub mod names;
pub mod schema;

pub use schema::{Compute, Dns, Gateway, HostSpec, Ingress};
