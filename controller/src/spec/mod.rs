//! The host spec: what one machine should be, in a file that holds no secret.
//!
//! Comes in: `hosts/<id>.yml`. Goes out: a [`HostSpec`], or every fault of the file at once, each with its line.
//! Never resolves a name, never touches the network.

pub mod credential;
pub mod finding;
pub mod load;
pub mod names;
pub(crate) mod read;
mod refusals;
pub mod schema;
pub mod yaml;

use std::path::Path;

pub use finding::{Code, Finding, Findings, Place, Severity};
pub use load::{Examined, LoadError, Loaded};
pub use schema::{Compute, Dns, Gateway, HostSpec, Ingress};

/// Reads the host spec at `path`.
///
/// # Errors
///
/// [`LoadError`], with every fault of the file.
pub fn load(path: &Path) -> Result<Loaded<HostSpec>, LoadError> {
    examine(path, &load::text(path)?).accept(path)
}

/// Reads a host spec from `text`; `path` names it in findings.
pub fn examine(path: &Path, text: &str) -> Examined<HostSpec> {
    load::examine(path, text, |node, findings| {
        let spec = schema::read(node, findings);
        if let Some(spec) = &spec {
            refusals::check(spec, findings);
        }
        spec
    })
}

#[cfg(test)]
mod tests;
