//! Processes by number *and* start time: a number alone may be somebody else's by now.

use std::ffi::OsStr;
use std::fs::Metadata;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::{Pid, Signal};

use super::agent::ENDS_WITHIN;
use crate::point::{self, Effect};

/// How long the kernel may take to end a process that is killed: one that waits for a disk ends when that answers.
const KILLED_WITHIN: Duration = Duration::from_secs(30);
/// How often it is looked whether it ended.
const LOOK: Duration = Duration::from_millis(100);
/// What the kernel adds to the path of a program whose file is gone, or replaced.
const REPLACED: &[u8] = b" (deleted)";

/// One process, and no other that gets its number later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Process {
    pid: i32,
    /// Ticks since boot at which it started (`/proc/PID/stat`, field 22).
    started: u64,
}

impl Process {
    /// The process `pid`, where there is one.
    pub(super) fn of(pid: i32) -> Option<Self> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name may hold anything, blanks and brackets too; numbers follow the last bracket.
        let fields: Vec<_> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let state = *fields.first()?;
        let started = fields.get(19)?.parse().ok()?;
        (state != "Z" && state != "X").then_some(Self { pid, started })
    }

    /// The process a file names, where it still runs.
    pub(super) fn read(file: &Path) -> Option<Self> {
        let text = std::fs::read_to_string(file).ok()?;
        let (pid, started) = text.trim().split_once(' ')?;
        let named = Self { pid: pid.parse().ok()?, started: started.parse().ok()? };
        (Self::of(named.pid) == Some(named)).then_some(named)
    }

    /// The process of this user's that runs the program called `program`, from whatever folder, with exactly these
    /// arguments. Words on a command line prove nothing: anybody may write them on his.
    pub(super) fn running(program: &OsStr, arguments: &[&OsStr]) -> Option<Self> {
        let numbers = std::fs::read_dir("/proc").ok()?.flatten();
        let mut numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        // Taken first: what is read after it speaks of that process, or of none.
        numbers.find_map(|pid| Self::of(pid).filter(|_| is_ours(pid) && runs(pid, program, arguments)))
    }

    /// The program it runs; of one that was replaced since, where that one lay.
    pub(super) fn program(self) -> Option<PathBuf> {
        program(self.pid)
    }

    /// Names the process in a file.
    pub(super) fn keep(self, file: &Path) -> std::io::Result<()> {
        let beside: PathBuf = file.with_extension("new");
        std::fs::write(&beside, format!("{} {}\n", self.pid, self.started))?;
        point::behind(Effect::FileMake);
        std::fs::rename(&beside, file)?;
        point::behind(Effect::AgentNumber);
        Ok(())
    }

    /// Ends it, by SIGTERM and, where it takes longer than an agent may, by SIGKILL. Whether it is gone now.
    pub(super) async fn end(self) -> bool {
        for (signal, within) in [(Signal::TERM, ENDS_WITHIN), (Signal::KILL, KILLED_WITHIN)] {
            let Some(pid) = Pid::from_raw(self.pid).filter(|_| Self::of(self.pid) == Some(self)) else { return true };
            // It may be gone between the look and the signal, which is as good.
            let _ = rustix::process::kill_process(pid, signal);
            point::behind(Effect::AgentEnd);
            for _ in 0..(within.as_millis() / LOOK.as_millis()) {
                if Self::of(self.pid) != Some(self) {
                    return true;
                }
                tokio::time::sleep(LOOK).await;
            }
        }
        false
    }

    /// Its number.
    pub(super) fn pid(self) -> i32 {
        self.pid
    }
}

/// Whether it is of our user, and sees the same files: an agent in a container has paths like ours.
fn is_ours(pid: i32) -> bool {
    let one = |path: String| std::fs::metadata(path).ok();
    let place = |folder: Metadata| (folder.dev(), folder.ino());
    let owner = one(format!("/proc/{pid}")).map(|folder| folder.uid());
    owner == Some(rustix::process::geteuid().as_raw())
        && one(format!("/proc/{pid}/root")).map(place) == one("/".into()).map(place)
}

fn runs(pid: i32, program_name: &OsStr, arguments: &[&OsStr]) -> bool {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    // Each word ends with a zero byte; the first is what the program was called by.
    let mut words = line.strip_suffix(&[0]).unwrap_or_default().split(|byte| *byte == 0).skip(1);
    let as_asked = arguments.iter().all(|word| words.next() == Some(word.as_bytes())) && words.next().is_none();
    as_asked && program(pid).is_some_and(|path| path.file_name() == Some(program_name))
}

fn program(pid: i32) -> Option<PathBuf> {
    let path = std::fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    let bytes = path.as_os_str().as_bytes();
    Some(PathBuf::from(OsStr::from_bytes(bytes.strip_suffix(REPLACED).unwrap_or(bytes))))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::process::CommandExt as _;

    use super::*;

    #[tokio::test]
    async fn process_is_ended_by_number_and_start_time_only() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pid");
        let seconds = format!("61.{}", std::process::id());
        let mut child = tokio::process::Command::new("sleep").arg(&seconds).spawn().unwrap();
        let pid = i32::try_from(child.id().unwrap()).unwrap();
        let process = Process::of(pid).unwrap();
        let other = Process { started: process.started + 1, ..process };
        other.keep(&file).unwrap();
        assert_eq!(Process::read(&file), None, "the number was given to another process");
        assert!(other.end().await, "nothing to end");
        assert_eq!(Process::of(pid), Some(process), "the one with the number still runs");
        process.keep(&file).unwrap();
        assert_eq!(Process::read(&file), Some(process));
        let (ended, _) = tokio::join!(process.end(), child.wait());
        assert!(ended);
        assert_eq!(Process::read(&file), None);
    }

    /// A process that ends with its test.
    fn start(program: &Path, arguments: &[&str], owner: Option<u32>) -> (std::process::Child, Process) {
        let mut command = std::process::Command::new(program);
        command.args(arguments);
        if let Some(uid) = owner {
            command.uid(uid);
        }
        // A fork of another test's may hold the new program open for writing until it runs something itself.
        let busy = |error: &std::io::Error| error.kind() == std::io::ErrorKind::ExecutableFileBusy;
        let mut tries = std::iter::repeat_with(|| command.spawn()).take(10_000);
        let child = tries.find(|child| !child.as_ref().is_err_and(busy)).unwrap().unwrap();
        let process = Process::of(i32::try_from(child.id()).unwrap()).unwrap();
        (child, process)
    }

    #[test]
    fn process_is_known_by_program_owner_and_all_its_arguments() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let (name, program) = (OsStr::new("an-agent"), folder.path().join("an-agent"));
        let another = folder.path().join("another");
        for path in [&program, &another] {
            std::fs::copy("/bin/sleep", path).unwrap();
        }
        let (one, two) = (format!("62.{}", std::process::id()), format!("63.{}", std::process::id()));
        let wanted = [OsStr::new(&one), OsStr::new(&two)];
        let found = || Process::running(name, &wanted);

        // Others with those words: another program, and one more word before them.
        let (mut stranger, _) = start(&another, &[&one, &two], None);
        let (mut longer, _) = start(&program, &["64", &one, &two], None);
        assert_eq!(found(), None);
        // One of another user's; only the superuser can start it.
        let other = rustix::process::geteuid().is_root().then(|| start(&program, &[&one, &two], Some(65534)));
        assert_eq!(found(), None);

        let (mut agent, process) = start(&program, &[&one, &two], None);
        assert_eq!(found(), Some(process));
        std::fs::remove_file(&program).unwrap();
        assert_eq!(found(), Some(process), "its program was replaced");
        assert_eq!(process.program(), Some(program));
        let mut others = other.map(|(other, _)| other);
        for child in [&mut stranger, &mut longer, &mut agent].into_iter().chain(others.as_mut()) {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        assert_eq!(found(), None);
    }
}
