//! The container runtime of a fleet's host.

use std::collections::BTreeMap;
use std::process::Command;

use anyhow::{Result, bail};

use super::Fleet;

impl Fleet {
    /// Ids of the containers of this fleet, by name.
    ///
    /// # Errors
    ///
    /// The runtime could not say.
    pub fn containers(&self) -> Result<BTreeMap<String, String>> {
        let filter = format!("name=^/{}_", self.host);
        let listed = docker(&["ps", "-a", "--no-trunc", "--filter", &filter, "--format", "{{.Names}} {{.ID}}"])?;
        let pairs = listed.lines().filter_map(|line| line.split_once(' '));
        Ok(pairs
            .map(|(name, id)| (name.trim_start_matches(&format!("{}_", self.host)).to_owned(), id.to_owned()))
            .collect())
    }
}

/// What the container runtime's own command line says, of the runtime of this thread's namespace.
///
/// # Errors
///
/// It failed.
pub fn docker(arguments: &[&str]) -> Result<String> {
    let output = Command::new("docker").args(arguments).output()?;
    if !output.status.success() {
        bail!("docker {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8(output.stdout)?)
}
