//! The lab's images, built on the spot by `scripts/build-lab-images.sh`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context as _, Result, bail};

/// The image that serves a page: see `lab/workload/`.
pub const WORKLOAD: &str = "replicator-demo/web:1";
/// What builds them, and says which they are.
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../scripts/build-lab-images.sh");

/// The id (`sha256:…`) of one of the lab's images. All are built once for each process.
///
/// # Errors
///
/// No compiler, no container runtime, or no such image.
pub fn id(name: &str) -> Result<String> {
    built()?;
    Ok(run(Command::new("docker").args(["image", "inspect", "--format", "{{.Id}}", name]))?.trim().to_owned())
}

/// A file with all of the lab's images, for a runtime that has none; written once for each process.
///
/// # Errors
///
/// As [`id`], or no room.
pub fn saved() -> Result<PathBuf> {
    static SAVED: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    SAVED.get_or_init(|| save().map_err(|error| format!("{error:#}"))).clone().map_err(anyhow::Error::msg)
}

fn save() -> Result<PathBuf> {
    built()?;
    let names = run(Command::new(SCRIPT).arg("--names"))?;
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/lab/images/all.tar");
    // By a name of its own first: another process may read the one that is there.
    let written = path.with_extension(std::process::id().to_string());
    run(Command::new("docker").arg("save").arg("--output").arg(&written).args(names.split_whitespace()))?;
    std::fs::rename(written, &path)?;
    Ok(path)
}

fn built() -> Result<()> {
    static BUILT: OnceLock<Result<(), String>> = OnceLock::new();
    let build = || run(&mut Command::new(SCRIPT)).map(drop);
    BUILT.get_or_init(|| build().map_err(|error| format!("{error:#}"))).clone().map_err(anyhow::Error::msg)
}

fn run(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("start {:?}", command.get_program()))?;
    if !output.status.success() {
        bail!("{:?} failed: {}", command.get_program(), String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8(output.stdout)?)
}
