//! Enrolment tokens this host has used: each is good for one use, whatever came of it.

use std::path::Path;

use replicator_protocol::enrolment::Token;
use replicator_protocol::refusal::{Code, Refusal};

use super::enrolment::EnrolError;
use crate::durable;

/// Their folder under `trust/`: one empty file for each, named by its id.
const FOLDER: &str = "tokens";

/// Notes that `token` is used from now on. That is on disk when this returns.
///
/// # Errors
///
/// [`EnrolError::Refused`] with the code `spent-token` where it was used before; [`EnrolError::File`].
pub(super) fn spend(trust: &Path, token: &Token) -> Result<(), EnrolError> {
    let folder = trust.join(FOLDER);
    let id = hex::encode(token.id);
    let path = folder.join(&id);
    if durable::read(&path)?.is_some() {
        return Err(Refusal::new(Code::SpentToken).with("token", id).into());
    }
    durable::folder(&folder)?;
    Ok(durable::replace(&path, b"", 0o600)?)
}
