//! What commands about one host read before anything is done: its files, and what they compile to.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use replicator_protocol::ids::{Digest, FleetName, HostId, SecretName};

use crate::bootstrap::{ImagesError, Request, images};
use crate::cli::{Context, Failure};
use crate::compiler::{self, Compiled, Distribution, HeldSecret, Image, Wanted, seal};
use crate::fleet::{self, FleetFile};
use crate::secrets::SecretStore;
use crate::spec::names::ImageRef;
use crate::spec::{self, HostSpec};
use crate::state::App;

/// Which files speak of a host.
#[derive(Debug, Clone, clap::Args)]
pub struct Files {
    /// The host spec [default: the one the fleet file names, else `hosts/ID.yml`].
    #[arg(long, value_name = "FILE")]
    pub spec: Option<PathBuf>,
    /// The fleet file [default: `clanker.yml` or `factory.yml` in this folder].
    #[arg(long, value_name = "FILE")]
    pub fleet: Option<PathBuf>,
    /// Other images for the engine's own containers.
    #[arg(long, value_name = "FILE")]
    pub distribution: Option<PathBuf>,
}

/// The files, read and checked.
pub struct Inputs {
    /// The host.
    pub spec: HostSpec,
    /// Its fleet, where there is a file.
    pub fleet: Option<FleetFile>,
    distribution: Distribution,
    revision: String,
}

impl Inputs {
    /// The name under which state lies, as the files say; the default where there are none.
    ///
    /// # Errors
    ///
    /// The [`Failure`] to show, with every fault of a file.
    pub fn app(spec: Option<&Path>, fleet: Option<PathBuf>) -> Result<App, Failure> {
        let spec = match (spec, fleet.or_else(|| fleet::find(Path::new("")))) {
            (Some(spec), _) => spec::load(spec)?,
            (None, Some(fleet)) => fleet::together::load_fleet(&fleet)?.0,
            (None, None) => return App::parse(App::DEFAULT).map_err(|error| Failure::error(&error)),
        };
        Ok(spec.value.state.app)
    }

    /// Reads what speaks of `host`.
    ///
    /// # Errors
    ///
    /// The [`Failure`] to show, with every fault of a file.
    pub fn read(host: Option<&HostId>, files: &Files) -> Result<Self, Failure> {
        let distribution = Distribution::load(files.distribution.as_deref())?;
        let fleet_path = files.fleet.clone().or_else(|| fleet::find(Path::new("")));
        let own = host.map(|host| PathBuf::from(format!("hosts/{host}.yml")));
        let (spec, fleet) = match (&files.spec, fleet_path) {
            (Some(spec), Some(fleet)) => {
                let (spec, fleet) = fleet::together::load(spec, &fleet)?;
                (spec, Some(fleet))
            }
            (None, Some(fleet)) => {
                let (spec, fleet) = fleet::together::load_fleet(&fleet)?;
                (spec, Some(fleet))
            }
            (Some(spec), None) => (spec::load(spec)?, None),
            (None, None) => {
                let path = own.ok_or_else(|| {
                    Failure::usage("there is no fleet file in this folder")
                        .hint("name the host, or the file with `--fleet FILE`")
                })?;
                (spec::load(&path).map_err(|error| unwritten(error, &path))?, None)
            }
        };
        if let Some(host) = host.filter(|host| **host != spec.value.id) {
            let says = format!("`{}` speaks of the host `{}` (got `{host}`)", spec.path.display(), spec.value.id);
            return Err(Failure::message(says).hint("name that host, or the right file with `--spec FILE`"));
        }
        if spec.value.gateway.is_some() && fleet.is_none() {
            let says = "a host with a gateway needs the fleet file: its repositories decide who may sign in";
            return Err(Failure::message(says).hint("name it with `--fleet FILE`"));
        }
        let read = |path: &Path| spec::load::text(path).map(String::into_bytes);
        let mut both = read(&spec.path)?;
        if let Some(fleet) = &fleet {
            both.extend(read(&fleet.path)?);
        }
        let revision = Digest::of(&both).to_string();
        Ok(Self { spec: spec.value, fleet: fleet.map(|fleet| fleet.value), distribution, revision })
    }
}

/// The failure to read the spec that is meant where nothing names one.
fn unwritten(error: spec::LoadError, path: &Path) -> Failure {
    let failure = Failure::from(error);
    if path.exists() {
        return failure;
    }
    failure.hint(
        "write it as `docs/host-spec.md` says, or name another with `--spec FILE`; with a fleet file, in this folder or \
         with `--fleet FILE`, the spec is the one that file names",
    )
}

/// Everything resolved and compiled.
pub struct Ready {
    /// What is wanted.
    pub wanted: Wanted,
    /// What that compiles to.
    pub compiled: Compiled,
    /// Images as written, and what each is.
    pub images: BTreeMap<ImageRef, Image>,
    values: seal::Values,
    revision: String,
}

impl Ready {
    /// Resolves secrets and images, and compiles.
    ///
    /// # Errors
    ///
    /// The [`Failure`] to show; nothing was changed anywhere.
    pub async fn new(context: &Context, fleet: &FleetName, inputs: &Inputs) -> Result<Self, Failure> {
        let (spec, file) = (&inputs.spec, inputs.fleet.as_ref());
        let store = SecretStore::local(&context.home()?, &spec.state.app)?;
        let names = compiler::images(spec, file, &inputs.distribution)?;
        let needs = file.map(|file| fleet::needs(spec, file)).unwrap_or_default();
        let mut values = seal::Values::new();
        // Those that are not needed, too: no line shows one.
        for name in store.names().await? {
            match store.get(&name).await {
                Ok(None) => {}
                Ok(Some((generation, value))) => {
                    context.ui.hide(&value);
                    values.insert(name, (generation, value));
                }
                Err(error) if needs.iter().any(|need| need.secret == name) => return Err(error.into()),
                Err(error) => tracing::warn!(%name, %error, "a secret that nothing needs cannot be read"),
            }
        }
        // Missing secrets are told before the runtime is asked for anything.
        let held = values.keys().cloned().collect();
        crate::secrets::needed::demand(&needs, &held)?;
        let held = |(name, (generation, value)): (&SecretName, &(_, replicator_protocol::secret::SecretBytes))| {
            (name.clone(), HeldSecret { generation: *generation, length: value.expose().len() })
        };
        let secrets = values.iter().map(held).collect();
        let images = images::resolve(names).await.map_err(|error| match &error {
            ImagesError::Absent(image) if inputs.distribution.has(image) => Failure::error(&error).hint(
                "the engine itself uses it: build or load it, or name another file of such images with \
                 `--distribution FILE`",
            ),
            ImagesError::Absent(_) | ImagesError::NoDigest(_) | ImagesError::Runtime(_) | ImagesError::Late => {
                error.into()
            }
        })?;
        let wanted = compiler::wanted(fleet, spec, file, &inputs.distribution, &images, secrets)?;
        let compiled = compiler::compile(&wanted)?;
        let needed: std::collections::BTreeSet<_> =
            compiler::needs(&wanted).into_iter().map(|need| need.secret).collect();
        values.retain(|name, _| needed.contains(name));
        Ok(Self { wanted, compiled, images, values, revision: inputs.revision.clone() })
    }

    /// The request to declare it.
    pub fn request(self, timeout: Duration) -> Request {
        Request { compiled: self.compiled, values: self.values, spec_revision: self.revision, timeout }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spec_that_is_not_written_yet_is_told_with_how_to_write_or_name_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.yml");
        let told = unwritten(spec::load(&path).unwrap_err(), &path);
        assert!(told.to_string().contains("`--spec FILE`"), "{told}");
        assert_eq!(told.exit(), crate::cli::Exit::Usage);
        std::fs::write(&path, "id: a\n").unwrap();
        let told = unwritten(spec::load(&path).unwrap_err(), &path);
        assert!(told.to_string().contains("lacks `namePrefix`"), "{told}");
    }
}
