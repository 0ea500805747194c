//! Enrolment tokens this host has used: each is good for one use, whatever came of it.

use std::path::Path;

use crate::durable::{self, FileError};

/// Their folder under `trust/`: one empty file for each, named by its id.
const FOLDER: &str = "tokens";

/// Notes that the token `id` is used from now on, which is on disk when this returns; false where it was used before.
///
/// # Errors
///
/// [`FileError`]; whether it is noted is then open.
pub(super) fn spend(trust: &Path, id: &str) -> Result<bool, FileError> {
    let folder = trust.join(FOLDER);
    let path = folder.join(id);
    if durable::read(&path)?.is_some() {
        return Ok(false);
    }
    durable::folder(&folder)?;
    durable::replace(&path, b"", 0o600)?;
    Ok(true)
}
