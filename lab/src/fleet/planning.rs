//! What a fleet's controller would do, and what it did.

use anyhow::{Context as _, Result};
use replicator::state::status::Issued;
use replicator::state::{App, Log};
use replicator_protocol::ids::HostId;
use serde_json::Value;

use super::{Fleet, lab};

impl Fleet {
    /// `plan`, as data.
    ///
    /// # Errors
    ///
    /// It was refused.
    pub async fn plan(&self) -> Result<Value> {
        self.replicator(&["plan", &self.host, "-o", "json", "--distribution", &self.distribution()]).await?.json()
    }

    /// The file that names the lab's images.
    #[must_use]
    pub fn distribution(&self) -> String {
        lab("images/distribution.json").to_string_lossy().into_owned()
    }

    /// The declaration issued last, as the controller's log has it.
    ///
    /// # Errors
    ///
    /// There is none, or the log cannot be read.
    pub async fn issued(&self) -> Result<Issued> {
        let (app, host) = (App::parse(&self.host)?, HostId::parse(&self.host)?);
        let state = Log::local(&self.broker.home, &app, &host)?.read().await?.state;
        state.last_issued().cloned().context("nothing was issued")
    }
}
