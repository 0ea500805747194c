//! The lab's images, built on the spot by `scripts/build-lab-images.sh`.

use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context as _, Result, bail};

/// The image that serves a page: see `lab/workload/`.
pub const WORKLOAD: &str = "replicator-demo/web:1";

/// The id (`sha256:…`) of one of the lab's images. All are built once for each process.
///
/// # Errors
///
/// No compiler, no container runtime, or no such image.
pub fn id(name: &str) -> Result<String> {
    static BUILT: OnceLock<Result<(), String>> = OnceLock::new();
    BUILT.get_or_init(|| build().map_err(|error| format!("{error:#}"))).clone().map_err(anyhow::Error::msg)?;
    Ok(run(Command::new("docker").args(["image", "inspect", "--format", "{{.Id}}", name]))?.trim().to_owned())
}

fn build() -> Result<()> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/build-lab-images.sh");
    run(&mut Command::new(script)).map(drop)
}

fn run(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("start {:?}", command.get_program()))?;
    if !output.status.success() {
        bail!("{:?} failed: {}", command.get_program(), String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8(output.stdout)?)
}
