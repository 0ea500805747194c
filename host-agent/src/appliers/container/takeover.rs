//! Taking a container over as it stands, where it was made from what the declaration says.
//!
//! The declared container is made beside it, never started, compared as the runtime tells of both, and removed. It
//! bears the name and labels of any replacement, so one that a cut-off left is found as such.

use replicator_protocol::wire::declaration::Container;
use replicator_protocol::wire::event::Failure;

use super::{Containers, IDENTITY, matching, runtime, volumes};
use crate::appliers::applier::{Done, HOST, Job};
use crate::appliers::failure::{FailureCode, With as _, failure};
use crate::host::docker::{Condition, Seen};
use crate::ledger::projections::resources::ALGORITHM;

/// How one that is ours was known for the one declared.
pub(super) enum Recognised {
    /// By its label.
    Labelled,
    /// By what it was made from: its label was computed in another way.
    Equal,
}

impl Containers<'_> {
    /// Records one that something else made, where it is equal; else its name is taken. One of another host's
    /// agent stays with that agent.
    pub(super) async fn take_over(&self, job: &Job<'_, Container>, theirs: &Seen) -> Result<Done, Failure> {
        let taken = failure(FailureCode::NameTaken).with("name", &job.declared.name);
        if theirs.labels.contains_key(HOST) {
            return Err(taken.with("problem", "it is of the agent of another host"));
        }
        match self.difference(job, theirs).await? {
            None => self.adopt(job, theirs, Recognised::Equal).await,
            Some(differs) => Err(taken.with("differs", differs)),
        }
    }

    /// Whether one of ours, of which no record speaks, is the one declared. `None` where it is not.
    pub(super) async fn recognised(
        &self,
        job: &Job<'_, Container>,
        ours: &Seen,
    ) -> Result<Option<Recognised>, Failure> {
        if self.is_wanted(job, ours) {
            let bound = self.bound_to_gone(job.declared, ours).await?;
            return Ok(bound.is_none().then_some(Recognised::Labelled));
        }
        let identity = ours.labels.get(IDENTITY).map(String::as_str).unwrap_or_default();
        if identity.starts_with(&format!("v{ALGORITHM}:")) {
            return Ok(None);
        }
        let difference = self.difference(job, ours).await?;
        Ok(difference.is_none().then_some(Recognised::Equal))
    }

    /// Recorded as it stands, and started where it does not run, or holds a network that is gone.
    pub(super) async fn adopt(
        &self,
        job: &Job<'_, Container>,
        seen: &Seen,
        recognised: Recognised,
    ) -> Result<Done, Failure> {
        let done = match seen.condition {
            Condition::Stopped => self.restart(job, seen).await?,
            Condition::Running | Condition::Starting | Condition::Unhealthy | Condition::Restarting => {
                match self.lost(job.declared, seen).await? {
                    Some(_) => self.restart(job, seen).await?,
                    None => self.started(job, &seen.id, seen.restarts).await?,
                }
            }
        };
        Ok(Done { adopted: matches!(recognised, Recognised::Equal), ..done })
    }

    /// The first thing in which what stands is not what the declaration makes. Nothing of it is touched.
    async fn difference(&self, job: &Job<'_, Container>, standing: &Seen) -> Result<Option<String>, Failure> {
        let docker = &self.tools.docker;
        let gone = || failure(FailureCode::ReadBack).with("container", "gone");
        let stands = docker.inspect(&standing.id).await.map_err(runtime)?.ok_or_else(gone)?;
        if let Some(field) = self.bound_to_gone(job.declared, standing).await? {
            return Ok(Some(field.to_owned()));
        }
        // Making a container makes its volumes, and those would stay.
        if !matching::mounts_all(&stands, &volumes(job.declared)) {
            return Ok(Some("mounts".to_owned()));
        }
        let made = Box::pin(self.prepare(job)).await.map_err(|failure| self.without_secrets(job, failure))?;
        let seen = docker.inspect(&made).await;
        docker.remove(&made).await.map_err(runtime)?;
        let made = seen.map_err(runtime)?.ok_or_else(gone)?;
        Ok(matching::first_difference(&stands, &made))
    }
}
