//! YAML as far as it is taken here: a tree in which every key and value knows its place.
//!
//! Comes in: text. Goes out: a [`Node`], or findings. Anchors are taken; merge keys, tags, several documents
//! and keys that are not text are not. No alias is ever copied out, so none can fill the memory.

use std::collections::HashMap;
use std::rc::Rc;

use saphyr_parser::{Event, Parser, ScalarStyle, Span};

use super::credential;
use super::finding::{Code, Findings, Place, quoted};

/// Largest file, in bytes: far above any spec, far below what hurts.
pub const SIZE_MAX: usize = 1024 * 1024;
/// Deepest nesting.
pub const DEPTH_MAX: usize = 64;
/// How often larger than written a file may be once its aliases are followed.
pub const EXPANSION_MAX: usize = 100;

/// A value and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Where it starts.
    pub place: Place,
    /// What it is.
    pub value: Value,
    /// Nodes in it with every alias followed, itself included.
    size: usize,
    /// Levels below it with every alias followed.
    depth: usize,
}

/// What a node is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// Nothing at all, `~` or `null`.
    Null,
    /// Text.
    Scalar {
        /// Without quotes and escapes.
        text: String,
        /// Whether it stands without quotes.
        plain: bool,
    },
    /// A list.
    Sequence(Vec<Rc<Node>>),
    /// Keys with values, in the order of the file, each key once.
    Mapping(Vec<Entry>),
}

/// A key and its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Where the key stands.
    pub place: Place,
    /// Its value.
    pub value: Rc<Node>,
}

impl Node {
    /// What it is, for people.
    pub fn kind(&self) -> &'static str {
        match &self.value {
            Value::Null => "nothing",
            Value::Scalar { .. } => "text",
            Value::Sequence(_) => "a list",
            Value::Mapping(_) => "a mapping",
        }
    }

    /// The value under `key`, where this is a mapping that has it.
    pub fn get(&self, key: &str) -> Option<&Node> {
        match &self.value {
            Value::Mapping(entries) => entries.iter().find(|entry| entry.key == key).map(|entry| &*entry.value),
            Value::Null | Value::Scalar { .. } | Value::Sequence(_) => None,
        }
    }
}

/// Reads `text`; every fault goes into `findings`. Where the tree cannot be trusted, there is none.
pub fn parse(text: &str, findings: &mut Findings) -> Option<Rc<Node>> {
    if text.len() > SIZE_MAX {
        let says = format!("starts a file that is too large (more than {SIZE_MAX} bytes)");
        findings.fault(Code::Limit, START, says, "split it, or leave out what is no host spec or fleet file");
        return None;
    }
    let tabs = tabs(text, findings);
    let root = Builder::new(findings).run(text).filter(|_| !tabs);
    if root.is_none() {
        findings.hide_unread();
    }
    root
}

const START: Place = Place { line: 1, column: 1, width: 1 };

fn tabs(text: &str, findings: &mut Findings) -> bool {
    let mut found = false;
    for (index, line) in text.lines().enumerate() {
        if let Some(at) = line.chars().position(|c| c == '\t') {
            found = true;
            let place = Place { line: index + 1, column: at + 1, width: 1 };
            findings.fault(
                Code::Syntax,
                place,
                "has a tab",
                "write spaces; a tab that belongs to a value is `\\t` in double quotes",
            );
        }
    }
    found
}

enum Frame {
    Sequence { place: Place, anchor: usize, items: Vec<Rc<Node>>, extent: Extent },
    Mapping(MappingFrame),
}

struct MappingFrame {
    place: Place,
    anchor: usize,
    entries: Vec<Entry>,
    seen: HashMap<String, Place>,
    key: Option<(String, Place)>,
    extent: Extent,
}

/// How large and deep what is being read has become, with every alias followed.
#[derive(Clone, Copy)]
struct Extent {
    size: usize,
    depth: usize,
}

impl Extent {
    const NEW: Self = Self { size: 1, depth: 1 };

    fn hold(&mut self, node: &Node) {
        self.size = self.size.saturating_add(node.size);
        self.depth = self.depth.max(node.depth + 1);
    }
}

/// The file has a fault after which what follows means nothing.
struct Stop;

struct Builder<'r> {
    findings: &'r mut Findings,
    stack: Vec<Frame>,
    anchors: HashMap<usize, Rc<Node>>,
    written: usize,
    root: Option<Rc<Node>>,
    documents: usize,
}

impl<'r> Builder<'r> {
    fn new(findings: &'r mut Findings) -> Self {
        Self { findings, stack: Vec::new(), anchors: HashMap::new(), written: 0, root: None, documents: 0 }
    }

    fn run(mut self, text: &str) -> Option<Rc<Node>> {
        for event in Parser::new_from_str(text) {
            match event {
                Ok((event, span)) => self.take(event, span).ok()?,
                Err(error) => {
                    let marker = error.marker();
                    let place = Place { line: marker.line().max(1), column: marker.col() + 1, width: 1 };
                    let says = format!("is no YAML: {}", error.info());
                    self.findings.fault(
                        Code::Syntax,
                        place,
                        says,
                        "check quotes, brackets and indentation from there upwards",
                    );
                    return None;
                }
            }
        }
        let Some(root) = self.root else {
            self.findings.fault(Code::Syntax, START, "starts a file that holds nothing", "write its keys");
            return None;
        };
        if root.size > self.written.saturating_mul(EXPANSION_MAX) {
            let says = format!(
                "starts a file whose aliases make it more than {EXPANSION_MAX} times as large (got {}, written {})",
                root.size, self.written
            );
            self.findings.fault(Code::Limit, START, says, "write out what the aliases stand for");
            return None;
        }
        Some(root)
    }

    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), Stop> {
        let place = place(span);
        match event {
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
            Event::DocumentStart(_) => {
                self.documents += 1;
                if self.documents > 1 {
                    return self.stop(Code::Syntax, place, "starts a second document", "keep one document in a file");
                }
                Ok(())
            }
            Event::Alias(anchor) => match self.anchors.get(&anchor).cloned() {
                // Unbounded depth would end the process where the tree is walked or dropped.
                Some(node) if self.stack.len() + node.depth > DEPTH_MAX => self.too_deep(place),
                Some(node) => self.put(node),
                None => self.stop(
                    Code::Syntax,
                    place,
                    "has an alias to something it is part of",
                    "write out what it should stand for",
                ),
            },
            Event::Scalar(text, style, anchor, tag) => {
                if tag.is_some() {
                    self.tag(place);
                }
                self.scalar(&text, style, anchor, place)
            }
            Event::SequenceStart(anchor, tag) => {
                if tag.is_some() {
                    self.tag(place);
                }
                self.open(Frame::Sequence { place, anchor, items: Vec::new(), extent: Extent::NEW }, place)
            }
            Event::MappingStart(anchor, tag) => {
                if tag.is_some() {
                    self.tag(place);
                }
                let (entries, seen) = (Vec::new(), HashMap::new());
                self.open(
                    Frame::Mapping(MappingFrame { place, anchor, entries, seen, key: None, extent: Extent::NEW }),
                    place,
                )
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(),
        }
    }

    fn tag(&mut self, place: Place) {
        self.findings.fault(Code::Syntax, place, "has a YAML tag", "leave the tag out; text is marked by quotes");
    }

    fn stop(&mut self, code: Code, place: Place, says: &str, hint: &str) -> Result<(), Stop> {
        self.findings.fault(code, place, says, hint);
        Err(Stop)
    }

    fn too_deep(&mut self, place: Place) -> Result<(), Stop> {
        let says = format!("is nested too deeply (got more than {DEPTH_MAX} levels)");
        self.stop(Code::Limit, place, &says, "write it flatter")
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle, anchor: usize, place: Place) -> Result<(), Stop> {
        if let Some(kind) = credential::kind(text) {
            self.findings.fault(Code::Credential, place, format!("holds what looks like {kind}"), CREDENTIAL_HINT);
        }
        let plain = style == ScalarStyle::Plain;
        if let Some(Frame::Mapping(frame)) = self.stack.last_mut()
            && frame.key.is_none()
        {
            return self.key(text, plain, place);
        }
        let value = if plain && matches!(text, "" | "~" | "null" | "Null" | "NULL") {
            Value::Null
        } else {
            Value::Scalar { text: text.to_owned(), plain }
        };
        self.finish(Node { place, value, size: 1, depth: 0 }, anchor)
    }

    fn key(&mut self, text: &str, plain: bool, place: Place) -> Result<(), Stop> {
        if plain && text == "<<" {
            self.findings.fault(Code::Syntax, place, "has a merge key", "write out the keys it should bring");
        }
        let Some(Frame::Mapping(frame)) = self.stack.last_mut() else { return Err(Stop) };
        if let Some(first) = frame.seen.insert(text.to_owned(), place) {
            let says = format!("has the key {} a second time", quoted(text));
            self.findings.fault(
                Code::DuplicateKey,
                place,
                says,
                format!("keep one of them; the first is on line {}", first.line),
            );
        }
        frame.key = Some((text.to_owned(), place));
        Ok(())
    }

    fn open(&mut self, frame: Frame, place: Place) -> Result<(), Stop> {
        if let Some(Frame::Mapping(outer)) = self.stack.last()
            && outer.key.is_none()
        {
            return self.stop(Code::Syntax, place, "has a key that is no text", "write a word as the key");
        }
        if self.stack.len() >= DEPTH_MAX {
            return self.too_deep(place);
        }
        self.stack.push(frame);
        Ok(())
    }

    fn close(&mut self) -> Result<(), Stop> {
        let (place, anchor, value, extent) = match self.stack.pop().ok_or(Stop)? {
            Frame::Sequence { place, anchor, items, extent } => (place, anchor, Value::Sequence(items), extent),
            Frame::Mapping(frame) => (frame.place, frame.anchor, Value::Mapping(frame.entries), frame.extent),
        };
        self.finish(Node { place, value, size: extent.size, depth: extent.depth }, anchor)
    }

    fn finish(&mut self, node: Node, anchor: usize) -> Result<(), Stop> {
        self.written += 1;
        let node = Rc::new(node);
        if anchor > 0 {
            self.anchors.insert(anchor, Rc::clone(&node));
        }
        self.put(node)
    }

    fn put(&mut self, node: Rc<Node>) -> Result<(), Stop> {
        match self.stack.last_mut() {
            None => self.root = Some(node),
            Some(Frame::Sequence { items, extent, .. }) => {
                extent.hold(&node);
                items.push(node);
            }
            Some(Frame::Mapping(frame)) => {
                let Some((key, place)) = frame.key.take() else {
                    let place = node.place;
                    return self.stop(Code::Syntax, place, "has an alias for a key", "write a word as the key");
                };
                frame.extent.hold(&node);
                frame.entries.push(Entry { key, place, value: node });
            }
        }
        Ok(())
    }
}

/// What to do about a secret in clear.
pub(super) const CREDENTIAL_HINT: &str = "store it with `replicator secrets set NAME` and write `secret:NAME` where a name belongs; \
     if the file was ever pushed, revoke it where it was issued";

fn place(span: Span) -> Place {
    let (start, end) = (span.start, span.end);
    let width = if start.line() == end.line() { end.col().saturating_sub(start.col()) } else { 1 };
    Place { line: start.line().max(1), column: start.col() + 1, width: width.max(1) }
}

#[cfg(test)]
mod tests;
