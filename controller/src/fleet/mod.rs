//! The fleet file: which repositories run for which developers, on which host.
//!
//! Comes in: `clanker.yml`, or `factory.yml` where the first is absent. Goes out: a [`FleetFile`], or every fault
//! of the file at once. Never resolves a name, never touches the network.

mod needs;
mod refusals;
pub mod schema;
pub mod together;

use std::path::{Path, PathBuf};

pub use needs::needs;
pub use refusals::{NET, check_with_host};
pub use schema::{Auth, Developer, Env, FleetFile, HostRequirements, Port, Repo};

use crate::spec::load::{self, Examined, LoadError, Loaded};

/// The names a fleet file may have, the first one there being read.
pub const NAMES: [&str; 2] = ["clanker.yml", "factory.yml"];

/// The fleet file in `folder`, where there is one.
pub fn find(folder: &Path) -> Option<PathBuf> {
    NAMES.iter().map(|name| folder.join(name)).find(|path| path.is_file())
}

/// Reads the fleet file at `path`.
///
/// # Errors
///
/// [`LoadError`], with every fault of the file.
pub fn load(path: &Path) -> Result<Loaded<FleetFile>, LoadError> {
    examine(path, &load::text(path)?).accept(path)
}

/// Reads a fleet file from `text`; `path` names it in findings.
pub fn examine(path: &Path, text: &str) -> Examined<FleetFile> {
    load::examine(path, text, |node, findings| {
        let fleet = schema::read(node, findings);
        if let Some(fleet) = &fleet {
            refusals::check(fleet, findings);
        }
        fleet
    })
}

#[cfg(test)]
mod tests;
