//! What stands as it is declared is taken for the agent's own, where no record speaks of it: after a damaged ledger all
//! of it, and always a file whose content holds a secret. Nobody else can have written that one but an agent that was
//! here before.
//!
//! What was found at a path before the agent wrote there is kept by its content, outside the ledger: what equals such
//! an original is not taken for ours. See `docs/decisions/0008-after-a-damaged-ledger.md`.

use std::path::Path;
use std::sync::Arc;

use replicator_protocol::resources::Resource;
use replicator_protocol::wire::declaration::{file::Body, resource};
use replicator_protocol::wire::event::Record;
use zeroize::Zeroizing;

use super::super::applier::Tools;
use super::super::directory::Directories;
use super::super::file::{Files, drifted};
use crate::host::files::{self, FileType};
use crate::ledger::projections::resources::Resources;

/// Adds to `ledger`, which does not know of them, what a step on each declared file with a secret leaves; where the
/// ledger was lost, on each declared file and folder.
pub(super) fn assume_own(tools: &Tools, declared: &[Resource], ledger: &mut Arc<Resources>) {
    for resource in declared {
        let name = resource.id.to_string();
        if ledger.applied.contains_key(&name) || ledger.loose.contains_key(&name) {
            continue;
        }
        // An original of a secret would be put back, and the secret be left in clear.
        if !holds_secret(resource) && (!ledger.lost || was_found(tools, resource)) {
            continue;
        }
        let about = match &resource.body {
            resource::Kind::File(file) => Files(tools).about(&resource.id, file),
            resource::Kind::Directory(directory) => Directories::about(directory),
            resource::Kind::Network(_) | resource::Kind::Container(_) => continue,
        };
        // Where it cannot be known, the step fails for the same reason.
        if let Ok(about) = about
            && !is_another_folder(&about)
        {
            Arc::make_mut(ledger).announce(&name, &about);
        }
    }
}

/// Whether a secret is part of what is written whole: a file that is written once stays whatever it is.
fn holds_secret(resource: &Resource) -> bool {
    let resource::Kind::File(file) = &resource.body else { return false };
    !file.create_once && (matches!(file.body, Some(Body::Sealed(_))) || !file.secrets.is_empty())
}

/// Whether a folder stands there that is not as declared. A file is told by its content, and a folder by nothing but
/// owner and mode: one that others share, or made for something else, has others as a rule.
fn is_another_folder(about: &Record) -> bool {
    let seen = files::look(Path::new(&about.target)).ok().flatten();
    seen.is_some_and(|seen| seen.file_type == FileType::Directory && !drifted(about, seen.ownership).is_empty())
}

/// Whether what stands there is what was once found there, or elsewhere, and kept.
fn was_found(tools: &Tools, resource: &Resource) -> bool {
    let path = Path::new(resource.target());
    resource.kind().has_path()
        && matches!(files::look(path), Ok(Some(seen)) if seen.file_type == FileType::File)
        && files::read(path).is_ok_and(|content| tools.is_original(&Zeroizing::new(content)))
}
