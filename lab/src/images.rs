//! The lab's images, built on the spot by `scripts/build-lab-images.sh`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context as _, Result, bail};
use tempfile::TempPath;

/// The image that serves a page: see `lab/workload/`.
pub const WORKLOAD: &str = "replicator-demo/web:1";
/// Before the number of the process that writes the file of all images.
const PART: &str = "all.";
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
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/lab/images");
    sweep(&folder)?;
    // By a name of its own first: another process may read the one that is there.
    let written = TempPath::try_from_path(folder.join(format!("{PART}{}", std::process::id())))?;
    run(Command::new("docker").arg("save").arg("--output").arg(&written).args(names.split_whitespace()))?;
    let path = folder.join("all.tar");
    written.persist(&path)?;
    Ok(path)
}

/// Removes what processes left there that were killed while they wrote: some hundred MB each.
fn sweep(folder: &Path) -> Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let name = entry?.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(PART)?.parse::<u32>().ok());
        if process.is_some_and(|process| !Path::new("/proc").join(process.to_string()).exists()) {
            // Gone already is as good.
            let _gone = std::fs::remove_file(folder.join(name));
        }
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn part_of_a_process_that_is_gone_is_swept_and_nothing_else_is() {
        let folder = tempfile::tempdir().unwrap();
        // No process has so high a number.
        let names = ["all.tar".to_owned(), format!("all.{}", u32::MAX), format!("all.{}", std::process::id())];
        names.iter().for_each(|name| std::fs::write(folder.path().join(name), "").unwrap());
        sweep(folder.path()).unwrap();
        let stands = |name: &String| folder.path().join(name).exists();
        assert_eq!(names.each_ref().map(stands), [true, false, true]);
    }
}
