//! `lab-life LIFE`: lives one life of an agent, told as JSON. See `replicator_lab::life`.

use anyhow::{Context as _, Result};
use replicator_lab::life::Life;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let life = std::env::args().nth(1).context("say which life")?;
    serde_json::from_str::<Life>(&life)?.live().await
}
