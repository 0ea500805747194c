//! What is kept aside: originals for ever, previous content until its replacement is proven.

use std::io;
use std::path::{Path, PathBuf};

use super::applier::Tools;
use crate::durable;
use crate::host::files;

impl Tools {
    /// Keeps what was found at `path` under `originals/`, once for each content, and returns its name there: a
    /// keyed digest, since the file may hold a secret. The copy has the owner and mode of what it is a copy of.
    pub(super) fn keep_original(&self, path: &Path, seen: &files::Seen, content: &[u8]) -> io::Result<String> {
        let name = hex::encode(self.digest("original", content));
        let copy = private(self.layout.originals())?.join(&name);
        if files::look(&copy)?.is_none() {
            tracing::info!(path = %path.display(), original = name, "keeping what was found");
            files::write(&copy, content, seen.ownership)?;
        }
        Ok(name)
    }

    /// Whether something of this content was found once, and kept.
    pub(super) fn is_original(&self, content: &[u8]) -> bool {
        let copy = self.layout.originals().join(hex::encode(self.digest("original", content)));
        // Whoever cannot tell takes it for somebody else's.
        !matches!(files::look(&copy), Ok(None))
    }

    /// An original, with its owner and mode.
    pub(super) fn original(&self, name: &str) -> io::Result<Option<(Vec<u8>, files::Ownership)>> {
        let copy = self.layout.originals().join(name);
        match files::look(&copy)? {
            Some(seen) if !name.is_empty() => Ok(Some((files::read(&copy)?, seen.ownership))),
            Some(_) | None => Ok(None),
        }
    }

    /// Keeps what stands at `path` until [`Tools::drop_previous`], unless something is kept already: that is
    /// what the running container took in. Kept as a second name of the same file, so that what comes back is
    /// the very file the container holds.
    pub(super) fn keep_previous(&self, path: &Path) -> io::Result<()> {
        private(self.layout.previous())?;
        let kept = self.previous_at(path);
        if files::look(&kept)?.is_none() { files::link(path, &kept) } else { Ok(()) }
    }

    /// Puts back what stood at `path` before, and says whether there was anything. It stays kept until the
    /// ledger says so too.
    pub(super) fn restore_previous(&self, path: &Path) -> io::Result<bool> {
        let kept = self.previous_at(path);
        if files::look(&kept)?.is_none() {
            return Ok(false);
        }
        files::link(&kept, path)?;
        Ok(true)
    }

    /// Whether what stands at `path` is what was kept of it.
    pub(super) fn previous_is_back(&self, path: &Path) -> io::Result<bool> {
        let kept = self.previous_at(path);
        let (Some(here), Some(before)) = (files::look(path)?, files::look(&kept)?) else { return Ok(false) };
        Ok(here.inode == before.inode
            || (here.ownership == before.ownership && files::read(path)? == files::read(&kept)?))
    }

    /// Forgets what stood at `path` before.
    pub(super) fn drop_previous(&self, path: &Path) -> io::Result<()> {
        let copy = self.previous_at(path);
        if files::look(&copy)?.is_some() { files::remove(&copy) } else { Ok(()) }
    }

    fn previous_at(&self, path: &Path) -> PathBuf {
        use std::os::unix::ffi::OsStrExt as _;
        self.layout.previous().join(hex::encode(self.digest("path", path.as_os_str().as_bytes())))
    }
}

fn private(folder: PathBuf) -> io::Result<PathBuf> {
    durable::folder(&folder).map_err(|error| error.source)?;
    Ok(folder)
}
