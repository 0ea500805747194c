//! No two resources with one name, and no two that stand for one thing on the machine.

use std::collections::BTreeMap;

use crate::ids::ResourceId;
use crate::resources::{Fault, Kind, Resource};

/// Files and folders share one name space, and so do each of the runtime's object types.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Space {
    Path,
    Runtime(Kind),
}

fn space(kind: Kind) -> Space {
    if kind.has_path() { Space::Path } else { Space::Runtime(kind) }
}

pub(super) fn faults(resources: &[Resource]) -> Vec<(Option<ResourceId>, Fault)> {
    let mut ids = BTreeMap::new();
    let mut targets = BTreeMap::new();
    let mut faults = Vec::new();
    for resource in resources {
        if ids.insert(&resource.id, ()).is_some() {
            faults.push((Some(resource.id.clone()), Fault::new("name", "stands twice in its module")));
        }
        let target = (space(resource.kind()), resource.target());
        if let Some(first) = targets.insert(target, &resource.id) {
            let problem = format!("is the {} that `{first}` stands for already", resource.kind());
            faults.push((Some(resource.id.clone()), Fault::new("name", problem)));
        }
    }
    faults
}
