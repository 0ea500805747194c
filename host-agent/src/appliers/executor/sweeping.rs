//! What writes that were cut off have left beside their files: one may hold a secret.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use replicator_protocol::resources::{Kind, Resource};

use super::super::applier::Tools;
use crate::host::files;
use crate::ledger::projections::resources::{Resources, kind};

/// Sweeps the folder of every file that is declared, applied or was about to be, and those of what is kept aside.
/// What cannot be swept now is swept at the next full look.
pub(super) fn sweep(tools: &Tools, declared: &[Resource], ledger: &Resources) {
    let declared = declared.iter().filter(|resource| resource.kind() == Kind::File).map(Resource::target);
    let recorded = ledger.applied.values().flat_map(|applied| std::iter::once(&applied.record).chain(&applied.before));
    let files = recorded.chain(ledger.loose.values().flatten()).filter(|record| kind(record) == Some(Kind::File));
    let paths: BTreeSet<&str> = declared.chain(files.map(|record| record.target.as_str())).collect();
    let folders: BTreeSet<PathBuf> = paths.into_iter().map(Path::new).filter_map(safe_folder).collect();
    for folder in folders.into_iter().chain([tools.layout.originals(), tools.layout.previous()]) {
        match files::sweep(&folder) {
            Ok(0) => {}
            Ok(swept) => tracing::info!(folder = %folder.display(), swept, "removed what a cut-off write had left"),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => tracing::warn!(folder = %folder.display(), %error, "could not remove what writes have left"),
        }
    }
}

/// The folder of a file, unless somebody else could turn the way to it: nothing is ever written there.
fn safe_folder(path: &Path) -> Option<PathBuf> {
    matches!(files::unsafe_parent(path), Ok(None)).then(|| path.parent().map(Path::to_owned)).flatten()
}
