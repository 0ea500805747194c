//! Named points around every effect, at which a test makes the agent fail or die.
//!
//! A debug build reads `REPLICATOR_FAULT_POINT`, written `EFFECT.before` or `EFFECT.after`, then `#N` for the
//! Nth time (the first where it is left out), then `:error` or `:kill`. A release build reads nothing.

use std::io;

use replicator_protocol::closed_list;

closed_list! {
    /// Everything the agent does to a machine; its word is its name in `REPLICATOR_FAULT_POINT`.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    #[allow(missing_docs, reason = "each name says it")]
    pub enum Effect {
        FileWrite = "file.write",
        FilePart = "file.part",
        FileLink = "file.link",
        FileOwn = "file.own",
        FileRemove = "file.remove",
        DirectoryMake = "directory.make",
        DirectoryRemove = "directory.remove",
        NetworkCreate = "network.create",
        NetworkRemove = "network.remove",
        ImagePull = "image.pull",
        ContainerCreate = "container.create",
        ContainerStart = "container.start",
        ContainerStop = "container.stop",
        ContainerRename = "container.rename",
        ContainerRemove = "container.remove",
        ContainerSignal = "container.signal",
        OwnWrite = "own.write",
        LedgerMake = "ledger.make",
        LedgerRotate = "ledger.rotate",
        LedgerDrop = "ledger.drop",
        LedgerSetAside = "ledger.set-aside",
        LedgerPutBack = "ledger.put-back",
        EventsPublish = "events.publish",
    }
}

/// Which side of an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Nothing has happened yet.
    Before,
    /// It has happened, and nothing was recorded yet.
    After,
}

/// Passes the point on `side` of `effect`.
///
/// # Errors
///
/// Only in a debug build told so: an error in the place of the effect's own.
pub fn reach(effect: Effect, side: Side) -> io::Result<()> {
    #[cfg(debug_assertions)]
    faults::strike(effect, side)?;
    #[cfg(not(debug_assertions))]
    let _ = (effect, side);
    Ok(())
}

/// Passes both points around `act`.
///
/// # Errors
///
/// Those of `act`, and of [`reach`].
pub fn around<T>(effect: Effect, act: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    reach(effect, Side::Before)?;
    let done = act()?;
    reach(effect, Side::After)?;
    Ok(done)
}

#[cfg(debug_assertions)]
pub(crate) mod faults {
    use std::io;
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::{Effect, Side};

    const VARIABLE: &str = "REPLICATOR_FAULT_POINT";

    struct Fault {
        effect: Effect,
        side: Side,
        left: AtomicU32,
        kill: bool,
    }

    static FAULT: LazyLock<Option<Fault>> = LazyLock::new(|| parse(&std::env::var(VARIABLE).ok()?));

    fn parse(text: &str) -> Option<Fault> {
        let (place, act) = text.rsplit_once(':')?;
        let (place, nth) = place.split_once('#').unwrap_or((place, "1"));
        let (effect, side) = place.rsplit_once('.')?;
        Some(Fault {
            effect: Effect::ALL.iter().copied().find(|known| known.as_str() == effect)?,
            side: match side {
                "before" => Side::Before,
                "after" => Side::After,
                _ => return None,
            },
            left: AtomicU32::new(nth.parse().ok()?),
            kill: act == "kill",
        })
    }

    pub(super) fn strike(effect: Effect, side: Side) -> io::Result<()> {
        #[cfg(test)]
        armed::strike(effect, side)?;
        FAULT.as_ref().map_or(Ok(()), |fault| fault.strike((effect, side), die))
    }

    impl Fault {
        fn strike(&self, (effect, side): (Effect, Side), die: fn()) -> io::Result<()> {
            let here = (self.effect, self.side) == (effect, side);
            if !here || self.left.fetch_sub(1, Ordering::SeqCst) != 1 {
                return Ok(());
            }
            if self.kill {
                die();
            }
            Err(io::Error::other(format!("a fault was asked for at `{}`", effect.as_str())))
        }
    }

    /// As a power cut would: no destructor runs.
    fn die() {
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    }

    /// The fault of one test, which has a thread of its own.
    #[cfg(test)]
    pub(crate) mod armed {
        use std::cell::RefCell;
        use std::io;

        use super::super::{Effect, Side};
        use super::{Fault, parse};

        thread_local! {
            static FAULT: RefCell<Option<Fault>> = const { RefCell::new(None) };
        }

        pub(super) fn strike(effect: Effect, side: Side) -> io::Result<()> {
            // Nothing but the test's own walk dies.
            let die = || std::panic::resume_unwind(Box::new("killed"));
            FAULT.with_borrow(|fault| fault.as_ref().map_or(Ok(()), |fault| fault.strike((effect, side), die)))
        }

        /// Arms a fault, written as in `REPLICATOR_FAULT_POINT`.
        pub(crate) fn arm(text: &str) {
            FAULT.set(Some(parse(text).unwrap()));
        }

        /// Takes it away again, and says whether it struck.
        pub(crate) fn disarm() -> bool {
            // It counts on, and wraps, where its point is passed again.
            FAULT.take().is_some_and(|fault| fault.left.into_inner().wrapping_sub(1) > u32::MAX / 2)
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn fault_names_effect_side_count_and_act() {
            let fault = parse("container.start.after#2:kill").unwrap();
            assert_eq!((fault.effect, fault.side, fault.kill), (Effect::ContainerStart, Side::After, true));
            assert_eq!(fault.left.into_inner(), 2);
            assert!(parse("container.start.between:kill").is_none());
            assert!(parse("nothing.before:error").is_none());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    /// What would reach the machine past every point.
    const PAST: &[&str] = &[
        "fs::write",
        "fs::rename",
        "fs::remove_",
        "fs::create_dir",
        "fs::set_permissions",
        "fs::hard_link",
        "fs::copy",
        "File::create",
        "OpenOptions",
        "DirBuilder",
        "Command::new",
        "bollard::Docker",
    ];
    /// Rooms whose own files are none of the machine's, and which touch only those.
    const OWN: &[&str] = &["host", "ledger", "inbox", "keys", "cli", "durable.rs", "testing.rs"];

    fn sources(folder: &Path) -> Vec<PathBuf> {
        let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        paths.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] }).collect()
    }

    #[test]
    fn no_effect_passes_by_its_point() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let mut read = 0;
        for path in sources(&root) {
            let room = path.strip_prefix(&root).unwrap().components().next().unwrap().as_os_str().to_owned();
            let tests = path.ends_with("tests.rs") || path.components().any(|part| part.as_os_str() == "tests");
            if tests || OWN.iter().any(|own| room == *own) {
                continue;
            }
            read += 1;
            let text = std::fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            let found: Vec<_> = PAST.iter().filter(|past| code.contains(**past)).collect();
            assert!(found.is_empty(), "`{}` reaches the machine by itself: {found:?}", path.display());
        }
        assert!(read > 20, "the control: it did read");
    }
}
