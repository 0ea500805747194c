//! Files and folders: looked at without following links, written whole or not at all.

use std::fs::{self, File, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, fchown};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::point::{Effect, around};
use super::unfinished::Unfinished;

/// Most that is read of one file, in bytes: more than any declaration can carry.
pub const READ_MAX: u64 = 64 * 1024 * 1024;
/// Most links followed from one to the next, as the kernel does.
const LINKS_MAX: u32 = 40;
/// What a file on its way into its place is called.
const PART: Unfinished = Unfinished { begins: ".replicator-", random: 16, ends: ".part" };
/// Bits of a mode that are compared and set.
const MODE_BITS: u32 = 0o7777;

/// What stands at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileType {
    /// A regular file.
    File,
    /// A folder.
    Directory,
    /// A symbolic link, whatever it points at.
    Link,
    /// A device, a socket, a pipe.
    Other,
}

/// Owner and permission bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ownership {
    /// Numeric user.
    pub uid: u32,
    /// Numeric group.
    pub gid: u32,
    /// Permission bits, with setuid, setgid and sticky.
    pub mode: u32,
}

/// One path, seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// What it is.
    pub file_type: FileType,
    /// Whose it is.
    pub ownership: Ownership,
    /// Device and inode.
    pub inode: (u64, u64),
    /// Bytes.
    pub size: u64,
}

/// Looks at `path` itself; `None` where nothing is there.
///
/// # Errors
///
/// Where the file system could not tell.
pub fn look(path: &Path) -> io::Result<Option<Seen>> {
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        // Nothing lies below a file.
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    let file_type = metadata.file_type();
    Ok(Some(Seen {
        file_type: if file_type.is_file() {
            FileType::File
        } else if file_type.is_dir() {
            FileType::Directory
        } else if file_type.is_symlink() {
            FileType::Link
        } else {
            FileType::Other
        },
        ownership: Ownership { uid: metadata.uid(), gid: metadata.gid(), mode: metadata.mode() & MODE_BITS },
        inode: (metadata.dev(), metadata.ino()),
        size: metadata.len(),
    }))
}

/// Opens the regular file at `path` for reading: nothing that could be waited for, and no device, of which the mere
/// opening may do something, whatever somebody has put there since it was looked at. With [`OFlags::NOFOLLOW`] in
/// `links`, no link either.
fn open(path: &Path, links: OFlags) -> io::Result<File> {
    let found = File::from(rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC | links, Mode::empty())?);
    if !found.metadata()?.is_file() {
        return Err(io::Error::from(Errno::NXIO));
    }
    // What was found, whatever is at the path by now: see O_PATH in open(2).
    File::open(format!("/proc/self/fd/{}", found.as_raw_fd()))
}

/// Whether [`open`] found something else than a regular file, or nothing.
fn is_no_file(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    errno.is_some_and(|errno| [Errno::LOOP, Errno::NXIO, Errno::NOENT].contains(&errno))
}

/// The content of a regular file.
///
/// # Errors
///
/// Where it could not be read, is no regular file, or is above 64 MiB.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path, OFlags::empty())?.take(READ_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > READ_MAX {
        return Err(io::Error::other("the file is larger than 64 MiB"));
    }
    Ok(bytes)
}

/// Where `path` leads: every link in it followed, the last one too. What is not there is taken as it is written.
///
/// # Errors
///
/// Where the file system could not tell, or one link leads to the next without end.
pub fn resolve(path: &Path) -> io::Result<PathBuf> {
    let mut real = PathBuf::from("/");
    let mut rest: Vec<PathBuf> = vec![path.to_owned()];
    let mut links = 0;
    while let Some(next) = rest.pop() {
        let mut parts = next.components();
        let Some(part) = parts.next() else { continue };
        rest.push(parts.as_path().to_owned());
        let name = match part {
            Component::RootDir => {
                real = PathBuf::from("/");
                continue;
            }
            Component::ParentDir => {
                real.pop();
                continue;
            }
            Component::CurDir | Component::Prefix(_) => continue,
            Component::Normal(name) => name,
        };
        let here = real.join(name);
        match fs::read_link(&here) {
            Ok(_) if links == LINKS_MAX => return Err(io::Error::other("too many links on the way")),
            Ok(target) => {
                links += 1;
                rest.push(target);
            }
            Err(error) if is_no_link(&error) => real = here,
            Err(error) => return Err(error),
        }
    }
    Ok(real)
}

fn is_no_link(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidInput, NotADirectory, NotFound};
    matches!(error.kind(), InvalidInput | NotFound | NotADirectory)
}

/// The first link on the way to `path` that somebody else could turn: one that is not root's, leads through such
/// a link, or ends at what is not root's or is writable by others.
///
/// # Errors
///
/// Where the file system could not tell.
pub fn unsafe_parent(path: &Path) -> io::Result<Option<PathBuf>> {
    for parent in path.ancestors().skip(1) {
        if is_turnable(parent, LINKS_MAX)? {
            return Ok(Some(parent.to_owned()));
        }
    }
    Ok(None)
}

/// Whether `path` is a link, and one that somebody else could turn.
fn is_turnable(path: &Path, follow: u32) -> io::Result<bool> {
    let Some(Seen { file_type: FileType::Link, ownership, .. }) = look(path)? else { return Ok(false) };
    let target = fs::metadata(path)?;
    if ownership.uid != 0 || target.uid() != 0 || target.mode() & 0o022 != 0 || follow == 0 {
        return Ok(true);
    }
    let leads_to = path.parent().unwrap_or(path).join(fs::read_link(path)?);
    leads_to.ancestors().try_fold(false, |turnable, on_the_way| Ok(turnable || is_turnable(on_the_way, follow - 1)?))
}

/// Writes `bytes` to `path` whole: beside it, owner and mode set, synced, then renamed into its place.
///
/// # Errors
///
/// The file system's; `path` is then as it was before.
pub fn write(path: &Path, bytes: &[u8], ownership: Ownership) -> io::Result<()> {
    let folder = path.parent().ok_or_else(|| io::Error::other("the path has no folder"))?;
    around(Effect::FileWrite, || {
        let mut beside = PART.builder().tempfile_in(folder)?;
        hold(beside.as_file());
        around(Effect::FilePart, || {
            beside.write_all(bytes)?;
            fchown(beside.as_file(), Some(ownership.uid), Some(ownership.gid))?;
            beside.as_file().set_permissions(Permissions::from_mode(ownership.mode))?;
            beside.as_file().sync_all()
        })?;
        beside.persist(path).map_err(|error| error.error)?;
        sync(folder)
    })
}

/// Makes `other` a second name of the file at `path`, replacing what stands there. Where they lie on two file
/// systems it becomes a copy.
///
/// # Errors
///
/// The file system's; `other` is then as it was before.
pub fn link(path: &Path, other: &Path) -> io::Result<()> {
    let folder = other.parent().ok_or_else(|| io::Error::other("the path has no folder"))?;
    around(Effect::FileLink, || {
        let file = open(path, OFlags::NOFOLLOW)?;
        hold(&file);
        match PART.builder().make_in(folder, |beside| fs::hard_link(path, beside)) {
            Ok(beside) => {
                // Renaming one name of a file over another name of it leaves both (POSIX): the drop removes one.
                fs::rename(beside.path(), other)?;
                sync(folder)
            }
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => copy(path, other),
            Err(error) => Err(error),
        }
    })
}

/// Says, as long as the file is open, that a write is under way. Where locks are not to be had the sweep has none
/// either, and leaves what it finds.
fn hold(file: &File) {
    let _ = file.try_lock();
}

/// Removes from `folder` what writes that were cut off have left, and says how much. A write that is under way, in
/// this process or another, keeps its file.
///
/// # Errors
///
/// The file system's; some may be left.
pub fn sweep(folder: &Path) -> io::Result<usize> {
    let mut swept = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if !PART.is(&entry.file_name()) {
            continue;
        }
        let file = match open(&entry.path(), OFlags::NOFOLLOW) {
            Ok(file) => file,
            Err(error) if is_no_file(&error) => continue,
            Err(error) => return Err(error),
        };
        // Of what was opened: another may have its name by now.
        let opened = file.metadata()?;
        let inode = look(&entry.path())?.map(|seen| seen.inode);
        if inode == Some((opened.dev(), opened.ino())) && file.try_lock().is_ok() {
            remove(&entry.path())?;
            swept += 1;
        }
    }
    Ok(swept)
}

fn copy(path: &Path, other: &Path) -> io::Result<()> {
    let seen = look(path)?.ok_or(io::ErrorKind::NotFound)?;
    write(other, &read(path)?, seen.ownership)
}

/// Sets owner and mode of what stands at `path`, which is no link.
///
/// # Errors
///
/// The file system's; owner may be set and mode not.
pub fn own(path: &Path, ownership: Ownership) -> io::Result<()> {
    around(Effect::FileOwn, || {
        std::os::unix::fs::lchown(path, Some(ownership.uid), Some(ownership.gid))?;
        // Setting the owner clears setuid and setgid, so the mode comes second.
        fs::set_permissions(path, Permissions::from_mode(ownership.mode))
    })
}

/// Removes a file; one that is gone already is no error.
///
/// # Errors
///
/// The file system's.
pub fn remove(path: &Path) -> io::Result<()> {
    around(Effect::FileRemove, || match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => path.parent().map_or(Ok(()), sync),
    })
}

/// Makes one folder; its parent must be there.
///
/// # Errors
///
/// The file system's.
pub fn make_directory(path: &Path, ownership: Ownership) -> io::Result<()> {
    around(Effect::DirectoryMake, || {
        fs::create_dir(path)?;
        std::os::unix::fs::lchown(path, Some(ownership.uid), Some(ownership.gid))?;
        fs::set_permissions(path, Permissions::from_mode(ownership.mode))?;
        path.parent().map_or(Ok(()), sync)
    })
}

/// How many entries a folder holds.
///
/// # Errors
///
/// The file system's.
pub fn entries(path: &Path) -> io::Result<usize> {
    Ok(fs::read_dir(path)?.count())
}

/// Removes an empty folder, and never anything in it.
///
/// # Errors
///
/// The file system's, [`io::ErrorKind::DirectoryNotEmpty`] among them.
pub fn remove_directory(path: &Path) -> io::Result<()> {
    around(Effect::DirectoryRemove, || {
        fs::remove_dir(path)?;
        path.parent().map_or(Ok(()), sync)
    })
}

fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests;
