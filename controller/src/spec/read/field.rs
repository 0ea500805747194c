//! A value and its readers: text, names, numbers, words, lists, blocks.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::rc::Rc;

use replicator_protocol::ids::SecretName;

use super::surprise::surprise;
use super::{Block, Key, Word, join, offered};
use crate::spec::credential;
use crate::spec::finding::{Code, Findings, Place, nearest, quoted};
use crate::spec::yaml::{CREDENTIAL_HINT, Entry, Node, Value};

/// A value with its path and the place of its key.
#[derive(Clone)]
pub(crate) struct Field<'a> {
    /// How it is reached, as `compute.existingHost.address`.
    pub(crate) path: String,
    /// Where its key stands.
    pub(crate) place: Place,
    /// What it is.
    pub(super) node: &'a Node,
}

impl<'a> Field<'a> {
    fn name(&self) -> &str {
        self.path.rsplit('.').next().unwrap_or_default()
    }

    fn wrong_type(&self, expected: &str, findings: &mut Findings) {
        self.wrong_form(expected, format!("write {expected}"), findings);
    }

    fn wrong_form(&self, expected: &str, write: String, findings: &mut Findings) {
        let path = if self.path.is_empty() { "the file" } else { &self.path };
        let says = format!("gives {} where {expected} is expected (`{path}`)", self.node.kind());
        let hint = match &self.node.value {
            Value::Null => format!("give `{path}` its value, or remove the key"),
            Value::Scalar { .. } | Value::Sequence(_) | Value::Mapping(_) => write,
        };
        findings.fault(Code::WrongType, self.node.place, says, hint);
        self.hide(findings);
    }

    /// Shows nothing of what it is: of a mapping no more than the first key.
    pub(crate) fn hide(&self, findings: &mut Findings) {
        match &self.node.value {
            Value::Null => {}
            Value::Scalar { .. } | Value::Sequence(_) => findings.hide(self.node.place),
            Value::Mapping(entries) => entries.iter().for_each(|entry| findings.hide_value(entry.place)),
        }
    }

    /// A fault at the value.
    pub(crate) fn fault(&self, code: Code, says: impl Into<String>, hint: impl Into<String>, findings: &mut Findings) {
        findings.fault(code, self.node.place, says, hint);
    }

    /// Whether it has keys of its own.
    pub(crate) fn is_mapping(&self) -> bool {
        matches!(self.node.value, Value::Mapping(_))
    }

    /// A mapping with known keys only.
    pub(crate) fn block(&self, keys: &'static [Key], findings: &mut Findings) -> Option<Block<'a>> {
        let Value::Mapping(entries) = &self.node.value else {
            self.wrong_form("a mapping", format!("write a mapping with keys of {}", offered(keys)), findings);
            return None;
        };
        let block = Block { path: self.path.clone(), place: self.place, keys, entries };
        block.check_keys(findings);
        Some(block)
    }

    /// A mapping with keys of the writer's choice.
    pub(crate) fn entries(&self, findings: &mut Findings) -> Option<Vec<(&'a str, Field<'a>)>> {
        let Value::Mapping(entries) = &self.node.value else {
            self.wrong_type("a mapping", findings);
            return None;
        };
        let field = |entry: &'a Entry| {
            let path = join(&self.path, &entry.key);
            (entry.key.as_str(), Field { path, node: &entry.value, place: entry.place })
        };
        Some(entries.iter().map(field).collect())
    }

    /// A list.
    pub(crate) fn list(&self, findings: &mut Findings) -> Option<Vec<Field<'a>>> {
        let Value::Sequence(items) = &self.node.value else {
            self.wrong_type("a list", findings);
            return None;
        };
        let item = |(index, node): (usize, &'a Rc<Node>)| {
            let path = format!("{}[{index}]", self.path);
            findings.remember(path.clone(), node.place);
            Field { path, node, place: node.place }
        };
        Some(items.iter().enumerate().map(item).collect())
    }

    /// Text. What YAML takes for something else must stand in quotes.
    pub(crate) fn text(&self, findings: &mut Findings) -> Option<&'a str> {
        let Value::Scalar { text, plain } = &self.node.value else {
            self.wrong_type("text", findings);
            return None;
        };
        if *plain && let Some(reading) = surprise(text) {
            let lead = if self.path.ends_with(']') { "-".into() } else { format!("{}:", self.name()) };
            // A number may be a password as well, where the key says so.
            let is_secret = credential::is_telling(self.name());
            let shown = if is_secret { "…" } else { text };
            let says = format!("gives `{shown}` without quotes, which YAML reads as {reading} (`{}`)", self.path);
            self.fault(Code::NeedsQuotes, says, format!("write `{lead} \"{shown}\"`"), findings);
            if is_secret {
                self.hide(findings);
            }
            return None;
        }
        Some(text)
    }

    /// Text of a form of its own.
    pub(crate) fn parsed<T, E: Display>(
        &self,
        parse: impl Fn(&str) -> Result<T, E>,
        findings: &mut Findings,
    ) -> Option<T> {
        let text = self.text(findings)?;
        match parse(text) {
            Ok(value) => Some(value),
            Err(error) => {
                let error = error.to_string();
                let (wrong, expected) = error.split_once(": expected ").unwrap_or((&error, "another value"));
                // Names of the protocol say `not a …`, those of a file `is no …`.
                let wrong =
                    wrong.strip_prefix("not a ").map_or_else(|| wrong.to_owned(), |what| format!("is no {what}"));
                let says = format!("gives {}, which {wrong} (`{}`)", quoted(text), self.path);
                self.fault(Code::InvalidValue, says, format!("write {expected}"), findings);
                None
            }
        }
    }

    /// The name behind `secret:NAME`. Anything else is refused without being repeated.
    pub(crate) fn secret(&self, default: &str, findings: &mut Findings) -> Option<SecretName> {
        let text = match &self.node.value {
            Value::Scalar { text, .. } => text.as_str(),
            Value::Null => {
                self.wrong_type("`secret:NAME`", findings);
                return None;
            }
            Value::Sequence(_) | Value::Mapping(_) => "",
        };
        self.secret_name(text.strip_prefix("secret:"), default, findings)
    }

    /// A secret's name, with or without `secret:` before it.
    pub(crate) fn bare_secret(&self, findings: &mut Findings) -> Option<SecretName> {
        let text = match &self.node.value {
            Value::Scalar { text, .. } => text.as_str(),
            Value::Null | Value::Sequence(_) | Value::Mapping(_) => "",
        };
        self.secret_name(Some(text.strip_prefix("secret:").unwrap_or(text)), "NAME", findings)
    }

    fn secret_name(&self, name: Option<&str>, default: &str, findings: &mut Findings) -> Option<SecretName> {
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
            self.fault(Code::Credential, says, hint, findings);
        }
        name
    }

    /// `true` or `false`.
    pub(crate) fn boolean(&self, findings: &mut Findings) -> Option<bool> {
        match &self.node.value {
            Value::Scalar { text, plain: true } if text == "true" => Some(true),
            Value::Scalar { text, plain: true } if text == "false" => Some(false),
            Value::Scalar { text, .. } => {
                let says = format!("gives {}, which is neither `true` nor `false` (`{}`)", quoted(text), self.path);
                self.fault(Code::WrongType, says, "write `true` or `false`, without quotes", findings);
                None
            }
            Value::Null | Value::Sequence(_) | Value::Mapping(_) => {
                self.wrong_type("`true` or `false`", findings);
                None
            }
        }
    }

    /// A whole number.
    pub(crate) fn number(&self, range: RangeInclusive<u32>, findings: &mut Findings) -> Option<u32> {
        let expected = format!("a whole number from {} to {}", range.start(), range.end());
        let Value::Scalar { text, plain } = &self.node.value else {
            self.wrong_type(&expected, findings);
            return None;
        };
        let canonical = text == "0" || !text.starts_with(['0', '+', '-']);
        match text.parse::<u32>() {
            Ok(number) if *plain && canonical && range.contains(&number) => Some(number),
            Ok(_) | Err(_) => {
                let says = format!("gives {}, which is not {expected} (`{}`)", quoted(text), self.path);
                let quotes = if *plain { "" } else { ", without quotes" };
                self.fault(Code::InvalidValue, says, format!("write {expected}{quotes}"), findings);
                None
            }
        }
    }

    /// One of a few words.
    pub(crate) fn choice(&self, words: &[Word], findings: &mut Findings) -> Option<&'static str> {
        let text = self.text(findings)?;
        let offered: Vec<_> = words.iter().filter(|word| word.offered).map(|word| format!("`{}`", word.name)).collect();
        let hint = format!("write {}", offered.join(" or "));
        match words.iter().find(|word| word.name == text) {
            Some(word) if word.offered => return Some(word.name),
            Some(word) => {
                let says = format!("gives `{}`, which is not offered by this version (`{}`)", word.name, self.path);
                self.fault(Code::NotOffered, says, hint, findings);
            }
            None => {
                let meant = nearest(text, words.iter().map(|word| word.name));
                let meant = meant.map(|meant| format!("; did you mean `{meant}`?")).unwrap_or_default();
                let says = format!("gives {}, which is unknown (`{}`){meant}", quoted(text), self.path);
                self.fault(Code::InvalidValue, says, hint, findings);
            }
        }
        None
    }

    /// Says that the field is read and has no effect.
    pub(crate) fn unused(&self, why: &str, findings: &mut Findings) {
        let says = format!("has `{}`, which has no effect {why}", self.path);
        findings.warning(Code::Unused, self.place, says, "remove it, or keep it for a later version");
    }
}
