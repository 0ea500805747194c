//! From nodes to types: closed blocks, and one reader for each kind of field.
//!
//! Every reader reports what is wrong and returns nothing; the caller goes on, so that all faults are found.

mod field;
mod names_only;
mod surprise;

use std::collections::BTreeMap;
use std::fmt::Display;

pub(crate) use field::Field;
pub(crate) use names_only::names_only;

use super::credential;
use super::finding::{Code, Findings, Place, nearest, quoted};
use super::yaml::{Entry, Node};
use crate::words;

/// A key of a block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Key {
    /// How it is written.
    pub(crate) name: &'static str,
    /// What becomes of it.
    pub(crate) status: Status,
}

/// What becomes of a key.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Status {
    /// It is read.
    Offered,
    /// It belongs to the format, and this version does not do it; says what can be done instead.
    NotOffered(&'static str),
    /// It has another name today.
    Renamed(&'static str),
}

/// A key that is read.
pub(crate) const fn key(name: &'static str) -> Key {
    Key { name, status: Status::Offered }
}

/// A key this version does not offer, and what to do instead.
pub(crate) const fn later(name: &'static str, instead: &'static str) -> Key {
    Key { name, status: Status::NotOffered(instead) }
}

/// A key that has another name today.
pub(crate) const fn renamed(name: &'static str, today: &'static str) -> Key {
    Key { name, status: Status::Renamed(today) }
}

/// A word a field may hold.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Word {
    name: &'static str,
    offered: bool,
}

/// A word that is taken.
pub(crate) const fn word(name: &'static str) -> Word {
    Word { name, offered: true }
}

/// A word of the format that this version does not offer.
pub(crate) const fn later_word(name: &'static str) -> Word {
    Word { name, offered: false }
}

/// A mapping whose keys are all known.
pub(crate) struct Block<'a> {
    path: String,
    place: Place,
    keys: &'static [Key],
    entries: &'a [Entry],
}

impl<'a> Block<'a> {
    /// Opens the whole file.
    pub(crate) fn root(node: &'a Node, keys: &'static [Key], findings: &mut Findings) -> Option<Self> {
        Field { path: String::new(), node, place: node.place }.block(keys, findings)
    }

    /// The field under `name`, where it is written.
    pub(crate) fn get(&self, name: &str) -> Option<Field<'a>> {
        let entry = self.entries.iter().find(|entry| entry.key == name)?;
        Some(Field { path: self.path_of(name), node: &entry.value, place: entry.place })
    }

    /// The field under `name`; where it is absent, that is a fault, and `example` what to write.
    pub(crate) fn require(&self, name: &str, example: &str, findings: &mut Findings) -> Option<Field<'a>> {
        let field = self.get(name);
        if field.is_none() {
            let says = format!("lacks `{}`", self.path_of(name));
            findings.fault(Code::MissingKey, self.place, says, format!("write `{name}: {example}` there"));
        }
        field
    }

    fn path_of(&self, name: &str) -> String {
        join(&self.path, name)
    }

    fn check_keys(&self, findings: &mut Findings) {
        let known = || self.keys.iter().map(|key| key.name);
        for entry in self.entries {
            findings.remember(self.path_of(&entry.key), entry.place);
            let path = || self.path_of(&entry.key);
            match self.keys.iter().find(|key| key.name == entry.key).map(|key| key.status) {
                Some(Status::Offered) => {}
                Some(Status::NotOffered(instead)) => {
                    let says = format!("has `{}`, which is not offered by this version", path());
                    findings.fault(Code::NotOffered, entry.place, says, instead);
                }
                Some(Status::Renamed(today)) => {
                    let says = format!("has `{}`, which is called `{today}` today", path());
                    findings.fault(Code::RenamedKey, entry.place, says, format!("write `{today}` in its place"));
                }
                // The merge key has a finding of its own.
                None if entry.key == "<<" => {}
                None => {
                    let meant = nearest(&entry.key, known());
                    let meant = meant.map(|meant| format!("; did you mean `{meant}`?")).unwrap_or_default();
                    let says = format!("has an unknown key {}{meant}", quoted(&entry.key));
                    let of = if self.path.is_empty() { "the file".into() } else { format!("`{}`", self.path) };
                    let hint = format!("the keys of {of} are {}", offered(self.keys));
                    findings.fault(Code::UnknownKey, entry.place, says, hint);
                }
            }
        }
    }
}

/// Those of `keys` that are read, in words.
fn offered(keys: &[Key]) -> String {
    words::listed(keys.iter().filter(|key| matches!(key.status, Status::Offered)).map(|key| key.name))
}

/// Reports every value that stands more than once in a list that must hold each once.
pub(crate) fn once<T: Ord + Display>(items: impl IntoIterator<Item = (T, String)>, findings: &mut Findings) {
    let mut seen: BTreeMap<T, String> = BTreeMap::new();
    for (item, path) in items {
        if let Some(first) = seen.get(&item) {
            let first = findings.place(first).line;
            let says = format!("gives `{item}` a second time (`{path}`)");
            findings.fault(
                Code::Conflict,
                findings.place(&path),
                says,
                format!("keep one of them; the first is on line {first}"),
            );
        } else {
            seen.insert(item, path);
        }
    }
}

fn join(path: &str, name: &str) -> String {
    // Keys of the writer's choice stand in messages as parts of a path; one that may be a secret does not.
    let strange = credential::kind(name).is_some() || credential::is_random(name) || name.contains(char::is_control);
    let name = if strange { "…" } else { name };
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}
