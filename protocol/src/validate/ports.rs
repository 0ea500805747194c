//! One host port, one container, and none that came with the machine.

use std::collections::BTreeMap;

use crate::ids::ResourceId;
use crate::resources::{Fault, Resource};
use crate::wire::declaration::{Port, resource};

/// Whether two bindings meet: an empty address binds every one.
fn meet(one: &Port, other: &Port) -> bool {
    let every = |port: &Port| port.host_address.is_empty() || port.host_address == "0.0.0.0";
    one.protocol == other.protocol && (every(one) || every(other) || one.host_address == other.host_address)
}

pub(super) fn faults(resources: &[Resource], carried: &[u32]) -> Vec<(Option<ResourceId>, Fault)> {
    let mut bound: BTreeMap<u32, Vec<(&ResourceId, &Port)>> = BTreeMap::new();
    let mut faults = Vec::new();
    for this in resources {
        let resource::Kind::Container(container) = &this.body else { continue };
        for port in &container.ports {
            let number = port.host_port;
            let others = bound.entry(number).or_default();
            if carried.contains(&number) {
                let problem = format!("binds {number}, which something carried by the machine holds");
                faults.push((Some(this.id.clone()), Fault::new("ports", problem)));
            } else if let Some((first, _)) =
                others.iter().find(|(first, other)| **first != this.id && meet(other, port))
            {
                let problem = format!("binds {number}, which `{first}` binds already");
                faults.push((Some(this.id.clone()), Fault::new("ports", problem)));
            }
            others.push((&this.id, port));
        }
    }
    faults
}
