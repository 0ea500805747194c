//! What every kind does, and nothing else: look, make it so, read back, undo.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use replicator_protocol::change::Facts;
use replicator_protocol::ids::{FleetName, HostUid, ResourceId};
use replicator_protocol::wire::event::event::Body;
use replicator_protocol::wire::event::{Action, Failure, OriginalKept, Record};

use super::failure::{FailureCode, With as _, failure};
use crate::config::Layout;
use crate::host::docker::Docker;
use crate::inbox::InForce;
use crate::keys::Opener;
use crate::keys::digest_key::DigestKey;
use crate::ledger::SharedLedger;
use crate::ledger::projections::resources::{ALGORITHM, RELOAD_ON, RESTART_ON};
use crate::planner::Drift;

/// The label that says whose a thing is: the number of its host.
pub(super) const HOST: &str = "replicator.host";
/// The label that says which resource a thing was made for.
pub(super) const RESOURCE: &str = "replicator.resource";

/// What every applier has at hand.
pub struct Tools {
    /// The host's number.
    pub host: HostUid,
    /// Its fleet.
    pub fleet: FleetName,
    /// The agent's own folders.
    pub layout: Layout,
    /// Under which digests are kept.
    pub digest_key: Arc<DigestKey>,
    /// Opens what is sealed to this host.
    pub opener: Arc<Opener>,
    /// The container runtime.
    pub docker: Docker,
    /// Where what is about to happen is recorded.
    pub ledger: Arc<SharedLedger>,
}

impl Tools {
    /// The keyed digest of `bytes`, as records hold it.
    #[must_use]
    pub fn digest(&self, domain: &str, bytes: &[u8]) -> Bytes {
        Bytes::copy_from_slice(&self.digest_key.digest(domain, &[bytes]).0)
    }

    /// The keyed digest of a declared value, as records hold it by the name of its field.
    #[must_use]
    pub fn declared(&self, value: &[u8]) -> Bytes {
        self.digest("facts", value)
    }

    /// Labels of everything made here.
    #[must_use]
    pub fn labels(&self, resource: &ResourceId) -> BTreeMap<String, String> {
        BTreeMap::from([
            ("replicator.fleet".to_owned(), self.fleet.to_string()),
            (HOST.to_owned(), self.host.to_string()),
            (RESOURCE.to_owned(), resource.to_string()),
        ])
    }

    /// Records that something stood where a resource is about to be applied, before it is touched.
    pub(super) fn note_original<D>(&self, job: &Job<'_, D>, path: &str, digest: &str) -> Result<(), Failure> {
        let kept = OriginalKept { resource: job.id.to_string(), path: path.to_owned(), digest: digest.to_owned() };
        let appended = self.ledger.append(Some(&job.declaration.reference), vec![Body::OriginalKept(kept)]);
        appended.map(drop).map_err(|_| failure(FailureCode::NotRecorded))
    }

    /// Whether labels say that the thing was made by this host's agent.
    #[must_use]
    pub fn is_ours(&self, labels: &BTreeMap<String, String>) -> bool {
        labels.get(HOST).is_some_and(|host| host == self.host.as_str())
    }
}

/// One resource to be made so.
pub struct Job<'a, Declared> {
    /// Its name.
    pub id: &'a ResourceId,
    /// What is declared.
    pub declared: &'a Declared,
    /// What the plan says.
    pub action: Action,
    /// What is known of it.
    pub known: Option<&'a Record>,
    /// What stands at its target already, where that is the agent's own: as it was read back, or as a step that was
    /// cut off had announced it.
    pub here: Option<&'a Record>,
    /// The facts to be recorded.
    pub wanted: &'a Facts<Bytes>,
    /// Whether a container that stays up takes it in: then what stood before is kept until that one is proven.
    pub taken_in: bool,
    /// An earlier attempt began and never ended.
    pub begun: bool,
    /// The whole declaration.
    pub declaration: &'a InForce,
}

/// A step that was taken, read back.
#[derive(Debug)]
pub struct Done {
    /// What is now known.
    pub record: Record,
    /// For people.
    pub note: String,
    /// It is there and does not serve.
    pub failure: Option<Failure>,
    /// It stood there already as it is declared, and was recorded as it stands.
    pub adopted: bool,
}

impl Done {
    /// A step with nothing to tell but what was read back.
    pub(super) fn well(record: Record) -> Self {
        Self { record, note: String::new(), failure: None, adopted: false }
    }
}

/// A thing no longer declared.
#[derive(Debug, PartialEq, Eq)]
pub enum Gone {
    /// It is no longer there.
    Removed(String),
    /// It was left, and why.
    Kept(String),
}

/// The steps of one kind. Its *validate* is in `protocol`, which has no I/O.
pub trait Applier {
    /// The fields of the kind.
    type Declared;

    /// What the machine says about a record: how it is not as it was left, empty where all is.
    ///
    /// # Errors
    ///
    /// Where it could not be told, which never means absent; or a failure that no step mends.
    fn observe(
        &self,
        declared: &Self::Declared,
        record: &Record,
        full: bool,
    ) -> impl Future<Output = Result<Vec<Drift>, Failure>> + Send;

    /// Makes it so, or finds that it is, and reads it back.
    ///
    /// # Errors
    ///
    /// The reason; what stood before still stands, or stands again, where the failure says so.
    fn change(&self, job: &Job<'_, Self::Declared>) -> impl Future<Output = Result<Done, Failure>> + Send;

    /// Undoes what the agent did, and no more.
    ///
    /// # Errors
    ///
    /// The reason; it may still be there.
    fn remove(&self, record: &Record) -> impl Future<Output = Result<Gone, Failure>> + Send;
}

/// Demands that what was read back is what was left.
pub(super) fn is_as_left(drift: &[Drift], path: &Path) -> Result<(), Failure> {
    if drift.is_empty() {
        return Ok(());
    }
    let differs = drift.iter().map(Drift::subject).collect::<Vec<_>>().join(", ");
    Err(failure(FailureCode::ReadBack).with("path", path.display()).with("differs", differs))
}

/// Undoes what a resource stood for before it moved to another target, and says what became of that.
pub(super) async fn leave_behind<A: Applier>(applier: &A, job: &Job<'_, A::Declared>) -> Result<String, Failure> {
    let Some(known) = job.known.filter(|known| known.target != job.wanted.target) else { return Ok(String::new()) };
    Ok(match applier.remove(known).await? {
        Gone::Removed(_) => format!("`{}` is removed", known.target),
        Gone::Kept(why) => format!("`{}` is kept: {why}", known.target),
    })
}

/// A record of what was applied, as far as every kind agrees.
pub(super) fn record<D>(job: &Job<'_, D>) -> Record {
    let dependencies = |prefix: &str, of: &BTreeMap<String, Bytes>| -> Vec<(String, Bytes)> {
        of.iter().map(|(name, digest)| (format!("{prefix}{name}"), digest.clone())).collect()
    };
    let mut all = dependencies(RESTART_ON, &job.wanted.restart_on);
    all.extend(dependencies(RELOAD_ON, &job.wanted.reload_on));
    Record {
        kind: job.wanted.kind.as_str().to_owned(),
        target: job.wanted.target.clone(),
        fields: job.wanted.fields.clone(),
        inputs: job.wanted.inputs.clone(),
        dependencies: all.into_iter().collect(),
        algorithm: ALGORITHM,
        found: job.here.is_some_and(|here| here.found),
        original: job.here.map(|here| here.original.clone()).unwrap_or_default(),
        ..Record::default()
    }
}
