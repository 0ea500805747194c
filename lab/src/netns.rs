//! A network of a test's own: nothing in it meets the machine's bridges, addresses and ports.

use std::fs::File;
use std::os::fd::AsFd;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use nix::sched::{CloneFlags, setns, unshare};

/// The calling thread, and every process it starts, in a network namespace of their own, until this is dropped on
/// the same thread: for tests that run on one thread. The namespace goes with the last of its processes.
pub struct Netns {
    before: File,
}

impl Netns {
    /// Makes one, with a loopback interface and nothing else.
    ///
    /// # Errors
    ///
    /// The kernel or `ip` refused; the thread is where it was.
    pub fn enter() -> Result<Self> {
        let before = File::open("/proc/thread-self/ns/net").context("open the thread's network namespace")?;
        unshare(CloneFlags::CLONE_NEWNET).context("make a network namespace")?;
        // From here on it goes back, whatever happens.
        let entered = Self { before };
        let up = Command::new("ip").args(["link", "set", "lo", "up"]).status().context("start `ip`")?;
        ensure!(up.success(), "`ip link set lo up` failed");
        Ok(entered)
    }
}

impl Drop for Netns {
    fn drop(&mut self) {
        // It fails for a thread that is not in the one it was told to leave: that thread is lost to other tests, and
        // each has its own.
        let _left = setns(self.before.as_fd(), CloneFlags::CLONE_NEWNET);
    }
}
