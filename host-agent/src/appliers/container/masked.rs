//! What a container wrote, with every secret it was given made unreadable.

use replicator_protocol::mask::Masker;
use replicator_protocol::resources::Resource;
use replicator_protocol::sealed_box::Consumer;
use replicator_protocol::secret::SecretBytes;
use replicator_protocol::wire::declaration::{Container, File, file::Body, mount::Source, resource};
use replicator_protocol::wire::event::Failure;

use super::Containers;
use crate::appliers::applier::Job;

/// Shortest secret that is masked, in characters.
const SHORTEST: usize = 4;

impl Containers<'_> {
    /// Adds the last output of a container to a failure.
    pub(super) async fn with_output(&self, job: &Job<'_, Container>, id: &str, failure: Failure) -> Failure {
        let output = self.tools.docker.last_output(id).await;
        let output = both(&failure.output, &String::from_utf8_lossy(&output));
        Failure { output: self.masker(job).mask(&output), ..failure }
    }

    /// The same failure, with the runtime's words masked: they may quote an exposed environment.
    pub(super) fn without_secrets(&self, job: &Job<'_, Container>, failure: Failure) -> Failure {
        Failure { output: self.masker(job).mask(&failure.output), ..failure }
    }

    fn masker(&self, job: &Job<'_, Container>) -> Masker {
        let mut masker = Masker::new(SHORTEST);
        self.secrets(job).iter().for_each(|secret| masker.hide(secret));
        masker
    }

    /// Every secret that reaches the container: those of the files bound into it, alone or by their folder.
    fn secrets(&self, job: &Job<'_, Container>) -> Vec<SecretBytes> {
        let reaches = |path: &str| {
            let bound = job.declared.mounts.iter().any(|mount| match &mount.source {
                Some(Source::Bind(source)) => std::path::Path::new(path).starts_with(source),
                Some(Source::Volume(_) | Source::Tmpfs(_)) | None => false,
            });
            bound || job.declared.environment_files.iter().any(|file| file == path)
        };
        let resources = job.declaration.declaration.resources.iter();
        resources
            .filter_map(|other| Some((other, file(other)?)))
            .filter(|(_, file)| reaches(&file.path))
            .flat_map(|(other, file)| self.opened(other, file))
            .collect()
    }

    fn opened(&self, resource: &Resource, file: &File) -> Vec<SecretBytes> {
        let whole = match &file.body {
            Some(Body::Sealed(sealed)) => Some(("sealed".to_owned(), sealed)),
            Some(Body::Content(_) | Body::Bytes(_)) | None => None,
        };
        let parts = file.secrets.iter().map(|(name, sealed)| (format!("secrets/{name}"), sealed));
        whole
            .into_iter()
            .chain(parts)
            .filter_map(|(field, sealed)| {
                let consumer = Consumer { resource: resource.id.clone(), field };
                self.tools.opener.open(&consumer, sealed).ok()
            })
            .collect()
    }
}

fn file(resource: &Resource) -> Option<&File> {
    match &resource.body {
        resource::Kind::File(file) => Some(file),
        resource::Kind::Directory(_) | resource::Kind::Network(_) | resource::Kind::Container(_) => None,
    }
}

/// What the runtime said, where it did, then what the container said itself: one that was refused its start never
/// said a word.
fn both(runtime: &str, container: &str) -> String {
    let parts = [runtime.trim_end(), container].into_iter().filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_the_runtime_are_not_lost_over_those_of_the_container() {
        assert_eq!(both("address already in use\n", ""), "address already in use");
        assert_eq!(both("", "bye\n"), "bye\n");
        assert_eq!(both("refused", "bye\n"), "refused\nbye\n");
    }
}
