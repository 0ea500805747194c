//! `file`: content, owner and mode, written whole.

use std::path::Path;

use replicator_protocol::ids::ResourceId;
use replicator_protocol::resources::{self, Kind};
use replicator_protocol::sealed_box::Consumer;
use replicator_protocol::secret::SecretBytes;
use replicator_protocol::wire::declaration::{File, Sealed, file::Body};
use replicator_protocol::wire::event::{Failure, Record};
use zeroize::Zeroizing;

use super::applier::{Applier, Done, Gone, Job, Tools, is_as_left, record};
use super::failure::{self, FailureCode, With as _, failure};
use crate::host::files::{self, FileType, Ownership, Seen};
use crate::host::users::{self, Account};
use crate::ledger::projections::resources::ALGORITHM;
use crate::planner::Drift;

/// Domain of the digest of what was written.
pub(super) const CONTENT: &str = "file.content";

/// Applies files.
pub(super) struct Files<'t>(pub(super) &'t Tools);

impl Applier for Files<'_> {
    type Declared = File;

    async fn observe(&self, _declared: &File, record: &Record, full: bool) -> Result<Vec<Drift>, Failure> {
        let path = Path::new(&record.target);
        let Some(seen) = files::look(path).map_err(|error| failure::file("look at", path, &error))? else {
            return Ok(vec![Drift::Word("gone")]);
        };
        if seen.file_type != FileType::File {
            return Ok(vec![Drift::Word("altered")]);
        }
        let mut drift = Vec::new();
        if full && !record.create_once {
            let content = files::read(path).map_err(|error| failure::file("read", path, &error))?;
            if self.0.digest(CONTENT, &content) != record.digest {
                drift.push(Drift::Word("content"));
            }
        }
        if !(record.create_once && record.found) {
            drift.extend(drifted(record, seen.ownership));
        }
        Ok(drift)
    }

    async fn change(&self, job: &Job<'_, File>) -> Result<Done, Failure> {
        let tools = self.0;
        let path = Path::new(&job.declared.path);
        let failed = |act: &'static str| move |error: std::io::Error| failure::file(act, path, &error);
        let seen = place(path)?;
        if let Some(other) = seen.filter(|seen| seen.file_type != FileType::File) {
            return Err(failure(FailureCode::WrongType)
                .with("path", path.display())
                .with("found", word(other.file_type)));
        }
        let ownership = ownership(&job.declared.owner, &job.declared.group, resources::file::mode(job.declared))?;
        let mut record = Record { create_once: job.declared.create_once, ..record(job) };
        match seen {
            Some(seen) if job.declared.create_once => {
                record.found |= job.here.is_none();
                record.digest = job.here.map(|here| here.digest.clone()).unwrap_or_default();
                record = owned(record, seen.ownership);
            }
            Some(seen) => {
                let bytes = self.content(job.id, job.declared)?;
                let before = Zeroizing::new(files::read(path).map_err(failed("read"))?);
                self.keep(job, path, &seen, (&before, &bytes), &mut record)?;
                record.digest = tools.digest(CONTENT, &bytes);
                // A container that runs holds the file it was given: that one keeps its mode as well.
                let as_new = job.taken_in && seen.ownership != ownership;
                if *before != *bytes || as_new {
                    files::write(path, &bytes, ownership).map_err(failed("write"))?;
                } else if seen.ownership != ownership {
                    files::own(path, ownership).map_err(failed("set owner and mode of"))?;
                }
                record = owned(record, ownership);
            }
            None => {
                let bytes = self.content(job.id, job.declared)?;
                record.digest = tools.digest(CONTENT, &bytes);
                files::write(path, &bytes, ownership).map_err(failed("write"))?;
                record = owned(record, ownership);
            }
        }
        is_as_left(&self.observe(job.declared, &record, true).await?, path)?;
        Ok(Done::well(record))
    }

    async fn remove(&self, record: &Record) -> Result<Gone, Failure> {
        let path = Path::new(&record.target);
        let failed = |act: &'static str| move |error: std::io::Error| failure::file(act, path, &error);
        let Some(seen) = files::look(path).map_err(failed("look at"))? else {
            return Ok(Gone::Removed("it was gone already".into()));
        };
        if record.create_once && record.found {
            return Ok(Gone::Kept("it was here first".into()));
        }
        let as_written = seen.file_type == FileType::File && {
            let content = Zeroizing::new(files::read(path).map_err(failed("read"))?);
            self.0.digest(CONTENT, &content) == record.digest
        };
        if !as_written {
            return Ok(Gone::Kept("it was changed since it was written".into()));
        }
        if record.found {
            let original = self.0.original(&record.original).map_err(failed("read the original of"))?;
            let Some((content, ownership)) = original else {
                return Ok(Gone::Kept("its original is not to be found".into()));
            };
            files::write(path, &content, ownership).map_err(failed("restore"))?;
            return Ok(Gone::Removed("what was here first is back".into()));
        }
        files::remove(path).map_err(failed("remove"))?;
        Ok(Gone::Removed(String::new()))
    }
}

impl Files<'_> {
    /// What a step is about to leave, told before it is begun.
    ///
    /// # Errors
    ///
    /// As the step itself will fail, before it writes anything.
    pub(super) fn about(&self, id: &ResourceId, declared: &File) -> Result<Record, Failure> {
        let ownership = ownership(&declared.owner, &declared.group, resources::file::mode(declared))?;
        let about = Record {
            kind: Kind::File.as_str().to_owned(),
            target: declared.path.clone(),
            digest: self.0.digest(CONTENT, &self.content(id, declared)?),
            create_once: declared.create_once,
            algorithm: ALGORITHM,
            ..Record::default()
        };
        Ok(owned(about, ownership))
    }

    /// What is to be written, its secrets opened.
    fn content(&self, id: &ResourceId, file: &File) -> Result<Zeroizing<Vec<u8>>, Failure> {
        let bytes = match &file.body {
            None => Vec::new(),
            Some(Body::Bytes(bytes)) => bytes.to_vec(),
            Some(Body::Sealed(sealed)) => self.open(id, "sealed", sealed)?.expose().to_vec(),
            Some(Body::Content(content)) => {
                let mut values = std::collections::BTreeMap::new();
                for (name, sealed) in &file.secrets {
                    values.insert(name.as_str(), self.open(id, &format!("secrets/{name}"), sealed)?);
                }
                resources::file::fill(content, |name| values.get(name).map(SecretBytes::expose))
            }
        };
        Ok(Zeroizing::new(bytes))
    }

    fn open(&self, id: &ResourceId, field: &str, sealed: &Sealed) -> Result<SecretBytes, Failure> {
        let consumer = Consumer { resource: id.clone(), field: field.to_owned() };
        let refused = |_| failure(FailureCode::CannotOpen).with("field", field).with("secret", &sealed.secret);
        self.0.opener.open(&consumer, sealed).map_err(refused)
    }

    /// Keeps what stands there: the first original for ever, what somebody else wrote since beside it, and
    /// what a running container took in until its replacement is proven.
    fn keep(
        &self,
        job: &Job<'_, File>,
        path: &Path,
        seen: &Seen,
        (before, after): (&[u8], &[u8]),
        record: &mut Record,
    ) -> Result<(), Failure> {
        let failed = |error: std::io::Error| failure::file("keep what stands at", path, &error);
        match job.here {
            // What was left as it was found until now is found still.
            here if here.is_none_or(|here| here.found && here.original.is_empty()) => {
                record.original = self.0.keep_original(path, seen, before).map_err(failed)?;
                record.found = true;
                self.0.note_original(job, &job.declared.path, &record.original)?;
            }
            // What is to stand there already loses nothing.
            Some(here) if before != after && self.0.digest(CONTENT, before) != here.digest => {
                self.0.keep_original(path, seen, before).map_err(failed)?;
            }
            Some(_) | None => {}
        }
        if job.taken_in { self.0.keep_previous(path).map_err(failed) } else { Ok(()) }
    }
}

/// Looks at a path that is to be written, and at the way to it.
pub(super) fn place(path: &Path) -> Result<Option<Seen>, Failure> {
    let failed = |error: std::io::Error| failure::file("look at", path, &error);
    let parent = path.parent().unwrap_or(path);
    if let Some(link) = files::unsafe_parent(path).map_err(failed)? {
        return Err(failure(FailureCode::UnsafeParent).with("path", path.display()).with("link", link.display()));
    }
    if files::look(parent).map_err(failed)?.is_none() {
        return Err(failure(FailureCode::ParentMissing).with("path", path.display()));
    }
    files::look(path).map_err(failed)
}

/// Numeric owner, group and mode of what is declared.
pub(super) fn ownership(owner: &str, group: &str, mode: u32) -> Result<Ownership, Failure> {
    let id = |account, name: &str| match users::id(account, name) {
        Ok(Some(id)) => Ok(id),
        Ok(None) | Err(_) => Err(failure(FailureCode::UnknownOwner).with("name", name)),
    };
    Ok(Ownership { uid: id(Account::User, owner)?, gid: id(Account::Group, group)?, mode })
}

/// Notes in a record whose the thing is.
pub(super) fn owned(record: Record, ownership: Ownership) -> Record {
    let Ownership { uid, gid, mode } = ownership;
    Record { owner: uid.to_string(), group: gid.to_string(), mode, ..record }
}

/// How owner and mode differ from what was left.
pub(super) fn drifted(record: &Record, seen: Ownership) -> Vec<Drift> {
    let owner = (record.owner.as_str(), record.group.as_str()) != (&seen.uid.to_string(), &seen.gid.to_string());
    let mut drift = Vec::new();
    drift.extend(owner.then_some(Drift::Word("owner")));
    drift.extend((record.mode != seen.mode).then_some(Drift::Word("mode")));
    drift
}

/// A word for what stands at a path.
pub(super) fn word(file_type: FileType) -> &'static str {
    match file_type {
        FileType::File => "file",
        FileType::Directory => "directory",
        FileType::Link => "symbolic link",
        FileType::Other => "device, socket or pipe",
    }
}
