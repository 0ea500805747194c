//! What has to happen to one resource, and why: decided by one function on both sides.
//!
//! The controller compares what it declared last with what it would declare now; the agent compares what its
//! ledger knows with what is declared. Both call [`compare`] and get the same actions and reasons, so that a
//! plan, read as data, equals the report of the apply that follows. What only the machine can tell (drift,
//! an unfinished step) is added by the agent.

mod fields;
mod plan;

use std::collections::BTreeMap;

use crate::resources::{Kind, Resource};
use crate::wire::declaration::resource;
use crate::wire::event::{Action, Reason, ReasonCode};

pub use fields::{FIELDS, Part, content, fields, fields_of, whole};
pub use plan::{Step, plan, wanted};

/// What is known, or wanted, of one resource. `D` is what values are compared by: the values themselves on the
/// controller, keyed digests on the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts<D> {
    /// The word for what it is.
    pub kind: Kind,
    /// Path or runtime name.
    pub target: String,
    /// Each field that counts, by name; see [`fields`].
    pub fields: BTreeMap<String, D>,
    /// Content of each file a container takes in at creation, by path.
    pub inputs: BTreeMap<String, D>,
    /// All of each resource in `restart_on`, by name.
    pub restart_on: BTreeMap<String, D>,
    /// All of each resource in `reload_on`, by name.
    pub reload_on: BTreeMap<String, D>,
}

impl<D> Facts<D> {
    /// What the resource itself says; inputs and dependencies are looked up by the caller.
    #[must_use]
    pub fn of(resource: &Resource, digest: impl Fn(&[u8]) -> D) -> Self {
        Self {
            kind: resource.kind(),
            target: resource.target().to_owned(),
            fields: fields(resource).into_iter().map(|(name, value)| (name, digest(&value))).collect(),
            inputs: BTreeMap::new(),
            restart_on: BTreeMap::new(),
            reload_on: BTreeMap::new(),
        }
    }
}

/// What is to be done with a resource, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// [`Action::None`] where nothing is.
    pub action: Action,
    /// In a fixed order; empty exactly where nothing is to be done.
    pub reasons: Vec<Reason>,
}

impl Change {
    /// Whether something is to be done.
    #[must_use]
    pub fn is_some(&self) -> bool {
        self.action != Action::None
    }
}

/// A reason, with the field, path, secret or resource it speaks of.
#[must_use]
pub fn reason(code: ReasonCode, subject: impl Into<String>) -> Reason {
    Reason { code: code.into(), subject: subject.into() }
}

/// Compares what is known with what is wanted.
///
/// `followed_recreated` names the container whose network this one shares, where that one is recreated in the
/// same apply: the runtime binds a shared network to the other container's id, not to its name.
#[must_use]
pub fn compare<D: PartialEq>(known: Option<&Facts<D>>, wanted: &Facts<D>, followed_recreated: Option<&str>) -> Change {
    let Some(known) = known else {
        return Change { action: Action::Create, reasons: vec![reason(ReasonCode::New, "")] };
    };
    if known.kind != wanted.kind || known.target != wanted.target {
        let field = if known.kind == wanted.kind { target_field(wanted.kind) } else { "kind" };
        return Change { action: Action::Recreate, reasons: vec![reason(ReasonCode::FieldChanged, field)] };
    }
    let mut reasons: Vec<Reason> = differing(&known.fields, &wanted.fields).into_iter().map(field_reason).collect();
    let action = match wanted.kind {
        Kind::Container => {
            let inputs = differing(&known.inputs, &wanted.inputs);
            reasons.extend(inputs.into_iter().map(|path| reason(ReasonCode::InputChanged, path)));
            let dependencies = differing(&known.restart_on, &wanted.restart_on);
            reasons.extend(dependencies.into_iter().map(|id| reason(ReasonCode::DependencyChanged, id)));
            reasons.extend(followed_recreated.map(|name| reason(ReasonCode::FollowedRecreated, name)));
            Action::Recreate
        }
        Kind::Package
        | Kind::File
        | Kind::Directory
        | Kind::Access
        | Kind::User
        | Kind::Archive
        | Kind::Network
        | Kind::Interface
        | Kind::Service
        | Kind::Process
        | Kind::Action => Action::Change,
    };
    if !reasons.is_empty() {
        return Change { action, reasons };
    }
    let reloads = differing(&known.reload_on, &wanted.reload_on);
    let reasons: Vec<_> = reloads.into_iter().map(|id| reason(ReasonCode::DependencyChanged, id)).collect();
    Change { action: if reasons.is_empty() { Action::None } else { Action::Reload }, reasons }
}

/// What becomes of a resource that is no longer declared.
#[must_use]
pub fn removal() -> Change {
    Change { action: Action::Remove, reasons: vec![reason(ReasonCode::NoLongerDeclared, "")] }
}

/// The regular files a container takes in at creation: its environment files, and what is bound into it.
/// Whether a bound path is a file or a folder is for the caller to tell.
#[must_use]
pub fn inputs(resource: &Resource) -> Vec<&str> {
    use crate::wire::declaration::mount::Source;
    let resource::Kind::Container(container) = &resource.body else { return Vec::new() };
    let bound = container.mounts.iter().filter_map(|mount| match &mount.source {
        Some(Source::Bind(path)) => Some(path.as_str()),
        Some(Source::Volume(_) | Source::Tmpfs(_)) | None => None,
    });
    container.environment_files.iter().map(String::as_str).chain(bound).collect()
}

fn differing<'n, D: PartialEq>(known: &'n BTreeMap<String, D>, wanted: &'n BTreeMap<String, D>) -> Vec<&'n str> {
    let mut names: Vec<_> = known.keys().chain(wanted.keys()).map(String::as_str).collect();
    names.sort_unstable();
    names.dedup();
    names.retain(|name| known.get(*name) != wanted.get(*name));
    names
}

fn field_reason(name: &str) -> Reason {
    match name.split_once('/') {
        Some(("secrets", secret)) => reason(ReasonCode::SecretChanged, secret),
        Some(_) | None => reason(ReasonCode::FieldChanged, name),
    }
}

fn target_field(kind: Kind) -> &'static str {
    match kind {
        Kind::File | Kind::Directory | Kind::Access | Kind::Archive => "path",
        Kind::Package
        | Kind::User
        | Kind::Network
        | Kind::Interface
        | Kind::Container
        | Kind::Service
        | Kind::Process
        | Kind::Action => "name",
    }
}

#[cfg(test)]
mod tests;
