//! `container`: one that stays up, replaced without ever being worse off.

mod definition;
mod drift;
mod given_up;
mod health;
mod masked;
mod matching;
mod swap;
mod takeover;

use std::path::Path;

use replicator_protocol::change::Facts;
use replicator_protocol::resources::container::{Image, image};
use replicator_protocol::wire::declaration::{Container, mount::Source};
use replicator_protocol::wire::event::{Action, Failure, Record};

pub(super) use self::swap::base;
use super::applier::{Applier, Done, Gone, Job, Tools, record};
use super::bounds;
use super::failure::{self, FailureCode, With as _, failure};
use crate::host::docker::{Condition, Credential, RuntimeError, Seen};
use crate::host::files;
use crate::ledger::projections::resources::ALGORITHM;
use crate::planner::Drift;

/// The label that says which definition a container was made from.
pub(super) const IDENTITY: &str = "replicator.identity";

/// The label that says which content of the resources in `restart_on` it was made after.
const RESTARTED_ON: &str = "replicator.restart-on";

/// Applies containers.
pub(super) struct Containers<'t> {
    pub(super) tools: &'t Tools,
}

fn runtime(error: RuntimeError) -> Failure {
    failure::runtime(&error)
}

impl Applier for Containers<'_> {
    type Declared = Container;

    async fn observe(&self, declared: &Container, record: &Record, _full: bool) -> Result<Vec<Drift>, Failure> {
        let Some(seen) = self.tools.docker.container(&record.runtime_id).await.map_err(runtime)? else {
            return Ok(vec![Drift::Word("gone")]);
        };
        let unchanged = self.unchanged(declared, record);
        let mut drift: Vec<_> = self.lost_network(declared, record, &seen).await?.into_iter().collect();
        if seen.name != record.target || unchanged.is_altered(&seen) {
            drift.push(Drift::Word("altered"));
        }
        match seen.condition {
            Condition::Stopped => drift.push(Drift::Word("stopped")),
            Condition::Restarting if drift.is_empty() => {
                return Err(failure(FailureCode::Restarting)
                    .with("exit_code", seen.exit_code)
                    .with("restarts", seen.restarts));
            }
            Condition::Unhealthy if drift.is_empty() => return Err(failure(FailureCode::Unhealthy)),
            Condition::Running | Condition::Starting | Condition::Restarting | Condition::Unhealthy => {}
        }
        drift.extend(unchanged.replaced_inputs(&seen).into_iter().map(Drift::Input));
        Ok(drift)
    }

    async fn change(&self, job: &Job<'_, Container>) -> Result<Done, Failure> {
        if let Some(done) = self.resume(job).await? {
            return Ok(done);
        }
        let standing = match self.standing(job).await? {
            Some(theirs) if !self.is_held(job, &theirs) => return self.take_over(job, &theirs).await,
            // The recorded one made way for it in a step that was cut off before it could say so, or there is none.
            Some(ours) if job.action == Action::Create || !is_recorded(job, &ours) => {
                match self.recognised(job, &ours).await? {
                    Some(adopted) => {
                        let done = self.adopt(job, &ours, adopted).await?;
                        return self.reread(job, done).await;
                    }
                    None => Some(ours),
                }
            }
            standing => standing,
        };
        match (&standing, job.action) {
            (Some(standing), Action::Reload) => self.reload(job, standing).await,
            // Bound to a container that is gone meanwhile, it could not be started.
            (Some(standing), Action::Change) if !self.follows_another(job, standing).await? => {
                self.restart(job, standing).await
            }
            (
                _,
                Action::Create | Action::Recreate | Action::Change | Action::Reload | Action::None | Action::Remove,
            )
            | (_, Action::Unspecified) => self.replace(job, standing.as_ref()).await,
        }
    }

    async fn remove(&self, record: &Record) -> Result<Gone, Failure> {
        let Some(seen) = self.tools.docker.container(&record.runtime_id).await.map_err(runtime)? else {
            return Ok(Gone::Removed("it was gone already".into()));
        };
        if record.found {
            return Ok(Gone::Kept("it was here first".into()));
        }
        self.tools.docker.stop(&seen.id, own_grace(&seen)).await.map_err(runtime)?;
        self.tools.docker.remove(&seen.id).await.map_err(runtime)?;
        Ok(Gone::Removed(match record.volumes.as_slice() {
            [] => String::new(),
            volumes => format!("its volumes are kept: {}", volumes.join(", ")),
        }))
    }
}

impl Containers<'_> {
    async fn follows_another(&self, job: &Job<'_, Container>, standing: &Seen) -> Result<bool, Failure> {
        let Some(known) = job.known else { return Ok(false) };
        Ok(self.lost_network(job.declared, known, standing).await? == Some(Drift::Followed))
    }

    /// What says that a container is the one declared: a keyed digest over its fields and what it takes in.
    pub(super) fn identity(&self, wanted: &Facts<bytes::Bytes>) -> String {
        let mut parts: Vec<&[u8]> = Vec::new();
        for (name, digest) in wanted.fields.iter().chain(&wanted.inputs) {
            parts.extend([name.as_bytes(), &digest[..]]);
        }
        format!("v{ALGORITHM}:{}", self.tools.digest_key.digest("container.identity", &parts))
    }

    /// What says which content of the resources in `restart_on` a container was made after.
    fn restarted_on(&self, wanted: &Facts<bytes::Bytes>) -> Option<String> {
        let parts: Vec<&[u8]> =
            wanted.restart_on.iter().flat_map(|(name, digest)| [name.as_bytes(), &digest[..]]).collect();
        (!parts.is_empty()).then(|| self.tools.digest_key.digest("container.restart-on", &parts).to_string())
    }

    /// Whether its labels say that it was made as it is declared now. One that does not say what it was made after
    /// was made by an agent that wrote no such label.
    fn is_wanted(&self, job: &Job<'_, Container>, seen: &Seen) -> bool {
        let since = match (self.restarted_on(job.wanted), seen.labels.get(RESTARTED_ON)) {
            (Some(wanted), Some(made)) => wanted == *made,
            (Some(_) | None, _) => true,
        };
        since && seen.labels.get(IDENTITY) == Some(&self.identity(job.wanted))
    }

    /// Has one that runs since before a step was cut off read its files once more: they may be others by now.
    async fn reread(&self, job: &Job<'_, Container>, done: Done) -> Result<Done, Failure> {
        if done.failure.is_none() && !job.wanted.reload_on.is_empty() {
            let signalled = self.tools.docker.signal(&done.record.runtime_id, &job.declared.reload_signal).await;
            signalled.map_err(runtime)?;
        }
        Ok(done)
    }

    /// The container that stands there: the recorded one, else whichever has the name.
    async fn standing(&self, job: &Job<'_, Container>) -> Result<Option<Seen>, Failure> {
        let docker = &self.tools.docker;
        if let Some(known) = job.known.filter(|known| !known.runtime_id.is_empty())
            && let Some(seen) = docker.container(&known.runtime_id).await.map_err(runtime)?
        {
            return Ok(Some(seen));
        }
        docker.container(&job.declared.name).await.map_err(runtime)
    }

    /// Whether it is this agent's to replace: it made it, or took it over.
    fn is_held(&self, job: &Job<'_, Container>, seen: &Seen) -> bool {
        self.tools.is_ours(&seen.labels) || is_recorded(job, seen)
    }

    /// The same container, started again: it was stopped, or lost the network it shares.
    async fn restart(&self, job: &Job<'_, Container>, seen: &Seen) -> Result<Done, Failure> {
        // A paused one does not run and cannot be started; one that is stopped already is stopped at once.
        self.tools.docker.stop(&seen.id, stop_grace(job.declared)).await.map_err(runtime)?;
        self.tools.docker.start(&seen.id).await.map_err(runtime)?;
        // The runtime counts anew from a start.
        self.started(job, &seen.id, 0).await
    }

    /// What became of one that runs where it stood: recorded, whether or not it serves. It was started again by
    /// itself `restarts` times before.
    async fn started(&self, job: &Job<'_, Container>, id: &str, restarts: i64) -> Result<Done, Failure> {
        let failure = match self.await_serving(job.declared, id, restarts).await {
            Ok(_) => None,
            Err(failure) => Some(self.with_output(job, id, failure).await),
        };
        Ok(Done { failure, ..Done::well(self.read_back(job, id).await?) })
    }

    async fn reload(&self, job: &Job<'_, Container>, seen: &Seen) -> Result<Done, Failure> {
        self.tools.docker.signal(&seen.id, &job.declared.reload_signal).await.map_err(runtime)?;
        Ok(Done::well(self.read_back(job, &seen.id).await?))
    }

    /// What is recorded of a container: read from the runtime, not remembered.
    async fn read_back(&self, job: &Job<'_, Container>, id: &str) -> Result<Record, Failure> {
        let seen = self.tools.docker.container(id).await.map_err(runtime)?;
        let seen = seen.ok_or_else(|| failure(FailureCode::ReadBack).with("container", "gone"))?;
        Ok(Record {
            digest: self.identity(job.wanted).into_bytes().into(),
            found: !self.tools.is_ours(&seen.labels),
            runtime_id: seen.id,
            image_id: seen.image_id,
            followed: seen.followed,
            volumes: volumes(job.declared),
            host_ports: job.declared.ports.iter().map(|port| port.host_port).collect(),
            ..record(job)
        })
    }

    /// The image, held by the machine; fetched where it is one to fetch.
    async fn image(&self, job: &Job<'_, Container>) -> Result<String, Failure> {
        let name = &job.declared.image;
        let docker = &self.tools.docker;
        if let Some(held) = docker.image(name).await.map_err(runtime)? {
            return Ok(held.id);
        }
        let missing = || failure(FailureCode::ImageMissing).with("image", name);
        match image(name) {
            Some(Image::Registry { repository, digest }) => {
                let credential = self.credential(job)?;
                docker.pull(repository, digest, credential).await.map_err(runtime)?;
                let held = docker.image(name).await.map_err(runtime)?;
                held.map(|held| held.id).ok_or_else(missing)
            }
            Some(Image::Held { .. }) | None => Err(missing()),
        }
    }

    fn credential(&self, job: &Job<'_, Container>) -> Result<Option<Credential>, Failure> {
        use replicator_protocol::sealed_box::Consumer;
        let Some(sealed) = &job.declared.pull else { return Ok(None) };
        let refused = || failure(FailureCode::CannotOpen).with("field", "pull").with("secret", &sealed.secret);
        let consumer = Consumer { resource: job.id.clone(), field: "pull".into() };
        let opened = self.tools.opener.open(&consumer, sealed).map_err(|_| refused())?;
        let text = std::str::from_utf8(opened.expose()).map_err(|_| refused())?;
        let (user, token) = text.split_once(':').ok_or_else(refused)?;
        Ok(Some(Credential { user: user.to_owned(), token: token.to_owned() }))
    }

    /// What a container takes from the machine, all of it checked before anything is stopped.
    async fn surroundings(&self, job: &Job<'_, Container>) -> Result<definition::Surroundings, Failure> {
        let declared = job.declared;
        let failed = |path: &str, error: &std::io::Error| failure::file("read", Path::new(path), error);
        for mount in &declared.mounts {
            let Some(Source::Bind(source)) = &mount.source else { continue };
            if files::look(Path::new(source)).map_err(|error| failed(source, &error))?.is_none() {
                return Err(failure(FailureCode::BindMissing).with("path", source));
            }
        }
        let mut variables = Vec::new();
        for path in &declared.environment_files {
            let bytes = files::read(Path::new(path)).map_err(|error| failed(path, &error))?;
            variables.extend(definition::variables(&String::from_utf8_lossy(&bytes)));
        }
        let followed = if declared.network_of.is_empty() {
            None
        } else {
            let followed = self.tools.docker.container(&declared.network_of).await.map_err(runtime)?;
            let missing = || failure(FailureCode::FollowedMissing).with("container", &declared.network_of);
            Some(followed.ok_or_else(missing)?.id)
        };
        let mut labels = self.tools.labels(job.id);
        labels.insert(IDENTITY.to_owned(), self.identity(job.wanted));
        labels.extend(self.restarted_on(job.wanted).map(|since| (RESTARTED_ON.to_owned(), since)));
        labels.insert("replicator.role".to_owned(), job.id.name.to_string());
        Ok(definition::Surroundings { image: self.image(job).await?, variables, followed, labels })
    }
}

/// Whether it is the one that a record speaks of.
fn is_recorded(job: &Job<'_, Container>, seen: &Seen) -> bool {
    job.known.is_some_and(|known| known.runtime_id == seen.id)
}

/// How long a container is given to stop by itself.
fn stop_grace(declared: &Container) -> std::time::Duration {
    declared.stop_timeout.map_or(bounds::STOP, |seconds| std::time::Duration::from_secs(u64::from(seconds)))
}

/// The same for one of which no declaration speaks any more: what it was made with.
fn own_grace(seen: &Seen) -> std::time::Duration {
    seen.stop_timeout.unwrap_or(bounds::STOP)
}

fn volumes(declared: &Container) -> Vec<String> {
    let named = declared.mounts.iter().filter_map(|mount| match &mount.source {
        Some(Source::Volume(name)) => Some(name.clone()),
        Some(Source::Bind(_) | Source::Tmpfs(_)) | None => None,
    });
    named.collect()
}
