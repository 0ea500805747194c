//! Asks this machine's runtime what images are: names become digests, and users become numbers.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bollard::Docker;
use bollard::models::ImageInspect;

use crate::compiler::{Image, User};
use crate::spec::names::ImageRef;

/// How long the runtime may take for one answer.
const ANSWER: Duration = Duration::from_secs(10);

/// Why an image could not be resolved.
#[derive(Debug, thiserror::Error)]
pub enum ImagesError {
    /// The runtime gave no answer.
    #[error("the container runtime of this machine could not say what images it holds")]
    Runtime(#[source] Box<bollard::errors::Error>),
    /// The runtime took too long.
    #[error("the container runtime of this machine gave no answer within {} s", ANSWER.as_secs())]
    Late,
    /// It holds no such image.
    #[error("this machine holds no image `{0}`")]
    Absent(ImageRef),
    /// The image has a name and no digest that could be pinned.
    #[error("cannot pin `{0}`: no digest of it is known on this machine")]
    NoDigest(ImageRef),
}

impl ImagesError {
    /// One line that names the next action.
    pub fn hint(&self) -> String {
        match self {
            Self::Runtime(_) | Self::Late => {
                "start it (`systemctl start docker`), and see that you may use it: `docker version`".into()
            }
            Self::Absent(image) => {
                format!("build or load it; `docker image ls` shows what there is (wanted `{image}`)")
            }
            Self::NoDigest(image) => format!("pull it once, or write `{image}` with `@sha256:…`"),
        }
    }
}

/// Resolves each of `images`; nothing is pulled.
///
/// # Errors
///
/// [`ImagesError`].
pub async fn resolve(images: BTreeSet<ImageRef>) -> Result<BTreeMap<ImageRef, Image>, ImagesError> {
    let runtime = |source| ImagesError::Runtime(Box::new(source));
    let docker = Docker::connect_with_defaults().map_err(runtime)?.with_timeout(ANSWER);
    let docker = within(docker.negotiate_version()).await?.map_err(runtime)?;
    let mut resolved = BTreeMap::new();
    for image in images {
        let found = one(&docker, &image).await?;
        resolved.insert(image, found);
    }
    Ok(resolved)
}

async fn within<T>(answer: impl Future<Output = T>) -> Result<T, ImagesError> {
    tokio::time::timeout(ANSWER, answer).await.map_err(|_| ImagesError::Late)
}

async fn one(docker: &Docker, image: &ImageRef) -> Result<Image, ImagesError> {
    let name = match image {
        ImageRef::Local { name, tag } => format!("{name}:{tag}"),
        ImageRef::Registry { .. } | ImageRef::Held(_) | ImageRef::Tagged { .. } => image.to_string(),
    };
    let found = match within(docker.inspect_image(&name)).await? {
        Ok(found) => Some(found),
        Err(bollard::errors::Error::DockerResponseServerError { status_code: 404, .. }) => None,
        Err(source) => return Err(ImagesError::Runtime(Box::new(source))),
    };
    pinned(image, found.as_ref())
}

fn pinned(image: &ImageRef, found: Option<&ImageInspect>) -> Result<Image, ImagesError> {
    let absent = || ImagesError::Absent(image.clone());
    let user = found.and_then(user);
    let pinned = match image {
        ImageRef::Registry { .. } => image.to_string(),
        ImageRef::Held(_) => {
            found.ok_or_else(absent)?;
            image.to_string()
        }
        ImageRef::Local { .. } => found.ok_or_else(absent)?.id.clone().ok_or_else(absent)?,
        ImageRef::Tagged { repository, .. } => {
            let digests = found.ok_or_else(absent)?.repo_digests.iter().flatten();
            let mut ours = digests.filter(|digest| digest.starts_with(&format!("{repository}@")));
            ours.next().cloned().ok_or_else(|| ImagesError::NoDigest(image.clone()))?
        }
    };
    Ok(Image { pinned, user })
}

/// The numbers an image's programs run under; a name, which only the image itself could resolve, is unknown.
fn user(image: &ImageInspect) -> Option<User> {
    let written = image.config.as_ref().and_then(|config| config.user.as_deref()).unwrap_or_default();
    let (owner, group) = written.split_once(':').unwrap_or((written, ""));
    let number = |text: &str| if matches!(text, "" | "root") { Some(0) } else { text.parse().ok() };
    Some(User { owner: number(owner)?, group: number(group)? })
}

#[cfg(test)]
mod tests {
    use bollard::models::ImageConfig;

    use super::*;

    fn image(user: &str) -> ImageInspect {
        ImageInspect {
            id: Some(format!("sha256:{}", "a".repeat(64))),
            repo_digests: Some(vec![format!("x.example/web@sha256:{}", "b".repeat(64))]),
            config: Some(ImageConfig { user: Some(user.into()), ..ImageConfig::default() }),
            ..ImageInspect::default()
        }
    }

    #[test]
    fn local_name_becomes_the_images_id_and_a_tag_the_digest_it_came_by() {
        let local = ImageRef::parse("local:web:1").unwrap();
        assert_eq!(pinned(&local, Some(&image(""))).unwrap().pinned, format!("sha256:{}", "a".repeat(64)));
        assert!(matches!(pinned(&local, None), Err(ImagesError::Absent(_))));
        let tagged = ImageRef::parse("x.example/web:1").unwrap();
        let pin = pinned(&tagged, Some(&image(""))).unwrap().pinned;
        assert_eq!(pin, format!("x.example/web@sha256:{}", "b".repeat(64)));
        let other = ImageRef::parse("y.example/web:1").unwrap();
        assert!(matches!(pinned(&other, Some(&image(""))), Err(ImagesError::NoDigest(_))));
    }

    #[test]
    fn user_is_known_by_number_only() {
        let known = |text| user(&image(text)).map(|user| (user.owner, user.group));
        assert_eq!(known(""), Some((0, 0)));
        assert_eq!(known("1000"), Some((1000, 0)));
        assert_eq!(known("1000:1001"), Some((1000, 1001)));
        assert_eq!(known("nobody"), None);
    }
}
