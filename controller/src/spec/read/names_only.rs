//! Looks through a whole file for values where names are expected, also in blocks that nobody reads.

use super::{Field, join};
use crate::spec::finding::{Findings, Place};
use crate::spec::yaml::{Node, Value};

/// Refuses values where names are expected in the blocks nobody reads: under every key that ends in `From`.
pub(crate) fn names_only(node: &Node, findings: &mut Findings) {
    match &node.value {
        Value::Null | Value::Scalar { .. } => {}
        Value::Sequence(items) => items.iter().for_each(|item| names_only(item, findings)),
        Value::Mapping(entries) => {
            for entry in entries {
                if entry.key.ends_with("From") {
                    name_only(&entry.key, entry.place, &entry.value, findings);
                } else {
                    names_only(&entry.value, findings);
                }
            }
        }
    }
}

fn name_only(key: &str, place: Place, node: &Node, findings: &mut Findings) {
    match &node.value {
        Value::Null => {}
        // The address of a database is the one thing that may stand there in clear.
        Value::Scalar { text, .. } if key == "restUrlFrom" && text.starts_with("https://") && !text.contains('@') => {}
        Value::Scalar { .. } => {
            Field { path: key.to_owned(), place, node }.secret("NAME", findings);
        }
        Value::Sequence(items) => items.iter().for_each(|item| name_only(key, place, item, findings)),
        Value::Mapping(entries) => {
            for entry in entries {
                name_only(&join(key, &entry.key), entry.place, &entry.value, findings);
            }
        }
    }
}
