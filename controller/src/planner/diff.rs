//! A plan for people, like a diff: what comes, what changes and why, what goes.

use replicator_protocol::change::Step;
use replicator_protocol::event_words;
use replicator_protocol::resources::Resource;
use replicator_protocol::wire::declaration::{file, resource};
use replicator_protocol::wire::event::Action;
use similar::{ChangeTag, TextDiff};

use super::{Plan, words};
use crate::compiler::Compiled;
use crate::state::HostState;

/// Most lines of one file that are shown.
const LINES_MAX: usize = 40;

impl Plan {
    /// The plan for people; the first line counts.
    #[must_use]
    pub fn text(&self, state: &HostState, compiled: &Compiled) -> String {
        let count = |actions: &[Action]| self.steps.iter().filter(|step| actions.contains(&step.change.action)).count();
        let mut out = format!(
            "{} to create, {} to change, {} to recreate, {} to reload, {} to remove, {} unchanged",
            count(&[Action::Create]),
            count(&[Action::Change]),
            count(&[Action::Recreate]),
            count(&[Action::Reload]),
            count(&[Action::Remove]),
            count(&[Action::None]),
        );
        let shown: Vec<_> = self.steps.iter().filter(|step| step.change.is_some()).collect();
        let width = shown.iter().map(|step| step.resource.to_string().len()).max().unwrap_or(0);
        for step in shown {
            let (action, reasons) = (event_words::action(step.change.action.into()), words::all(&step.change.reasons));
            out.push_str(&format!(
                "\n{} {:<width$}  {:<9}  {action}: {reasons}",
                sign(step),
                step.resource.to_string(),
                step.kind.as_str()
            ));
            let now = compiled.resources.iter().find(|resource| resource.id == step.resource);
            let before = state.known.get(&step.resource).map(|known| &known.resource);
            if let (Some(before), Some(now)) = (before.and_then(content), now.and_then(content)) {
                out.push_str(&lines(before, now));
            }
        }
        if !self.places.is_empty() {
            out.push_str("\n\nNames:");
        }
        for place in &self.places {
            let behind = if place.signed_in { "  behind the sign-in" } else { "" };
            out.push_str(&format!("\n  {}  to {}:{}{behind}", place.host, place.alias, place.port));
        }
        if !self.needs.is_empty() {
            out.push_str("\n\nSecrets:");
        }
        for need in &self.needs {
            out.push_str(&format!("\n  {}  {}", need.secret, need.reason));
        }
        out
    }
}

fn sign(step: &Step) -> &'static str {
    match step.change.action {
        Action::Create => "+",
        Action::Change | Action::Reload => "~",
        Action::Recreate => "±",
        Action::Remove => "-",
        Action::None | Action::Unspecified => " ",
    }
}

/// What a file holds in clear; a sealed one holds nothing that could be shown.
fn content(resource: &Resource) -> Option<&str> {
    let resource::Kind::File(file) = &resource.body else { return None };
    match &file.body {
        Some(file::Body::Content(content)) => Some(content),
        Some(file::Body::Bytes(_) | file::Body::Sealed(_)) | None => None,
    }
}

fn lines(before: &str, now: &str) -> String {
    let diff = TextDiff::from_lines(before, now);
    let changed: Vec<_> = diff.iter_all_changes().filter(|change| change.tag() != ChangeTag::Equal).collect();
    let mut out = String::new();
    for change in changed.iter().take(LINES_MAX) {
        let sign = match change.tag() {
            ChangeTag::Delete => '-',
            ChangeTag::Insert => '+',
            ChangeTag::Equal => ' ',
        };
        out.push_str(&format!("\n      {sign} {}", change.value().trim_end()));
    }
    if changed.len() > LINES_MAX {
        out.push_str(&format!("\n      … {} more lines", changed.len() - LINES_MAX));
    }
    out
}
