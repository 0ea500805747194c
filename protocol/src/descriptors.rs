//! What the `.proto` files say of themselves, for tests that must see every field.

use std::collections::{BTreeMap, BTreeSet};

use prost::Message as _;

/// The descriptors the messages were generated from.
const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));

/// The little of `google.protobuf.FileDescriptorSet` that names messages, their fields, and the types of these.
#[derive(Clone, PartialEq, prost::Message)]
struct Set {
    #[prost(message, repeated, tag = "1")]
    file: Vec<Document>,
}
#[derive(Clone, PartialEq, prost::Message)]
struct Document {
    #[prost(string, tag = "2")]
    package: String,
    #[prost(message, repeated, tag = "4")]
    message: Vec<Described>,
}
#[derive(Clone, PartialEq, prost::Message)]
struct Described {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, repeated, tag = "2")]
    field: Vec<Field>,
    #[prost(message, repeated, tag = "3")]
    nested: Vec<Described>,
}
#[derive(Clone, PartialEq, prost::Message)]
struct Field {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "6")]
    message: String,
}

/// The names of the fields of `message`.
pub(crate) fn fields(message: &str) -> BTreeSet<String> {
    let set = Set::decode(DESCRIPTORS).unwrap();
    let found = set.file.iter().flat_map(|file| &file.message).find(|described| described.name == message).unwrap();
    found.field.iter().map(|field| field.name.clone()).collect()
}

/// How deep each message nests, itself counted, by its full name.
///
/// # Panics
///
/// Where one can hold itself: it would nest without end.
pub(crate) fn depths() -> BTreeMap<String, usize> {
    let mut parts = BTreeMap::new();
    for file in Set::decode(DESCRIPTORS).unwrap().file {
        let package = format!(".{}", file.package);
        file.message.iter().for_each(|message| collect(&package, message, &mut parts));
    }
    parts.keys().map(|name| (name.clone(), depth(name, &parts, &mut Vec::new()))).collect()
}

fn collect(within: &str, message: &Described, parts: &mut BTreeMap<String, Vec<String>>) {
    let name = format!("{within}.{}", message.name);
    message.nested.iter().for_each(|nested| collect(&name, nested, parts));
    let held = message.field.iter().map(|field| field.message.clone()).filter(|held| !held.is_empty());
    parts.insert(name, held.collect());
}

fn depth(name: &str, parts: &BTreeMap<String, Vec<String>>, above: &mut Vec<String>) -> usize {
    assert!(!above.contains(&name.to_owned()), "`{name}` can hold itself: {above:?}");
    above.push(name.to_owned());
    let below = parts.get(name).into_iter().flatten().map(|held| depth(held, parts, above)).max().unwrap_or(0);
    above.pop();
    below + 1
}
