//! Images built on the spot: one static program, and nothing else in them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context as _, Result, bail};

/// The id (`sha256:…`) of an image with the lab's program in it, built once for each process.
///
/// # Errors
///
/// No compiler, or no container runtime.
pub fn workload() -> Result<String> {
    static BUILT: OnceLock<Result<String, String>> = OnceLock::new();
    BUILT.get_or_init(|| build().map_err(|error| format!("{error:#}"))).clone().map_err(anyhow::Error::msg)
}

/// Where what the lab builds and fetches lies.
#[must_use]
pub fn cache() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/lab")
}

fn build() -> Result<String> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("images/workload.rs");
    let folder = tempfile::tempdir()?;
    let program = folder.path().join("workload");
    run(Command::new("rustc")
        .args(["--edition", "2024", "-O", "-C", "target-feature=+crt-static", "-o"])
        .arg(&program)
        .arg(&source))?;
    std::fs::write(
        folder.path().join("Dockerfile"),
        "FROM scratch\nCOPY workload /workload\nENTRYPOINT [\"/workload\"]\nCMD [\"serve\"]\n",
    )?;
    let built =
        run(Command::new("docker").args(["build", "-q", "."]).env("DOCKER_BUILDKIT", "0").current_dir(&folder))?;
    Ok(built.trim().to_owned())
}

fn run(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("start {:?}", command.get_program()))?;
    if !output.status.success() {
        bail!("{:?} failed: {}", command.get_program(), String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8(output.stdout)?)
}
