//! Looking at everything before anything is decided. Only reads.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use bytes::Bytes;
use replicator_protocol::change::{self, Facts};
use replicator_protocol::ids::ResourceId;
use replicator_protocol::resources::Resource;
use replicator_protocol::wire::declaration::{Container, resource};
use replicator_protocol::wire::event::{Failure, Record};
use zeroize::Zeroizing;

use super::super::applier::{Applier as _, Tools};
use super::super::container::Containers;
use super::super::directory::Directories;
use super::super::failure::{self, FailureCode};
use super::super::file::Files;
use super::super::network::Networks;
use super::moving::{Former, former};
use crate::daemon::Depth;
use crate::host::docker::Listed;
use crate::host::files::{self, FileType};
use crate::ledger::projections::resources::Resources;
use crate::planner::{Drift, Observed};
use crate::policy::Policy;

/// Domain of the digests of files that no resource declares.
const ON_DISK: &str = "on-disk";

/// What is wanted, as far as the machine lets it be told.
pub(super) struct Wanted {
    /// The facts of every resource, with the content of undeclared files that containers take in.
    pub(super) facts: Vec<Facts<Bytes>>,
    /// Containers of which an input could not be read. That is not the same as an input that is not there.
    pub(super) unreadable: BTreeMap<ResourceId, Observed>,
}

/// Completes what is declared with what only this machine holds.
pub(super) fn wanted(tools: &Tools, resources: &[Resource]) -> Wanted {
    let mut facts = change::wanted(resources, |bytes| tools.declared(bytes));
    let mut unreadable = BTreeMap::new();
    for (resource, facts) in resources.iter().zip(&mut facts) {
        for path in change::inputs(resource) {
            if facts.inputs.contains_key(path) {
                continue;
            }
            match on_disk(tools, Path::new(path)) {
                Ok(Some(digest)) => _ = facts.inputs.insert(path.to_owned(), digest),
                Ok(None) => {}
                Err(failure) => _ = unreadable.insert(resource.id.clone(), Observed::Unknown(failure)),
            }
        }
    }
    Wanted { facts, unreadable }
}

/// The digest of an input. A folder is none, nor is a file too large for a configuration; and what is not there is
/// found missing when it is needed.
fn on_disk(tools: &Tools, path: &Path) -> Result<Option<Bytes>, Failure> {
    let unreadable = |error: io::Error| {
        let because = failure::file("read", path, &error).fields;
        Failure { fields: because, ..failure::failure(FailureCode::InputUnreadable) }
    };
    let seen = files::look(path).map_err(unreadable)?;
    if seen.is_none_or(|seen| seen.file_type != FileType::File || seen.size > files::READ_MAX) {
        return Ok(None);
    }
    match files::read(path) {
        Ok(content) => Ok(Some(tools.digest(ON_DISK, &Zeroizing::new(content)))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(unreadable(error)),
    }
}

/// What the machine says of every applied resource that is declared still, and what its policy says of any.
pub(super) async fn observe(
    tools: &Tools,
    policy: &Policy,
    (resources, ledger): (&[Resource], &Resources),
    depth: Depth,
) -> BTreeMap<ResourceId, Observed> {
    let listed = match depth {
        Depth::Cheap => Some(tools.docker.list(tools.host.as_str()).await.map_err(|error| failure::runtime(&error))),
        Depth::Full => None,
    };
    let former = former(resources, ledger);
    let mut observed = BTreeMap::new();
    for resource in resources {
        if let Err(refusal) = policy.resource(resource) {
            observed.insert(resource.id.clone(), Observed::Refused(failure::policy(&refusal)));
            continue;
        }
        let Some(applied) = ledger.applied.get(&resource.id.to_string()) else { continue };
        let seen = match (&resource.body, &listed) {
            // One that was taken over bears no label of ours, and is in no list of ours.
            (resource::Kind::Container(declared), Some(listed)) if !applied.record.found => {
                cheaply(tools, declared, &applied.record, listed).await
            }
            (resource::Kind::Network(_), Some(_)) => Ok(Vec::new()),
            // What it stood for before is not what it is.
            _ if has_moved(resource, &applied.record) => Ok(Vec::new()),
            _ => match look(tools, resource, &applied.record, depth).await {
                Ok(drift) if !drift.is_empty() && is_unfinished(tools, resource, ledger, depth).await => {
                    Ok(vec![Drift::Unfinished])
                }
                seen => seen,
            },
        };
        let seen = seen.map(|mut drift| {
            let stands = |one: &&Former<'_>| !matches!(files::look(Path::new(&one.record.target)), Ok(None));
            let left = former.iter().filter(|one| resources[one.at].id == resource.id).find(stands);
            drift.extend(left.map(|_| Drift::Unfinished));
            drift
        });
        let seen = match seen {
            Ok(drift) if drift.is_empty() => continue,
            Ok(drift) => Observed::Drifted(drift),
            Err(failure) if is_about_the_thing(&failure) => Observed::Failing(failure),
            Err(failure) => Observed::Unknown(failure),
        };
        observed.insert(resource.id.clone(), seen);
    }
    observed
}

fn has_moved(resource: &Resource, record: &Record) -> bool {
    let elsewhere = resource.kind().has_path() && record.target != resource.target();
    record.kind != resource.kind().as_str() || elsewhere
}

/// Whether it is as a step had announced that could not say what became of it: that is no drift.
async fn is_unfinished(tools: &Tools, resource: &Resource, ledger: &Resources, depth: Depth) -> bool {
    for about in ledger.loose.get(&resource.id.to_string()).into_iter().flatten() {
        let same = (about.kind.as_str(), about.target.as_str()) == (resource.kind().as_str(), resource.target());
        if same && matches!(look(tools, resource, about, depth).await, Ok(drift) if drift.is_empty()) {
            return true;
        }
    }
    false
}

fn is_about_the_thing(failure: &Failure) -> bool {
    use super::super::failure::FailureCode::{Restarting, Unhealthy};
    [Restarting, Unhealthy].iter().any(|code| code.as_str() == failure.code)
}

async fn look(tools: &Tools, resource: &Resource, record: &Record, depth: Depth) -> Result<Vec<Drift>, Failure> {
    let full = depth == Depth::Full;
    match &resource.body {
        resource::Kind::File(declared) => Files(tools).observe(declared, record, full).await,
        resource::Kind::Directory(declared) => Directories(tools).observe(declared, record, full).await,
        resource::Kind::Network(declared) => {
            Networks { tools, fixed: Vec::new() }.observe(declared, record, full).await
        }
        resource::Kind::Container(declared) => Containers { tools }.observe(declared, record, full).await,
    }
}

/// The cheap look: one list answers for every container, but not whether one that shares a network has it still.
async fn cheaply(
    tools: &Tools,
    declared: &Container,
    record: &Record,
    listed: &Result<Vec<Listed>, Failure>,
) -> Result<Vec<Drift>, Failure> {
    let mut drift = in_list(record, listed)?;
    if !declared.network_of.is_empty()
        && let Some(seen) =
            tools.docker.container(&record.runtime_id).await.map_err(|error| failure::runtime(&error))?
    {
        drift.extend(Containers { tools }.lost_network(declared, record, &seen).await?);
    }
    Ok(drift)
}

fn in_list(record: &Record, listed: &Result<Vec<Listed>, Failure>) -> Result<Vec<Drift>, Failure> {
    let listed = listed.as_ref().map_err(Clone::clone)?;
    Ok(match listed.iter().find(|one| one.id == record.runtime_id) {
        None => vec![Drift::Word("gone")],
        Some(one) if one.name != record.target => vec![Drift::Word("altered")],
        Some(one) if one.restarting => return Err(failure::failure(failure::FailureCode::Restarting)),
        Some(one) if !one.running => vec![Drift::Word("stopped")],
        Some(_) => Vec::new(),
    })
}
