//! The vocabulary: what a declaration can say of a host.
//!
//! [`kind`] holds the closed list of twelve; the kinds of level 1 have their fields and rules here, one file
//! each. Rules are pure: they look at what was declared and at nothing on a machine.

pub mod container;
pub mod directory;
pub mod file;
pub mod kind;
pub mod network;
pub mod text;

use crate::ids::ResourceId;
use crate::wire::declaration as wire;

pub use kind::Kind;

/// One thing wrong with a declared field. Never holds the value: it may be a secret.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[error("`{field}` {problem}")]
pub struct Fault {
    /// The field, dotted, with an index where it is a list: `mounts[1].target`.
    pub field: String,
    /// What is wrong and what is expected, in lower case.
    pub problem: String,
}

impl Fault {
    /// A fault of `field`.
    #[must_use]
    pub fn new(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { field: field.into(), problem: problem.into() }
    }
}

/// One item of a declaration, its name checked. The fields of its kind are checked by [`Resource::faults`].
#[derive(Debug, Clone, PartialEq)]
pub struct Resource {
    /// `module.name`.
    pub id: ResourceId,
    /// Undone by the agent itself unless it has spoken with the broker again.
    pub confirms_link: bool,
    /// What it is.
    pub body: wire::resource::Kind,
}

impl Resource {
    /// The word for what it is.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self.body {
            wire::resource::Kind::File(_) => Kind::File,
            wire::resource::Kind::Directory(_) => Kind::Directory,
            wire::resource::Kind::Network(_) => Kind::Network,
            wire::resource::Kind::Container(_) => Kind::Container,
        }
    }

    /// The path or runtime name it stands for on the machine.
    #[must_use]
    pub fn target(&self) -> &str {
        match &self.body {
            wire::resource::Kind::File(file) => &file.path,
            wire::resource::Kind::Directory(directory) => &directory.path,
            wire::resource::Kind::Network(network) => &network.name,
            wire::resource::Kind::Container(container) => &container.name,
        }
    }

    /// Everything wrong with its fields.
    #[must_use]
    pub fn faults(&self) -> Vec<Fault> {
        match &self.body {
            wire::resource::Kind::File(file) => file::faults(file),
            wire::resource::Kind::Directory(directory) => directory::faults(directory),
            wire::resource::Kind::Network(network) => network::faults(network),
            wire::resource::Kind::Container(container) => container::faults(container),
        }
    }
}
