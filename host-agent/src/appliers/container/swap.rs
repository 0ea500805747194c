//! Replacing a container: the new one is made before the old one stops, and the old one comes back, with the
//! bytes it had, if the new one does not serve.
//!
//! During a swap the new one is `NAME.next`, then the old one `NAME.prev`. Killed at any instant, the names
//! say how far it came, and [`Containers::resume`] goes on from there.

use std::path::Path;

use bollard::models::ContainerCreateBody;
use replicator_protocol::wire::declaration::Container;
use replicator_protocol::wire::event::Failure;
use tokio::time::Instant;

use super::definition::{definition, endpoint};
use super::{Containers, runtime, stop_grace, volumes};
use crate::appliers::applier::{Done, Job};
use crate::appliers::bounds;
use crate::appliers::failure::{self, FailureCode, With as _, failure};
use crate::host::docker::{Condition, Seen};
use crate::ledger::projections::resources::INTERRUPTED;

fn next(name: &str) -> String {
    format!("{name}.next")
}

fn prev(name: &str) -> String {
    format!("{name}.prev")
}

/// The name a container has, or had, outside a swap.
pub(in crate::appliers) fn base(name: &str) -> &str {
    name.strip_suffix(".next").or_else(|| name.strip_suffix(".prev")).unwrap_or(name)
}

impl Containers<'_> {
    /// Goes on with a swap that was cut off: proves the new one where it has taken its place, else gives the old
    /// one its name back. `None` where there is nothing to go on with, or no longer anything.
    ///
    /// The old one is not started: the files it takes in are as the new one needs them. It is where the new one
    /// cannot be made after all, and then it has its files again ([`Containers::old_bytes_back`]).
    pub(super) async fn resume(&self, job: &Job<'_, Container>) -> Result<Option<Done>, Failure> {
        let docker = &self.tools.docker;
        let name = &job.declared.name;
        if let Some(unproven) = self.held(job, &next(name)).await? {
            docker.remove(&unproven.id).await.map_err(runtime)?;
        }
        let Some(old) = self.held(job, &prev(name)).await? else { return Ok(None) };
        // Where it goes back to, should the new one not serve.
        let old = Seen { name: name.clone(), ..old };
        match self.held(job, name).await? {
            Some(new) if self.is_wanted(job, &new) && self.bound_to_gone(job.declared, &new).await?.is_none() => {
                let done = self.prove(job, &new.id, Some(&old)).await?;
                return self.reread(job, done).await.map(Some);
            }
            Some(unproven) => docker.remove(&unproven.id).await.map_err(runtime)?,
            None => {}
        }
        docker.rename(&old.id, name).await.map_err(runtime)?;
        Ok(None)
    }

    /// The container of this name, if it is this agent's to replace.
    async fn held(&self, job: &Job<'_, Container>, name: &str) -> Result<Option<Seen>, Failure> {
        let seen = self.tools.docker.container(name).await.map_err(runtime)?;
        Ok(seen.filter(|seen| seen.name == name && self.is_held(job, seen)))
    }

    /// Makes the declared container, in the place of `old` where there is one.
    pub(super) async fn replace(&self, job: &Job<'_, Container>, old: Option<&Seen>) -> Result<Done, Failure> {
        let id = match self.prepare(job).await {
            Ok(id) => id,
            Err(failure) => {
                let failure = self.without_secrets(job, failure);
                return Err(self.old_bytes_back(job, old, failure).await);
            }
        };
        let docker = &self.tools.docker;
        let name = &job.declared.name;
        let taken = async {
            if let Some(old) = old {
                docker.stop(&old.id, stop_grace(job.declared)).await?;
                docker.rename(&old.id, &prev(name)).await?;
            }
            docker.rename(&id, name).await
        };
        if let Err(error) = taken.await {
            let failure = runtime(error);
            return Err(self.roll_back(job, &id, old, failure).await);
        }
        self.prove(job, &id, old).await
    }

    /// Everything that can be refused while the old one still serves.
    pub(super) async fn prepare(&self, job: &Job<'_, Container>) -> Result<String, Failure> {
        let declared = job.declared;
        let docker = &self.tools.docker;
        self.check_volumes(job)?;
        let surroundings = self.surroundings(job).await?;
        let name = next(&declared.name);
        let id = self.create(job, &name, || definition(declared, &surroundings)).await?;
        for network in declared.networks.iter().skip(1) {
            if let Err(error) = docker.join(&id, &network.name, endpoint(network)).await {
                docker.remove(&id).await.map_err(runtime)?;
                return Err(runtime(error));
            }
        }
        Ok(id)
    }

    /// Makes it, and leaves nothing where it cannot.
    async fn create(
        &self,
        job: &Job<'_, Container>,
        name: &str,
        definition: impl Fn() -> ContainerCreateBody,
    ) -> Result<String, Failure> {
        let docker = &self.tools.docker;
        let deadline = Instant::now() + bounds::UNDER_WAY;
        loop {
            let error = match docker.create(name, definition()).await {
                Ok(id) => return Ok(id),
                Err(error) => error,
            };
            // A runtime that answers 500 may have made it all the same.
            if let Ok(Some(left)) = self.held(job, name).await {
                docker.remove(&left.id).await.map_err(runtime)?;
            }
            // The name is taken by what an agent that died had asked for; it may only just be under way.
            if !error.is_conflict() || Instant::now() > deadline {
                return Err(runtime(error));
            }
            tokio::time::sleep(bounds::POLL).await;
        }
    }

    /// Another volume than before leaves data behind: only with the operator's word.
    fn check_volumes(&self, job: &Job<'_, Container>) -> Result<(), Failure> {
        let Some(known) = job.known else { return Ok(()) };
        let wanted = volumes(job.declared);
        let lost: Vec<_> = known.volumes.iter().filter(|volume| !wanted.contains(volume)).cloned().collect();
        if lost.is_empty() || job.declaration.declaration.acknowledged.contains(job.id) {
            return Ok(());
        }
        Err(failure(FailureCode::NotAcknowledged).with("volumes", lost.join(", ")))
    }

    /// Starts the new one and awaits that it serves; only then the old one goes.
    async fn prove(&self, job: &Job<'_, Container>, id: &str, old: Option<&Seen>) -> Result<Done, Failure> {
        let serving = match self.tools.docker.start(id).await {
            Ok(()) => self.await_serving(job.declared, id, 0).await.map(drop),
            Err(error) => Err(runtime(error)),
        };
        if let Err(failure) = serving {
            let failure = self.with_output(job, id, failure).await;
            if old.is_none() && failure.code != FailureCode::RuntimeRefused.as_str() {
                // Nothing stood here before: it stays, to be looked at, and is recorded so that it can be removed.
                let record = self.read_back(job, id).await?;
                return Ok(Done { failure: Some(failure), ..Done::well(record) });
            }
            return Err(self.roll_back(job, id, old, failure).await);
        }
        let record = self.read_back(job, id).await?;
        if let Some(old) = old {
            self.tools.docker.remove(&old.id).await.map_err(runtime)?;
        }
        Ok(Done::well(record))
    }

    /// Puts the old one back in its place, with the bytes it had, and awaits that it serves again.
    async fn roll_back(&self, job: &Job<'_, Container>, new: &str, old: Option<&Seen>, failure: Failure) -> Failure {
        let docker = &self.tools.docker;
        let put_back = async {
            docker.remove(new).await.map_err(runtime)?;
            let Some(old) = old else { return Ok(false) };
            self.inputs_back(job)?;
            let stands = docker.container(&old.id).await.map_err(runtime)?;
            if stands.is_some_and(|seen| seen.name != old.name) {
                docker.rename(&old.id, &old.name).await.map_err(runtime)?;
            }
            docker.start(&old.id).await.map_err(runtime)?;
            self.await_running(&old.id).await
        };
        let put_back: Result<bool, Failure> = put_back.await;
        match put_back {
            // Where nothing stood before, nothing was interrupted, and trying again interrupts nothing.
            Ok(_) if old.is_none() => failure,
            // The runtime was away: that says nothing of what is declared, which is tried again when it is back.
            Ok(restored) if failure.code == FailureCode::RuntimeUnreachable.as_str() => {
                Failure { previous_restored: restored, ..failure }
            }
            Ok(restored) => Failure { previous_restored: restored, ..failure }.with(INTERRUPTED, "yes"),
            Err(second) => failure.with("roll_back", second.code),
        }
    }

    /// Nothing was stopped: the files go back to what the old one holds, and it is started where it was not.
    async fn old_bytes_back(&self, job: &Job<'_, Container>, old: Option<&Seen>, failure: Failure) -> Failure {
        let Some(old) = old else { return failure };
        let back = async {
            self.inputs_back(job)?;
            if old.condition == Condition::Stopped {
                self.tools.docker.start(&old.id).await.map_err(runtime)?;
            }
            self.await_running(&old.id).await
        };
        let back: Result<bool, Failure> = back.await;
        match back {
            Ok(restored) => Failure { previous_restored: restored, ..failure },
            Err(second) => failure.with("roll_back", second.code),
        }
    }

    /// Has what served before serve again, with the bytes it had, where a swap was cut off behind its stop and is not
    /// gone on with: the step is not taken, for `failure`, which says then whether it serves. `None` where nothing was
    /// cut off so, or the runtime cannot say.
    pub(in crate::appliers) async fn call_off(&self, job: &Job<'_, Container>, failure: &Failure) -> Option<Failure> {
        let old = self.interrupted(job).await.ok().flatten()?;
        Some(match self.in_its_place(job, &old).await {
            Ok(()) => self.old_bytes_back(job, Some(&old), failure.clone()).await,
            Err(second) => failure.clone().with("roll_back", second.code),
        })
    }

    /// What served before and is stopped, unless what is to replace it runs already.
    async fn interrupted(&self, job: &Job<'_, Container>) -> Result<Option<Seen>, Failure> {
        let name = &job.declared.name;
        let aside = self.held(job, &prev(name)).await?;
        let old = match (aside, job.known) {
            (None, Some(known)) if !known.runtime_id.is_empty() => {
                self.tools.docker.container(&known.runtime_id).await.map_err(runtime)?
            }
            (aside, _) => aside,
        };
        let Some(old) = old.filter(|old| old.condition == Condition::Stopped) else { return Ok(None) };
        let new = self.held(job, name).await?.filter(|new| new.id != old.id);
        Ok(new.is_none_or(|new| new.condition == Condition::Stopped).then_some(old))
    }

    /// Gives one that was stopped for a swap its name back; what was to replace it goes.
    async fn in_its_place(&self, job: &Job<'_, Container>, old: &Seen) -> Result<(), Failure> {
        let docker = &self.tools.docker;
        let name = &job.declared.name;
        for unproven in [name.clone(), next(name)] {
            if let Some(new) = self.held(job, &unproven).await?.filter(|new| new.id != old.id) {
                docker.remove(&new.id).await.map_err(runtime)?;
            }
        }
        // One that gets another name with this declaration has the one it was made with.
        let own = job.known.filter(|known| known.runtime_id == old.id).map_or(name, |known| &known.target);
        if old.name != *own {
            docker.rename(&old.id, own).await.map_err(runtime)?;
        }
        Ok(())
    }

    fn inputs_back(&self, job: &Job<'_, Container>) -> Result<(), Failure> {
        for path in job.wanted.inputs.keys().map(Path::new) {
            let restored = self.tools.restore_previous(path);
            restored.map_err(|error| failure::file("restore", path, &error))?;
        }
        Ok(())
    }

    /// Whether a container that served before runs again; its own check is of the definition it was made from.
    pub(super) async fn await_running(&self, id: &str) -> Result<bool, Failure> {
        let started = Instant::now();
        loop {
            let Some(seen) = self.tools.docker.container(id).await.map_err(runtime)? else { return Ok(false) };
            let within = bounds::HEALTH_LEAST.max(seen.check_within.unwrap_or_default());
            match seen.condition {
                Condition::Running => return Ok(true),
                Condition::Stopped | Condition::Restarting => return Ok(false),
                Condition::Starting | Condition::Unhealthy if started.elapsed() < within => {
                    tokio::time::sleep(bounds::POLL).await;
                }
                Condition::Starting | Condition::Unhealthy => return Ok(false),
            }
        }
    }
}
