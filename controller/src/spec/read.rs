//! From nodes to types: closed blocks, and one reader for each kind of field.
//!
//! Every reader reports what is wrong and returns nothing; the caller goes on, so that all faults are found.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::rc::Rc;

use replicator_protocol::ids::SecretName;

use super::credential;
use super::finding::{Code, Place, Report, nearest, quoted};
use super::yaml::{CREDENTIAL_HINT, Entry, Node, Value};

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
    pub(crate) fn root(node: &'a Node, keys: &'static [Key], report: &mut Report) -> Option<Self> {
        Field { path: String::new(), node, place: node.place }.block(keys, report)
    }

    /// The field under `name`, where it is written.
    pub(crate) fn get(&self, name: &str) -> Option<Field<'a>> {
        let entry = self.entries.iter().find(|entry| entry.key == name)?;
        Some(Field { path: self.path_of(name), node: &entry.value, place: entry.place })
    }

    /// The field under `name`; where it is absent, that is a fault, and `example` what to write.
    pub(crate) fn require(&self, name: &str, example: &str, report: &mut Report) -> Option<Field<'a>> {
        let field = self.get(name);
        if field.is_none() {
            let says = format!("lacks `{}`", self.path_of(name));
            report.fault(Code::MissingKey, self.place, says, format!("write `{name}: {example}` there"));
        }
        field
    }

    fn path_of(&self, name: &str) -> String {
        join(&self.path, name)
    }

    fn check_keys(&self, report: &mut Report) {
        let known = || self.keys.iter().map(|key| key.name);
        for entry in self.entries {
            report.remember(self.path_of(&entry.key), entry.place);
            let path = || self.path_of(&entry.key);
            match self.keys.iter().find(|key| key.name == entry.key).map(|key| key.status) {
                Some(Status::Offered) => {}
                Some(Status::NotOffered(instead)) => {
                    let says = format!("has `{}`, which is not offered by this version", path());
                    report.fault(Code::NotOffered, entry.place, says, instead);
                }
                Some(Status::Renamed(today)) => {
                    let says = format!("has `{}`, which is called `{today}` today", path());
                    report.fault(Code::RenamedKey, entry.place, says, format!("write `{today}` in its place"));
                }
                // The merge key has a finding of its own.
                None if entry.key == "<<" => {}
                None => {
                    let meant = nearest(&entry.key, known());
                    let meant = meant.map(|meant| format!("; did you mean `{meant}`?")).unwrap_or_default();
                    let says = format!("has an unknown key {}{meant}", quoted(&entry.key));
                    let offered = self.keys.iter().filter(|key| matches!(key.status, Status::Offered));
                    let offered: Vec<_> = offered.map(|key| format!("`{}`", key.name)).collect();
                    let of = if self.path.is_empty() { "the file".into() } else { format!("`{}`", self.path) };
                    let hint = format!("the keys of {of} are {}", offered.join(", "));
                    report.fault(Code::UnknownKey, entry.place, says, hint);
                }
            }
        }
    }
}

/// A value with its path and the place of its key.
#[derive(Clone)]
pub(crate) struct Field<'a> {
    /// How it is reached, as `compute.existingHost.address`.
    pub(crate) path: String,
    /// Where its key stands.
    pub(crate) place: Place,
    node: &'a Node,
}

impl<'a> Field<'a> {
    fn name(&self) -> &str {
        self.path.rsplit('.').next().unwrap_or_default()
    }

    fn wrong_type(&self, expected: &str, report: &mut Report) {
        let path = if self.path.is_empty() { "the file" } else { &self.path };
        let says = format!("gives {} where {expected} is expected (`{path}`)", self.node.kind());
        let hint = match &self.node.value {
            Value::Null => format!("give `{path}` its value, or remove the key"),
            Value::Scalar { .. } | Value::Sequence(_) | Value::Mapping(_) => format!("write {expected}"),
        };
        report.fault(Code::WrongType, self.node.place, says, hint);
    }

    /// A fault at the value.
    pub(crate) fn fault(&self, code: Code, says: impl Into<String>, hint: impl Into<String>, report: &mut Report) {
        report.fault(code, self.node.place, says, hint);
    }

    /// Whether it has keys of its own.
    pub(crate) fn is_mapping(&self) -> bool {
        matches!(self.node.value, Value::Mapping(_))
    }

    /// A mapping with known keys only.
    pub(crate) fn block(&self, keys: &'static [Key], report: &mut Report) -> Option<Block<'a>> {
        let Value::Mapping(entries) = &self.node.value else {
            self.wrong_type("a mapping", report);
            return None;
        };
        let block = Block { path: self.path.clone(), place: self.place, keys, entries };
        block.check_keys(report);
        Some(block)
    }

    /// A mapping with keys of the writer's choice.
    pub(crate) fn entries(&self, report: &mut Report) -> Option<Vec<(&'a str, Field<'a>)>> {
        let Value::Mapping(entries) = &self.node.value else {
            self.wrong_type("a mapping", report);
            return None;
        };
        let field = |entry: &'a Entry| {
            let path = join(&self.path, &entry.key);
            (entry.key.as_str(), Field { path, node: &entry.value, place: entry.place })
        };
        Some(entries.iter().map(field).collect())
    }

    /// A list.
    pub(crate) fn list(&self, report: &mut Report) -> Option<Vec<Field<'a>>> {
        let Value::Sequence(items) = &self.node.value else {
            self.wrong_type("a list", report);
            return None;
        };
        let item = |(index, node): (usize, &'a Rc<Node>)| {
            let path = format!("{}[{index}]", self.path);
            report.remember(path.clone(), node.place);
            Field { path, node, place: node.place }
        };
        Some(items.iter().enumerate().map(item).collect())
    }

    /// Text. What YAML takes for something else must stand in quotes.
    pub(crate) fn text(&self, report: &mut Report) -> Option<&'a str> {
        let Value::Scalar { text, plain } = &self.node.value else {
            self.wrong_type("text", report);
            return None;
        };
        if *plain && let Some(reading) = surprise(text) {
            let says = format!("gives `{text}` without quotes, which YAML reads as {reading} (`{}`)", self.path);
            let lead = if self.path.ends_with(']') { "-".into() } else { format!("{}:", self.name()) };
            self.fault(Code::NeedsQuotes, says, format!("write `{lead} \"{text}\"`"), report);
            return None;
        }
        Some(text)
    }

    /// Text of a form of its own.
    pub(crate) fn parsed<T, E: Display>(&self, parse: impl Fn(&str) -> Result<T, E>, report: &mut Report) -> Option<T> {
        let text = self.text(report)?;
        match parse(text) {
            Ok(value) => Some(value),
            Err(error) => {
                let error = error.to_string();
                let (wrong, expected) = error.split_once(": expected ").unwrap_or((&error, "another value"));
                // Names of the protocol say `not a …`, those of a file `is no …`.
                let wrong =
                    wrong.strip_prefix("not a ").map_or_else(|| wrong.to_owned(), |what| format!("is no {what}"));
                let says = format!("gives {}, which {wrong} (`{}`)", quoted(text), self.path);
                self.fault(Code::InvalidValue, says, format!("write {expected}"), report);
                None
            }
        }
    }

    /// The name behind `secret:NAME`. Anything else is refused without being repeated.
    pub(crate) fn secret(&self, default: &str, report: &mut Report) -> Option<SecretName> {
        let text = match &self.node.value {
            Value::Scalar { text, .. } => text.as_str(),
            Value::Null => {
                self.wrong_type("`secret:NAME`", report);
                return None;
            }
            Value::Sequence(_) | Value::Mapping(_) => "",
        };
        self.secret_name(text.strip_prefix("secret:"), default, report)
    }

    /// A secret's name, with or without `secret:` before it.
    pub(crate) fn bare_secret(&self, report: &mut Report) -> Option<SecretName> {
        let text = match &self.node.value {
            Value::Scalar { text, .. } => text.as_str(),
            Value::Null | Value::Sequence(_) | Value::Mapping(_) => "",
        };
        self.secret_name(Some(text.strip_prefix("secret:").unwrap_or(text)), "NAME", report)
    }

    fn secret_name(&self, name: Option<&str>, default: &str, report: &mut Report) -> Option<SecretName> {
        let name = name.filter(|name| !credential::is_random(name)).and_then(|name| SecretName::parse(name).ok());
        if name.is_none() {
            let says = format!("gives a value where a name is expected (`{}`)", self.path);
            let hint = if default == "NAME" {
                CREDENTIAL_HINT.to_owned()
            } else {
                format!(
                    "store it with `replicator secrets set {default}`, then write `secret:{default}`; \
                     if the file was ever pushed, revoke it where it was issued"
                )
            };
            self.fault(Code::Credential, says, hint, report);
        }
        name
    }

    /// `true` or `false`.
    pub(crate) fn boolean(&self, report: &mut Report) -> Option<bool> {
        match &self.node.value {
            Value::Scalar { text, plain: true } if text == "true" => Some(true),
            Value::Scalar { text, plain: true } if text == "false" => Some(false),
            Value::Scalar { text, .. } => {
                let says = format!("gives {}, which is neither `true` nor `false` (`{}`)", quoted(text), self.path);
                self.fault(Code::WrongType, says, "write `true` or `false`, without quotes", report);
                None
            }
            Value::Null | Value::Sequence(_) | Value::Mapping(_) => {
                self.wrong_type("`true` or `false`", report);
                None
            }
        }
    }

    /// A whole number.
    pub(crate) fn number(&self, range: RangeInclusive<u32>, report: &mut Report) -> Option<u32> {
        let expected = format!("a whole number from {} to {}", range.start(), range.end());
        let Value::Scalar { text, plain } = &self.node.value else {
            self.wrong_type(&expected, report);
            return None;
        };
        let canonical = text == "0" || !text.starts_with(['0', '+', '-']);
        match text.parse::<u32>() {
            Ok(number) if *plain && canonical && range.contains(&number) => Some(number),
            Ok(_) | Err(_) => {
                let says = format!("gives {}, which is not {expected} (`{}`)", quoted(text), self.path);
                let quotes = if *plain { "" } else { ", without quotes" };
                self.fault(Code::InvalidValue, says, format!("write {expected}{quotes}"), report);
                None
            }
        }
    }

    /// One of a few words.
    pub(crate) fn choice(&self, words: &[Word], report: &mut Report) -> Option<&'static str> {
        let text = self.text(report)?;
        let offered: Vec<_> = words.iter().filter(|word| word.offered).map(|word| format!("`{}`", word.name)).collect();
        let hint = format!("write {}", offered.join(" or "));
        match words.iter().find(|word| word.name == text) {
            Some(word) if word.offered => return Some(word.name),
            Some(word) => {
                let says = format!("gives `{}`, which is not offered by this version (`{}`)", word.name, self.path);
                self.fault(Code::NotOffered, says, hint, report);
            }
            None => {
                let meant = nearest(text, words.iter().map(|word| word.name));
                let meant = meant.map(|meant| format!("; did you mean `{meant}`?")).unwrap_or_default();
                let says = format!("gives {}, which is unknown (`{}`){meant}", quoted(text), self.path);
                self.fault(Code::InvalidValue, says, hint, report);
            }
        }
        None
    }

    /// Says that the field is read and has no effect.
    pub(crate) fn unused(&self, why: &str, report: &mut Report) {
        let says = format!("has `{}`, which has no effect {why}", self.path);
        report.warning(Code::Unused, self.place, says, "remove it, or keep it for a later version");
    }
}

/// Refuses values where names are expected in the blocks nobody reads: under every key that ends in `From`.
pub(crate) fn names_only(node: &Node, report: &mut Report) {
    match &node.value {
        Value::Null | Value::Scalar { .. } => {}
        Value::Sequence(items) => items.iter().for_each(|item| names_only(item, report)),
        Value::Mapping(entries) => {
            for entry in entries {
                if entry.key.ends_with("From") {
                    name_only(&entry.key, entry.place, &entry.value, report);
                } else {
                    names_only(&entry.value, report);
                }
            }
        }
    }
}

fn name_only(key: &str, place: Place, node: &Node, report: &mut Report) {
    match &node.value {
        Value::Null => {}
        // The address of a database is the one thing that may stand there in clear.
        Value::Scalar { text, .. } if key == "restUrlFrom" && text.starts_with("https://") && !text.contains('@') => {}
        Value::Scalar { .. } => {
            Field { path: key.to_owned(), place, node }.secret("NAME", report);
        }
        Value::Sequence(items) => items.iter().for_each(|item| name_only(key, place, item, report)),
        Value::Mapping(entries) => {
            for entry in entries {
                name_only(&join(key, &entry.key), entry.place, &entry.value, report);
            }
        }
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// What YAML, 1.1 or 1.2, makes of a word without quotes, where that is not text.
fn surprise(text: &str) -> Option<&'static str> {
    let lower = text.to_ascii_lowercase();
    if matches!(lower.as_str(), "y" | "n" | "yes" | "no" | "on" | "off" | "true" | "false") {
        return Some("a boolean");
    }
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if !digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') || !digits.contains(|c: char| c.is_ascii_digit()) {
        return matches!(lower.trim_start_matches(['+', '-']), ".inf" | ".nan").then_some("a number");
    }
    let radix = digits.strip_prefix("0x").is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_hexdigit() || b == b'_'))
        || digits.strip_prefix("0b").is_some_and(|rest| rest.bytes().all(|b| b"01_".contains(&b)))
        || digits.strip_prefix("0o").is_some_and(|rest| rest.bytes().all(|b| (b'0'..=b'7').contains(&b)));
    let plain = |text: &str| text.bytes().all(|b| b.is_ascii_digit() || b == b'_');
    let sexagesimal = digits.contains(':')
        && digits.split(':').skip(1).all(|part| {
            let part = part.split('.').next().unwrap_or_default();
            (1..=2).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit()) && part < "60"
        })
        && digits.split(':').next().is_some_and(plain);
    let float = lower.replace('_', "").parse::<f64>().is_ok();
    let date =
        text.len() >= 8 && text.split('-').count() == 3 && text.split('-').all(|part| !part.is_empty() && plain(part));
    if date {
        return Some("a date");
    }
    (radix || sexagesimal || float || plain(digits)).then_some("a number")
}

/// Reports every value that stands more than once in a list that must hold each once.
pub(crate) fn once<T: Ord + Display>(items: impl IntoIterator<Item = (T, String)>, report: &mut Report) {
    let mut seen: BTreeMap<T, String> = BTreeMap::new();
    for (item, path) in items {
        if let Some(first) = seen.get(&item) {
            let first = report.place(first).line;
            let says = format!("gives `{item}` a second time (`{path}`)");
            report.fault(
                Code::Conflict,
                report.place(&path),
                says,
                format!("keep one of them; the first is on line {first}"),
            );
        } else {
            seen.insert(item, path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_yaml_takes_for_something_else_are_known() {
        for text in [
            "no",
            "Yes",
            "on",
            "OFF",
            "y",
            "true",
            "012",
            "1:30",
            "1:30:59",
            "1.10",
            "1e3",
            "0x1F",
            "3000",
            "-1",
            "1_000",
            "2024-01-02",
            ".5",
            ".inf",
        ] {
            assert!(surprise(text).is_some(), "{text}");
        }
        for text in [
            "none",
            "v1",
            "1.2.3",
            "acme/web:1",
            "sha256:00",
            "12:ab",
            "1.x",
            "-",
            "local:a:1",
            "10.0.0.1",
            "1:75",
            "a-b-c",
        ] {
            assert_eq!(surprise(text), None, "{text}");
        }
    }
}
