//! Why there is no declaration.

use replicator_protocol::ids::{InvalidId, ResourceId};
use replicator_protocol::resources::{Fault, Resource};
use replicator_protocol::wire::declaration::resource;

use crate::secrets::Missing;

/// Why there is no declaration.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    /// Secrets nobody has set.
    #[error(transparent)]
    Missing(#[from] Missing),
    /// A name that cannot be one of a resource.
    #[error("cannot name a resource after `{what}`")]
    Name {
        /// What it would be named after.
        what: String,
        /// Why not.
        source: InvalidId,
    },
    /// Secrets for programs whose user is unknown: nobody can be made the owner of the files.
    #[error("cannot tell which user `{image}` runs as, and `{resource}` reads secrets")]
    User {
        /// The image.
        image: String,
        /// What would read them.
        resource: String,
    },
    /// A public name too long for the file the proxy looks it up by.
    #[error("the public name `{host}` is too long for its file (got {got} bytes, have {have})")]
    PlaceTooLong {
        /// The name.
        host: String,
        /// The length of the file's name.
        got: usize,
        /// What a file system takes.
        have: usize,
    },
    /// What was compiled breaks rules of the language.
    #[error("cannot declare this: {}", listed(.0))]
    Faults(Vec<(Option<ResourceId>, Fault)>),
    /// Larger than a host accepts.
    #[error(
        "the declaration is too large (got {got} bytes, have {have}); its largest resource is `{largest}` ({size} bytes)"
    )]
    TooLarge {
        /// Its size.
        got: usize,
        /// What a host accepts.
        have: usize,
        /// The largest resource.
        largest: ResourceId,
        /// That one's size.
        size: usize,
    },
}

impl CompileError {
    /// One line that names the next action.
    pub fn hint(&self) -> String {
        match self {
            Self::Missing(missing) => missing.hint(),
            Self::Name { .. } => "rename it: 1 to 63 of `a-z`, `0-9` and `-`".into(),
            Self::User { image, .. } => {
                format!("give the image a numeric `USER`, and let this machine hold it: `docker pull {image}`")
            }
            Self::PlaceTooLong { .. } => {
                "choose a shorter zone, or a shorter name for the developer or the repository".into()
            }
            Self::Faults(_) => "correct the host spec or the fleet file where it says so".into(),
            Self::TooLarge { largest, .. } => format!("make `{largest}` smaller"),
        }
    }
}

fn listed(faults: &[(Option<ResourceId>, Fault)]) -> String {
    let one = |(id, fault): &(Option<ResourceId>, Fault)| match id {
        Some(id) => format!("`{id}`: {fault}"),
        None => fault.to_string(),
    };
    faults.iter().map(one).collect::<Vec<_>>().join("; ")
}

/// A resource under its name.
pub(super) fn named(module: &str, name: &str, body: resource::Kind) -> Result<Resource, CompileError> {
    let id = format!("{module}.{name}");
    let id = ResourceId::parse(&id).map_err(|source| CompileError::Name { what: id, source })?;
    Ok(Resource { id, confirms_link: false, body })
}
