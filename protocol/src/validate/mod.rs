//! Rules over all resources of a declaration together: names, references, ports.

mod names;
mod ports;
mod references;

use crate::ids::ResourceId;
use crate::resources::{Fault, Resource};

/// Every fault that only shows when resources are seen side by side.
pub(crate) fn faults(resources: &[Resource], carried_ports: &[u32]) -> Vec<(Option<ResourceId>, Fault)> {
    let mut faults = names::faults(resources);
    faults.extend(references::faults(resources));
    faults.extend(ports::faults(resources, carried_ports));
    faults
}
