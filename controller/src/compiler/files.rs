//! Secrets as files: one 0400 file each, in a 0700 folder of the container that reads them, bound into it under
//! `/run/secrets`. The environment only names the files.

use replicator_protocol::ids::{Digest, SecretName};
use replicator_protocol::resources::Resource;
use replicator_protocol::wire::declaration::{Container, Directory, File, Mount, file, mount, resource};

use super::error::{CompileError, named};
use super::intent::{Image, Wanted};
use super::{base, seal};

/// Where they are found inside a container.
const MOUNTED: &str = "/run/secrets";

/// One secret a container reads.
pub(super) struct SecretFile {
    /// What its resource is called, after the container's.
    pub(super) name: String,
    /// The file's name under `/run/secrets`.
    pub(super) mounted: String,
    /// The variable that names the file.
    pub(super) variable: String,
    /// The secret.
    pub(super) secret: SecretName,
}

impl SecretFile {
    /// A file that is called as the secret is, named by `NAME_FILE`.
    pub(super) fn named_after(secret: &SecretName) -> Self {
        Self {
            name: format!("secret-{}", slug(secret)),
            mounted: secret.to_string(),
            variable: format!("{secret}_FILE"),
            secret: secret.clone(),
        }
    }
}

/// A secret's name as part of a resource's: as it is where that is possible, else in lower case with some of
/// its digest, so that no two names meet.
fn slug(secret: &SecretName) -> String {
    let name = secret.as_str();
    let lower = name.to_ascii_lowercase().replace('_', "-");
    if lower == name { lower } else { format!("{lower}-{}", &Digest::of(name.as_bytes()).to_string()[..6]) }
}

/// Declares the files of `container`, which stands at `module` and `name`, and binds them into it.
pub(super) fn mount(
    wanted: &Wanted,
    (module, name): (&str, &str),
    container: &mut Container,
    image: &Image,
    files: &[SecretFile],
) -> Result<Vec<Resource>, CompileError> {
    if files.is_empty() {
        return Ok(Vec::new());
    }
    let unknown = || CompileError::User { image: image.pinned.clone(), resource: format!("{module}.{name}") };
    let user = image.user.ok_or_else(unknown)?;
    let (owner, group) = (user.owner.to_string(), user.group.to_string());
    let folder = format!("{}/{}", base::secrets(wanted), container.name);
    let directory = Directory { path: folder.clone(), owner: owner.clone(), group: group.clone(), mode: Some(0o700) };
    let mut resources = vec![named(module, &format!("{name}-secrets"), resource::Kind::Directory(directory))?];
    for read in files {
        // A missing secret was refused before: there is one for each.
        let Some(held) = wanted.secrets.get(&read.secret) else { continue };
        let path = format!("{folder}/{}", read.mounted);
        let target = format!("{MOUNTED}/{}", read.mounted);
        let sealed = seal::placeholder(&read.secret, held.generation, held.length);
        let file = File {
            path: path.clone(),
            body: Some(file::Body::Sealed(sealed)),
            owner: owner.clone(),
            group: group.clone(),
            mode: Some(0o400),
            ..File::default()
        };
        resources.push(named(module, &format!("{name}-{}", read.name), resource::Kind::File(file))?);
        container.environment.insert(read.variable.clone(), target.clone());
        container.mounts.push(Mount { source: Some(mount::Source::Bind(path)), target, read_only: true });
    }
    Ok(resources)
}
