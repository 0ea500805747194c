//! What a runtime whose daemons were killed leaves on a machine: processes, mounts, control groups, sockets.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::mount::{UnmountFlags, unmount};
use rustix::process::{Pid, Signal, kill_process};

/// Longest that the kernel may take to end killed processes.
const ENDS_WITHIN: Duration = Duration::from_secs(5);
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(20);

/// Removes all that is left of the runtime in `folder`, whose containers are in the control group `group`. What
/// cannot be removed is left: this runs where a test has failed, too.
pub(super) fn remove(folder: &Path, group: &str) {
    let groups = groups(group);
    let deadline = Instant::now() + ENDS_WITHIN;
    // Containers, then what waits for them; one that only just started is found the next time.
    loop {
        let left: Vec<_> = groups.iter().flat_map(|group| members(group)).chain(shims(folder)).collect();
        if left.is_empty() || Instant::now() > deadline {
            break;
        }
        for pid in left {
            let _gone = kill_process(pid, Signal::KILL);
        }
        std::thread::sleep(PAUSE);
    }
    for address in files(&folder.join("containerd/state")).into_iter().filter(|path| path.ends_with("address")) {
        let socket = std::fs::read_to_string(address).unwrap_or_default();
        let _gone = std::fs::remove_file(socket.trim().trim_start_matches("unix://"));
    }
    for mounted in mounts(folder) {
        let _gone = unmount(&mounted, UnmountFlags::DETACH);
    }
    for group in groups {
        remove_groups(&group);
    }
}

/// The control group of this name in every hierarchy: there is one, or one for each controller.
fn groups(name: &str) -> Vec<PathBuf> {
    let root = Path::new("/sys/fs/cgroup");
    let roots = folders(root).into_iter().chain([root.to_owned()]);
    roots.map(|root| root.join(name.trim_start_matches('/'))).filter(|group| group.is_dir()).collect()
}

fn members(group: &Path) -> Vec<Pid> {
    let listed = std::fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    let own = listed.lines().filter_map(|line| Pid::from_raw(line.parse().ok()?));
    own.chain(folders(group).iter().flat_map(|below| members(below))).collect()
}

fn remove_groups(group: &Path) {
    folders(group).iter().for_each(|below| remove_groups(below));
    let _left = std::fs::remove_dir(group);
}

/// Processes that were told of a path in `folder`: the runtime's shims.
fn shims(folder: &Path) -> Vec<Pid> {
    let told = |pid: &PathBuf| {
        let arguments = std::fs::read(pid.join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&arguments).contains(&*folder.to_string_lossy())
    };
    let all = folders(Path::new("/proc"));
    let numbered = all.iter().filter(|pid| told(pid));
    numbered.filter_map(|pid| Pid::from_raw(pid.file_name()?.to_str()?.parse().ok()?)).collect()
}

/// Mounted below `folder`, the last first.
fn mounts(folder: &Path) -> Vec<PathBuf> {
    let all = std::fs::read_to_string("/proc/thread-self/mountinfo").unwrap_or_default();
    let paths = all.lines().filter_map(|line| line.split(' ').nth(4)).map(PathBuf::from);
    let mut below: Vec<_> = paths.filter(|path| path.starts_with(folder)).collect();
    below.reverse();
    below
}

fn folders(folder: &Path) -> Vec<PathBuf> {
    entries(folder).into_iter().filter(|path| path.is_dir() && !path.is_symlink()).collect()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let below = folders(folder).into_iter().flat_map(|below| files(&below));
    entries(folder).into_iter().filter(|path| path.is_file()).chain(below).collect()
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}
