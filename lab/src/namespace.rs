//! A part of this machine for one test alone: nothing in it meets the bridges, addresses and ports outside, nor what
//! runs there and listens below `/run`.

use std::fs::File;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use nix::sched::{CloneFlags, setns, unshare};
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};

/// The calling thread, and every thread and process it starts, in a network and with mounts of their own, until this
/// is dropped on the same thread: for tests that run on one thread. What was mounted goes with the last of its
/// processes.
pub struct Namespace {
    network: File,
    mounts: File,
    folder: PathBuf,
}

impl Namespace {
    /// Makes one, with a loopback interface and an empty `/run`.
    ///
    /// # Errors
    ///
    /// The kernel or `ip` refused; the thread is where it was.
    pub fn enter() -> Result<Self> {
        let before = |kind: &str| File::open(format!("/proc/thread-self/ns/{kind}")).context(kind.to_owned());
        let folder = std::env::current_dir()?;
        let (network, mounts) = (before("net")?, before("mnt")?);
        unshare(CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS).context("make a namespace")?;
        // From here on it goes back, whatever happens.
        let entered = Self { network, mounts, folder };
        mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC).context("keep mounts apart")?;
        mount("tmpfs", "/run", "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, c"mode=755").context("mount /run")?;
        let up = Command::new("ip").args(["link", "set", "lo", "up"]).status().context("start `ip`")?;
        ensure!(up.success(), "`ip link set lo up` failed");
        Ok(entered)
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // It fails for a thread that is not in the one it was told to leave: that thread is lost to other tests, and
        // each has its own.
        let _left = setns(self.network.as_fd(), CloneFlags::CLONE_NEWNET);
        let _left = setns(self.mounts.as_fd(), CloneFlags::CLONE_NEWNS);
        let _there = std::env::set_current_dir(&self.folder);
    }
}
