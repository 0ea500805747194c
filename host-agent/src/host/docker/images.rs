//! Images, by digest.

use std::collections::BTreeMap;

use bollard::auth::DockerCredentials;
use bollard::query_parameters::CreateImageOptionsBuilder;
use futures_util::TryStreamExt as _;

use super::{Docker, LOOK, PULL, RuntimeError, found};
use crate::host::point::Effect;

/// What a registry is told. It has no `Debug`.
pub struct Credential {
    /// Login.
    pub user: String,
    /// Token.
    pub token: String,
}

/// An image the machine holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldImage {
    /// The runtime's id.
    pub id: String,
    /// Labels that every container made from it bears.
    pub labels: BTreeMap<String, String>,
}

impl Docker {
    /// The image `name` (`repository@sha256:…` or `sha256:…`), if the machine holds it.
    ///
    /// # Errors
    ///
    /// [`RuntimeError`].
    pub async fn image(&self, name: &str) -> Result<Option<HeldImage>, RuntimeError> {
        let seen = found(self.bounded("image.inspect", LOOK, self.client()?.inspect_image(name)).await)?;
        Ok(seen.and_then(|image| {
            let labels = image.config.and_then(|config| config.labels).unwrap_or_default();
            Some(HeldImage { id: image.id?, labels: labels.into_iter().collect() })
        }))
    }

    /// Fetches `repository@digest`, telling of the progress in the log.
    ///
    /// # Errors
    ///
    /// [`RuntimeError`]; layers that came whole are kept by the runtime.
    pub async fn pull(
        &self,
        repository: &str,
        digest: &str,
        credential: Option<Credential>,
    ) -> Result<(), RuntimeError> {
        let options = CreateImageOptionsBuilder::default().from_image(repository).tag(digest).build();
        let credentials = credential.map(|credential| DockerCredentials {
            username: Some(credential.user),
            password: Some(credential.token),
            ..DockerCredentials::default()
        });
        let progress = self.client()?.create_image(Some(options), None, credentials);
        let all = progress.try_for_each(|step| async move {
            if let Some(status) = step.status.filter(|_| step.progress_detail.is_none()) {
                tracing::info!(repository, status, "pulling");
            }
            Ok(())
        });
        self.effect(Effect::ImagePull, PULL, all).await
    }
}
