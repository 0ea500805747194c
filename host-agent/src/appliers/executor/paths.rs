//! Whose is what stands at a path: this agent's own, by a record or by a step that was cut off, or somebody else's.
//!
//! Paths come in; out goes the record that what stands there fits. Only reads. A record alone is not enough: a step
//! may have written and died, or failed, before it could say so, and what it left is still the agent's own.

use std::path::Path;

use bytes::Bytes;
use replicator_protocol::ids::ResourceId;
use replicator_protocol::resources::{Kind, Resource};
use replicator_protocol::wire::event::{Failure, Record};
use zeroize::Zeroizing;

use super::super::applier::Tools;
use super::super::failure;
use super::super::file::CONTENT;
use crate::host::files::{self, FileType};
use crate::ledger::projections::resources::{Resources, kind};
use crate::planner::Left;

/// What the ledger knows of paths, beside what stands at them.
#[derive(Clone, Copy)]
pub(super) struct Paths<'a> {
    pub(super) tools: &'a Tools,
    pub(super) ledger: &'a Resources,
}

/// Where a record comes from.
enum Said<'a> {
    /// It was read back, at some time.
    Recorded(&'a Record),
    /// A step announced that it would leave this.
    Announced(&'a Record),
}

impl<'a> Paths<'a> {
    /// The record of what stands at `path`, where that is the agent's own, made for `resource` or for another: the
    /// one it equals, else the one that was read back there last, for it may have been changed by hand since.
    ///
    /// # Errors
    ///
    /// What stands there could not be read, so nobody can tell.
    pub(super) fn own(&self, resource: &str, path: &str) -> Result<Option<&'a Record>, Failure> {
        let said = self.said(resource, path);
        if said.is_empty() {
            return Ok(None);
        }
        let at = Path::new(path);
        let seen = files::look(at).map_err(|error| failure::file("look at", at, &error))?;
        let (kind, digest) = match seen.map(|seen| seen.file_type) {
            None => return Ok(gone(&said)),
            Some(FileType::File) => {
                let content = files::read(at).map_err(|error| failure::file("read", at, &error))?;
                (Kind::File, self.tools.digest(CONTENT, &Zeroizing::new(content)))
            }
            // What a folder holds is none of its own.
            Some(FileType::Directory) => (Kind::Directory, Bytes::new()),
            Some(FileType::Link | FileType::Other) => return Ok(None),
        };
        let of_kind = || said.iter().filter(|said| said.record().kind == kind.as_str());
        let equal = of_kind().find(|said| said.is_left() && said.record().digest == digest);
        Ok(equal.map(Said::record).or_else(|| of_kind().find_map(Said::recorded)))
    }

    /// Every record of something that stands at a path, or may, with the resource it is of.
    pub(super) fn all(&self) -> impl Iterator<Item = (&'a str, &'a Record)> + use<'a> {
        let recorded = self.ledger.applied.iter().map(|(name, applied)| (name.as_str(), &applied.record));
        let loose = self.ledger.loose.iter();
        let loose = loose.flat_map(|(name, records)| records.iter().map(move |record| (name.as_str(), record)));
        recorded.chain(loose).filter(|(_, record)| kind(record).is_some_and(Kind::has_path))
    }

    /// Everything that was ever said of `path` and may still be so, what `resource` itself says first.
    fn said(&self, resource: &str, path: &str) -> Vec<Said<'a>> {
        let recorded = self.ledger.applied.iter().flat_map(|(name, applied)| {
            std::iter::once(&applied.record).chain(&applied.before).map(move |record| (name, Said::Recorded(record)))
        });
        let announced = self
            .ledger
            .loose
            .iter()
            .flat_map(|(name, records)| records.iter().map(move |record| (name, Said::Announced(record))));
        let there = |said: &Said<'_>| said.record().target == path && kind(said.record()).is_some_and(Kind::has_path);
        let mut all: Vec<_> = recorded.chain(announced).filter(|(_, said)| there(said)).collect();
        // Stable: what was read back stays before what was only announced.
        all.sort_by_key(|(name, _)| *name != resource);
        all.into_iter().map(|(_, said)| said).collect()
    }

    /// What steps that never ended have left of resources of which no record speaks and which are no longer
    /// declared. What lies deeper comes first.
    pub(super) fn left(&self, declared: &[Resource]) -> Vec<Left> {
        let mut left = Vec::new();
        for (name, records) in &self.ledger.loose {
            let Ok(id) = ResourceId::parse(name) else { continue };
            if self.ledger.applied.contains_key(name) || declared.iter().any(|resource| resource.id == id) {
                continue;
            }
            left.extend(records.iter().find_map(|record| {
                let own = self.own(name, &record.target).ok().flatten()?;
                Some(Left { id: id.clone(), kind: kind(own)?, target: own.target.clone() })
            }));
        }
        left.sort_by(|one, other| other.target.cmp(&one.target));
        left
    }
}

/// What is known where nothing stands. A folder in the place of a file that was found has that come back, so it comes
/// first; an original is not lost in any case.
fn gone<'a>(said: &[Said<'a>]) -> Option<&'a Record> {
    let mut originals = said.iter().map(Said::record).filter(|record| !record.original.is_empty());
    let folder = originals.clone().find(|record| record.kind == Kind::Directory.as_str());
    folder.or_else(|| said.iter().find_map(Said::recorded)).or_else(|| originals.next())
}

/// Whether `path` lies below `folder`, however deep.
pub(super) fn lies_in(path: &str, folder: &str) -> bool {
    path != folder && Path::new(path).starts_with(folder)
}

impl<'a> Said<'a> {
    fn record(&self) -> &'a Record {
        match self {
            Self::Recorded(record) | Self::Announced(record) => record,
        }
    }

    fn recorded(&self) -> Option<&'a Record> {
        match self {
            Self::Recorded(record) => Some(record),
            Self::Announced(_) => None,
        }
    }

    /// Whether what equals the record is what the agent left. What was found is touched only after its original is
    /// noted, so without that it is still what was found.
    fn is_left(&self) -> bool {
        match self {
            Self::Recorded(_) => true,
            Self::Announced(record) => !record.found || !record.original.is_empty(),
        }
    }
}
