//! Processes by number *and* start time: a number alone may be somebody else's by now.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::{Pid, Signal};

use crate::point::{self, Effect};

/// How long an agent may take to end before it is killed: it finishes the resource under way.
const END: Duration = Duration::from_secs(30);
/// How often it is looked whether it ended.
const LOOK: Duration = Duration::from_millis(100);

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

    /// The process whose arguments end with `last`, where one runs.
    pub(super) fn with_arguments(last: &[&OsStr]) -> Option<Self> {
        let mut end = vec![0];
        last.iter().for_each(|word| end.extend(word.as_bytes().iter().chain(&[0])));
        let numbers = std::fs::read_dir("/proc").ok()?.flatten();
        let mut numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        let is_it = |pid: &i32| std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.ends_with(&end));
        numbers.find_map(|pid| Self::of(pid).filter(|_| is_it(&pid)))
    }

    /// Names the process in a file.
    pub(super) fn keep(self, file: &Path) -> std::io::Result<()> {
        let beside: PathBuf = file.with_extension("new");
        std::fs::write(&beside, format!("{} {}\n", self.pid, self.started))?;
        std::fs::rename(&beside, file)?;
        point::behind(Effect::AgentNumber);
        Ok(())
    }

    /// Ends it, by SIGTERM and after 30 s by SIGKILL. Whether it is gone now.
    pub(super) async fn end(self) -> bool {
        for signal in [Signal::TERM, Signal::KILL] {
            let Some(pid) = Pid::from_raw(self.pid).filter(|_| Self::of(self.pid) == Some(self)) else { return true };
            // It may be gone between the look and the signal, which is as good.
            let _ = rustix::process::kill_process(pid, signal);
            point::behind(Effect::AgentEnd);
            for _ in 0..(END.as_millis() / LOOK.as_millis()) {
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

#[cfg(test)]
mod tests {
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
        assert_eq!(Process::with_arguments(&[OsStr::new(&seconds)]), Some(process));
        assert_eq!(Process::with_arguments(&[OsStr::new(&seconds[1..])]), None);
        let (ended, _) = tokio::join!(process.end(), child.wait());
        assert!(ended);
        assert_eq!(Process::read(&file), None);
    }
}
