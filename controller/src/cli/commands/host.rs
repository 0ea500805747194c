//! `replicator host`: what its commands share, and which there are.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use replicator_protocol::ids::{Digest, FleetName, HostId, SecretName};

use super::{host_converge, host_down, host_list, host_show, host_up};
use crate::bootstrap::{Agent, Applied, ImagesError, Request, images, supervisor};
use crate::cli::{Context, Exit, Failure};
use crate::compiler::{self, Compiled, Distribution, HeldSecret, Image, Wanted, seal};
use crate::fleet::{self, FleetFile};
use crate::planner::{ReportData, Unwell, report_text};
use crate::secrets::SecretStore;
use crate::spec::names::ImageRef;
use crate::spec::{self, HostSpec};
use crate::state::{App, HostState};

/// What can be done with hosts.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Enrol a host where that was not done, and make it what its spec says.
    Up(host_up::UpArgs),
    /// Make a host that is up what its spec says.
    Converge(host_converge::ConvergeArgs),
    /// Remove everything a host was given, and retire it.
    Down(host_down::DownArgs),
    /// Show how far a host has come.
    Show(host_show::ShowArgs),
    /// Show every host with a state.
    List(host_list::ListArgs),
}

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

/// How long a report is waited for.
#[derive(Debug, Clone, clap::Args)]
pub struct Wait {
    /// Seconds to wait for the host's report.
    #[arg(long, value_name = "SECONDS", default_value_t = 900, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    timeout: u64,
}

impl Wait {
    /// The bound.
    pub fn bound(&self) -> Duration {
        Duration::from_secs(self.timeout)
    }
}

/// The agent on this machine.
#[derive(Debug, Clone, clap::Args)]
pub struct AgentArgs {
    /// The agent's program [default: `replicator-host-agent` beside this one; to end one, the one it was set up with].
    #[arg(long, value_name = "PATH")]
    agent: Option<PathBuf>,
    /// Move all of the agent's files under DIR: several agents fit on one machine [default: where the host's agent is
    /// set up, else `/`].
    #[arg(long, value_name = "DIR")]
    agent_root: Option<PathBuf>,
}

impl AgentArgs {
    /// Finds it, to be set up for a host of which `state` is known.
    ///
    /// # Errors
    ///
    /// The [`Failure`] to show where it is not there.
    pub fn find(&self, state: &HostState) -> Result<Agent, Failure> {
        Ok(Agent::find(self.agent.as_deref(), &self.root(state)?)?)
    }

    /// The agent of `host` as it was set up, to be ended; a program that is not named need not be there.
    ///
    /// # Errors
    ///
    /// The [`Failure`] to show where the one that is named is not there.
    pub fn set_up(&self, host: &HostId, state: &HostState) -> Result<Agent, Failure> {
        match &state.agent {
            Some((supervisor, root)) if self.agent.is_none() => Ok(supervisor::set_up(root, host, *supervisor)),
            Some(_) => self.find(state),
            None => Ok(supervisor::set_up(&self.root(state)?, host, supervisor::of_this_machine())),
        }
    }

    fn root(&self, state: &HostState) -> Result<PathBuf, Failure> {
        let used = state.agent.as_ref().map(|(_, root)| root.as_path());
        let root = self.agent_root.as_deref().or(used).unwrap_or(Path::new("/"));
        std::path::absolute(root).map_err(|source| Failure::usage("cannot use `--agent-root`").caused_by(source))
    }
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
                (spec::load(&path)?, None)
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
        let mut values = seal::Values::new();
        for name in store.names().await? {
            if let Some((generation, value)) = store.get(&name).await? {
                context.ui.hide(&value);
                values.insert(name, (generation, value));
            }
        }
        // Missing secrets are told before the runtime is asked for anything.
        if let Some(file) = file {
            let held = values.keys().cloned().collect();
            crate::secrets::needed::demand(&fleet::needs(spec, file), &held)?;
        }
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

/// Shows a report.
///
/// # Errors
///
/// The [`Failure`] to show where stdout takes no more.
pub fn show(
    context: &Context,
    host: &HostId,
    wanted: Option<(&Wanted, &[compiler::Place])>,
    applied: &Applied,
) -> Result<(), Failure> {
    let places = wanted.map_or(&[][..], |(_, places)| places);
    if context.ui.is_json() {
        context.ui.json(&ReportData::new(host, applied.position, &applied.report, places))?;
    } else {
        context.ui.data(report_text(&applied.report))?;
        if let Some((wanted, places)) = wanted {
            for place in places {
                context.ui.data(format!("  http://{}:{}/", place.host, wanted.listen.1))?;
            }
        }
    }
    Ok(())
}

/// How a command that shows `applied` ends.
///
/// # Errors
///
/// The [`Failure`] to show where not everything is as declared.
pub fn verdict(host: &HostId, applied: &Applied) -> Result<Exit, Failure> {
    Unwell::of(host, &applied.report).map_or(Ok(Exit::Done), |unwell| Err(unwell.into()))
}

/// Runs it.
///
/// # Errors
///
/// The [`Failure`] to show.
pub async fn run(command: Command, context: &Context) -> Result<Exit, Failure> {
    match command {
        Command::Up(args) => host_up::run(args, context).await,
        Command::Converge(args) => host_converge::run(args, context).await,
        Command::Down(args) => host_down::run(args, context).await,
        Command::Show(args) => host_show::run(args, context).await,
        Command::List(args) => host_list::run(args, context).await,
    }
}
