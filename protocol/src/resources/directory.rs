//! `directory`: owner and mode of one folder; what it holds is not its business.

use super::{Fault, text};
use crate::wire::declaration::Directory;

/// Mode of a folder that gives none.
pub const DEFAULT_MODE: u32 = 0o755;

pub(super) fn faults(directory: &Directory) -> Vec<Fault> {
    let mut faults = Vec::new();
    text::path("path", &directory.path, &mut faults);
    text::owner("owner", &directory.owner, &mut faults);
    text::owner("group", &directory.group, &mut faults);
    text::mode("mode", directory.mode, &mut faults);
    faults
}
