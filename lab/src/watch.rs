//! The kernel's own word on what was written in a folder and below it.

use std::collections::BTreeMap;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use anyhow::Result;
use rustix::fs::inotify::{self, CreateFlags, Reader, WatchFlags};
use rustix::io::Errno;

/// Room for the events of one read.
const BUFFER: usize = 64 * 1024;

/// Everything that writes: content, names, owners and permissions. Reading is not asked for.
const WRITES: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::MODIFY)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::MOVE)
    .union(WatchFlags::DELETE);

/// A folder, watched with every folder that was below it when this began.
pub struct Watch {
    kernel: OwnedFd,
    folders: BTreeMap<i32, PathBuf>,
}

impl Watch {
    /// Begins to watch.
    ///
    /// # Errors
    ///
    /// The kernel refuses, or a folder cannot be read.
    pub fn below(folder: &Path) -> Result<Self> {
        let mut watch =
            Self { kernel: inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?, folders: BTreeMap::new() };
        watch.add(folder)?;
        Ok(watch)
    }

    fn add(&mut self, folder: &Path) -> Result<()> {
        let number = inotify::add_watch(&self.kernel, folder, WRITES)?;
        self.folders.insert(number, folder.to_owned());
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                self.add(&entry.path())?;
            }
        }
        Ok(())
    }

    /// Every path written since the last time this was asked, as often as it was; the kernel tells of a write
    /// before the writer goes on.
    ///
    /// # Errors
    ///
    /// The kernel could not say, or had more to say than it could keep.
    pub fn take(&self) -> Result<Vec<PathBuf>> {
        let mut buffer = [MaybeUninit::uninit(); BUFFER];
        let mut reader = Reader::new(&self.kernel, &mut buffer);
        let mut paths = Vec::new();
        loop {
            let event = match reader.next() {
                Ok(event) => event,
                Err(Errno::AGAIN) => return Ok(paths),
                Err(error) => return Err(error.into()),
            };
            anyhow::ensure!(!event.events().contains(inotify::ReadFlags::QUEUE_OVERFLOW), "events were lost");
            let Some(folder) = self.folders.get(&event.wd()) else { continue };
            let name = event.file_name().map(|name| name.to_string_lossy().into_owned());
            paths.push(name.map_or_else(|| folder.clone(), |name| folder.join(name)));
        }
    }
}
