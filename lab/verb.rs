//! `lab-verb VERB`: does one verb of the controller, told as JSON. See `replicator_lab::verb`.

use anyhow::{Context as _, Result};
use replicator_lab::verb::Verb;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let verb = std::env::args().nth(1).context("say which verb")?;
    Box::pin(serde_json::from_str::<Verb>(&verb)?.run()).await
}
