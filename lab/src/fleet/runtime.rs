//! The container runtime of a fleet's host.

use std::collections::BTreeMap;

use anyhow::Result;

use super::Fleet;
use crate::dockerd::docker;

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
