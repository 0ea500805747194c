//! Records of an earlier way of computing digests, read as this one computes them. Pure.
//!
//! Until algorithm 2 the environment of a container was one field; now each variable is one. Where what is declared
//! gives the digest that was recorded, the record says the same in the present way.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use prost::Message as _;
use replicator_protocol::change::Facts;
use replicator_protocol::resources::{Kind, Resource};
use replicator_protocol::wire::declaration::{Container, resource};
use replicator_protocol::wire::event::Record;

use crate::ledger::projections::resources::{ALGORITHM, Resources};

/// The way in which an environment was one field.
const ONE_ENVIRONMENT: u32 = 1;
/// That field, and the prefix of those that took its place.
const ENVIRONMENT: &str = "environment";

/// Has every record of a declared container that algorithm 1 made speak in the words of `wanted`, the facts of
/// `resources` in their order. One that says something else keeps its field, which is then told as changed.
pub fn translate(
    resources: &[Resource],
    wanted: &[Facts<Bytes>],
    ledger: &mut Arc<Resources>,
    digest: impl Fn(&[u8]) -> Bytes,
) {
    for (resource, wanted) in resources.iter().zip(wanted) {
        let resource::Kind::Container(declared) = &resource.body else { continue };
        let name = resource.id.to_string();
        let is_earlier =
            |record: &Record| record.algorithm == ONE_ENVIRONMENT && record.kind == Kind::Container.as_str();
        if !ledger.applied.get(&name).is_some_and(|applied| is_earlier(&applied.record)) {
            continue;
        }
        let Some(applied) = Arc::make_mut(ledger).applied.get_mut(&name) else { continue };
        let record = &mut applied.record;
        record.algorithm = ALGORITHM;
        let whole = Container { environment: declared.environment.clone(), ..Container::default() };
        if record.fields.get(ENVIRONMENT) == Some(&digest(&whole.encode_to_vec())) {
            record.fields.remove(ENVIRONMENT);
            record.fields.extend(variables(&wanted.fields));
        }
    }
}

fn variables(fields: &BTreeMap<String, Bytes>) -> BTreeMap<String, Bytes> {
    let is_variable = |name: &str| name.split_once('/').is_some_and(|(field, _)| field == ENVIRONMENT);
    fields.iter().filter(|(name, _)| is_variable(name)).map(|(name, digest)| (name.clone(), digest.clone())).collect()
}
