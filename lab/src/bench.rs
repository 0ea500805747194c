//! The agent's executor on this machine's own container runtime: what it is told is applied, and it can be
//! started again as after a crash.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use bytes::Bytes;
use prost::Message as _;
use replicator_host_agent::appliers::Executor;
use replicator_host_agent::appliers::applier::Tools;
use replicator_host_agent::clock::{Clock, SystemClock};
use replicator_host_agent::config::Layout;
use replicator_host_agent::daemon::{Applier as _, Depth};
use replicator_host_agent::host::docker::{Docker, SOCKET, Seen};
use replicator_host_agent::inbox::InForce;
use replicator_host_agent::keys::Opener;
use replicator_host_agent::keys::digest_key::DigestKey;
use replicator_host_agent::keys::host_key::HostKeys;
use replicator_host_agent::ledger::{Ledger, OpenError, SharedLedger};
use replicator_protocol::declaration::Declaration;
use replicator_protocol::ids::{Digest, FleetName, Generation, HostUid, SecretName};
use replicator_protocol::sealed_box::{Consumer, Recipient, seal};
use replicator_protocol::secret::SecretBytes;
use replicator_protocol::wire::declaration as wire;
use replicator_protocol::wire::event::{ApplyReported, DeclarationRef, Outcome, ResourceResult, Trigger};

/// Longest wait for a ledger that a process in between fork and exec holds.
const LOCK_WITHIN: std::time::Duration = std::time::Duration::from_secs(5);

/// One host of a fleet of its own; everything it made in the runtime is gone when it is dropped.
pub struct Bench {
    folder: PathBuf,
    /// None where the host is another process's as well.
    owned: Option<tempfile::TempDir>,
    fleet: FleetName,
    uid: HostUid,
    keys: Arc<HostKeys>,
    executor: Option<Executor>,
    sequence: u64,
    in_force: Option<InForce>,
    /// The runtime.
    pub docker: Docker,
}

/// What another process needs to go on with a bench's host.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Shared {
    /// Where its files lie.
    pub folder: PathBuf,
    /// Its number.
    pub uid: String,
    /// Number of the last declaration.
    pub sequence: u64,
}

impl Bench {
    /// A host with nothing applied, and an unguessable number, so that tests share one runtime.
    ///
    /// # Errors
    ///
    /// No temporary folder, no random bytes.
    pub fn new() -> Result<Self> {
        Self::before(SOCKET)
    }

    /// The same, with the runtime that listens on `socket`.
    ///
    /// # Errors
    ///
    /// As [`Bench::new`].
    pub fn before(socket: &str) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        std::fs::create_dir(folder.path().join("machine"))?;
        let mut number = [0; 16];
        getrandom::fill(&mut number)?;
        let mut bench = Self {
            keys: Arc::new(HostKeys::make(&folder.path().join("keys"))?),
            folder: folder.path().to_owned(),
            owned: Some(folder),
            fleet: FleetName::parse("lab")?,
            uid: HostUid::parse(&hex::encode(number))?,
            executor: None,
            sequence: 0,
            in_force: None,
            docker: Docker::new(socket),
        };
        bench.start()?;
        Ok(bench)
    }

    /// The host of another process, which has let go of it: see [`Bench::share`]. Nothing is removed when this
    /// one is dropped.
    ///
    /// # Errors
    ///
    /// No such host, or the other process still has its ledger.
    pub fn join(shared: &Shared) -> Result<Self> {
        let mut bench = Self {
            keys: Arc::new(HostKeys::load(&shared.folder.join("keys"))?),
            folder: shared.folder.clone(),
            owned: None,
            fleet: FleetName::parse("lab")?,
            uid: HostUid::parse(&shared.uid)?,
            executor: None,
            sequence: shared.sequence,
            in_force: None,
            docker: Docker::new(SOCKET),
        };
        bench.start()?;
        Ok(bench)
    }

    /// Lets go of the ledger, so that another process can join; [`Bench::start`] takes it again.
    pub fn share(&mut self) -> Shared {
        self.executor = None;
        Shared { folder: self.folder.clone(), uid: self.uid.to_string(), sequence: self.sequence }
    }

    /// What is applied next gets a higher number than what another process applied.
    pub fn skip_number(&mut self) {
        self.sequence += 1;
    }

    /// Starts the executor again, as after a crash: all it knows is in its ledger.
    ///
    /// # Errors
    ///
    /// The ledger cannot be opened.
    pub fn start(&mut self) -> Result<()> {
        self.executor = None;
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let ledger = self.ledger(&clock)?;
        let recipient = Recipient { fleet: self.fleet.clone(), host: self.uid.clone() };
        let tools = Tools {
            host: self.uid.clone(),
            fleet: self.fleet.clone(),
            layout: Layout::new(&self.folder),
            digest_key: Arc::new(DigestKey::from_bytes([3; 32])),
            opener: Arc::new(Opener::new(recipient, Arc::clone(&self.keys))),
            docker: self.docker.clone(),
            ledger: Arc::new(SharedLedger::new(ledger)),
        };
        self.executor = Some(Executor::new(tools, clock));
        Ok(())
    }

    /// The host's number.
    #[must_use]
    pub fn uid(&self) -> &HostUid {
        &self.uid
    }

    /// The ledger. A process that another test has just forked holds its lock as well, until it runs its program.
    fn ledger(&self, clock: &Arc<dyn Clock>) -> Result<Ledger> {
        let started = std::time::Instant::now();
        loop {
            match Ledger::open(&self.folder, &self.uid, Arc::clone(clock)) {
                Err(OpenError::Locked(_)) if started.elapsed() < LOCK_WITHIN => {
                    std::thread::sleep(std::time::Duration::from_millis(20));
                }
                opened => return Ok(opened?),
            }
        }
    }

    /// A name in the runtime that no other bench has.
    #[must_use]
    pub fn name(&self, name: &str) -> String {
        format!("lab-{}-{name}", &self.uid.as_str()[..8])
    }

    /// A path on the bench's machine.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join("machine").join(name)
    }

    /// A file of this name and content.
    #[must_use]
    pub fn file(&self, name: &str, content: &str) -> wire::resource::Kind {
        wire::resource::Kind::File(wire::File {
            path: self.path(name).to_string_lossy().into_owned(),
            body: Some(wire::file::Body::Content(content.to_owned())),
            ..wire::File::default()
        })
    }

    /// A file that holds the secret `token`, the `generation`th, sealed for `resource`.
    ///
    /// # Errors
    ///
    /// A name that is none.
    pub fn secret(&self, resource: &str, value: &str, generation: u64) -> Result<wire::resource::Kind> {
        let consumer = Consumer { resource: resource.parse()?, field: "sealed".into() };
        let recipient = Recipient { fleet: self.fleet.clone(), host: self.uid.clone() };
        let name = (&SecretName::parse("token")?, Generation(generation));
        let value = SecretBytes::new(value.as_bytes().to_vec());
        let sealed = seal(self.keys.sealing().public(), &recipient, name, &consumer, &value)?;
        Ok(wire::resource::Kind::File(wire::File {
            path: self.path("token").to_string_lossy().into_owned(),
            body: Some(wire::file::Body::Sealed(sealed)),
            mode: Some(0o400),
            // Who the lab's images run as.
            owner: "1000".into(),
            ..wire::File::default()
        }))
    }

    /// A container from `image` that keeps running.
    #[must_use]
    pub fn container(&self, name: &str, image: &str, edit: impl FnOnce(&mut wire::Container)) -> wire::resource::Kind {
        let mut container = wire::Container {
            name: self.name(name),
            image: image.to_owned(),
            rollover: wire::Rollover::StopFirst.into(),
            ..wire::Container::default()
        };
        edit(&mut container);
        wire::resource::Kind::Container(container)
    }

    /// Applies resources (`module.name`, kind) as a new declaration.
    ///
    /// # Errors
    ///
    /// The declaration breaks a rule, or the apply could not be done.
    pub async fn apply(&mut self, resources: &[(&str, wire::resource::Kind)]) -> Result<ApplyReported> {
        self.sequence += 1;
        let resources = resources.iter().map(|(id, kind)| {
            let (module, name) = id.rsplit_once('.').unwrap_or(("m", id));
            wire::Resource {
                module: module.to_owned(),
                name: name.to_owned(),
                confirms_link: false,
                kind: Some(kind.clone()),
            }
        });
        let message = wire::Declaration {
            fleet: self.fleet.to_string(),
            host: "bench".into(),
            uid: self.uid.to_string(),
            epoch: 1,
            sequence: self.sequence,
            mode: wire::Mode::Converge.into(),
            level: 1,
            resources: resources.collect(),
            ..wire::Declaration::default()
        };
        let hash = Digest::of(&message.encode_to_vec());
        let reference = DeclarationRef { epoch: 1, sequence: self.sequence, hash: Bytes::copy_from_slice(&hash.0) };
        let declaration = Declaration::from_wire(&message)?;
        self.in_force = Some(InForce { declaration, reference, envelope: Bytes::new() });
        self.again(Trigger::Declaration).await
    }

    /// Applies what is in force once more.
    ///
    /// # Errors
    ///
    /// Nothing is in force, or the apply could not be done.
    pub async fn again(&self, trigger: Trigger) -> Result<ApplyReported> {
        let in_force = self.in_force.as_ref().context("nothing is in force")?;
        Ok(self.executor()?.apply(in_force, trigger, &|| false).await?)
    }

    /// Looks at what is in force.
    ///
    /// # Errors
    ///
    /// As [`Bench::again`].
    pub async fn look(&self, depth: Depth) -> Result<Option<ApplyReported>> {
        let in_force = self.in_force.as_ref().context("nothing is in force")?;
        Ok(self.executor()?.look(in_force, depth, &|| false).await?)
    }

    fn executor(&self) -> Result<&Executor> {
        self.executor.as_ref().context("the executor was not started")
    }

    /// The container of this bench with this name.
    ///
    /// # Errors
    ///
    /// The runtime could not say, or there is none.
    pub async fn seen(&self, name: &str) -> Result<Seen> {
        self.docker.container(&self.name(name)).await?.with_context(|| format!("there is no container `{name}`"))
    }

    /// Where the bench's files lie.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The label that everything it makes in the runtime bears.
    #[must_use]
    pub fn label(&self) -> String {
        format!("replicator.host={}", self.uid)
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        if self.owned.is_none() {
            return;
        }
        let filter = format!("label={}", self.label());
        let docker = |arguments: &[&str]| {
            let output = std::process::Command::new("docker").args(arguments).output();
            output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default()
        };
        for id in docker(&["ps", "-aq", "--filter", &filter]).split_whitespace() {
            docker(&["rm", "-fv", id]);
        }
        for (list, remove) in [("network", "network"), ("volume", "volume")] {
            for id in docker(&[list, "ls", "-q", "--filter", &filter]).split_whitespace() {
                docker(&[remove, "rm", id]);
            }
        }
    }
}

/// What became of each resource, in the report's order.
#[must_use]
pub fn outcomes(report: &ApplyReported) -> Vec<Outcome> {
    report.results.iter().map(ResourceResult::outcome).collect()
}

/// The stable code of the failure of the resource at this place.
#[must_use]
pub fn code(report: &ApplyReported, at: usize) -> &str {
    report.results.get(at).and_then(|result| result.failure.as_ref()).map_or("", |failure| failure.code.as_str())
}
