//! `network`: a network of the container runtime; a name and nothing else.
//!
//! A driver, subnet or gateway would have to be known of the machine it lands on, and two modules that name
//! one would collide.

use super::{Fault, text};
use crate::wire::declaration::Network;

/// Networks the runtime brings itself.
const RUNTIME_OWN: [&str; 3] = ["bridge", "host", "none"];

pub(super) fn faults(network: &Network) -> Vec<Fault> {
    let mut faults = Vec::new();
    text::runtime_name("name", &network.name, &mut faults);
    if RUNTIME_OWN.contains(&network.name.as_str()) {
        faults.push(Fault::new("name", "is a network of the runtime's own (`bridge`, `host`, `none`)"));
    }
    faults
}
