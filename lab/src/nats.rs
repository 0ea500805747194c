//! A broker: nats-server, run from the configuration that `broker init` wrote, on a free loopback port.

use std::fs::File;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, bail};
use async_nats::{Client, ConnectOptions};
use nkeys::KeyPair;
use replicator::home::{FleetFolder, Home};
use replicator::keys::Settings;
use replicator::keys::broker::{Transport, Wanted, init};
use replicator::publisher::accounts::admit_host;
use replicator_protocol::ids::{FleetName, HostUid};
use replicator_protocol::subjects;
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use crate::wait;

/// Longest wait for a broker that starts: it reads its streams first.
const STARTS_WITHIN: Duration = Duration::from_secs(10);
/// Attempts to find a port that nobody takes between the look and the start.
const PORTS_TRIED: usize = 5;

/// The pinned nats-server: `REPLICATOR_LAB_NATS`, else what `scripts/fetch-lab-binaries.sh` fetched.
///
/// # Errors
///
/// Where there is none.
pub fn binary() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("REPLICATOR_LAB_NATS") {
        return Ok(path.into());
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/lab/bin/nats-server");
    if !path.is_file() {
        bail!("there is no `target/lab/bin/nats-server`; run `scripts/fetch-lab-binaries.sh`");
    }
    Ok(path)
}

/// A broker older than we accept: what `scripts/fetch-old-broker.sh` fetched, where it could.
#[must_use]
pub fn old_binary() -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/lab/bin/nats-server-old");
    path.is_file().then_some(path)
}

/// A fleet with its broker running. Ends with the value.
pub struct Broker {
    /// The controller's folder.
    pub home: Home,
    /// The fleet's folder.
    pub fleet: FleetFolder,
    /// Where it listens.
    pub listen: SocketAddr,
    program: PathBuf,
    process: Option<Child>,
    // Last: the process ends before its files do.
    _folder: tempfile::TempDir,
}

impl Broker {
    /// Sets up a fleet `lab` with TLS for `localhost`, and starts its broker.
    ///
    /// # Errors
    ///
    /// Where there is no binary, or it does not come up.
    pub async fn start() -> Result<Self> {
        Self::start_with(binary()?, &|_| Ok(()), || Transport::Tls { names: vec!["localhost".into()] }).await
    }

    /// The same with plain text.
    ///
    /// # Errors
    ///
    /// As [`Broker::start`].
    pub async fn start_plain() -> Result<Self> {
        Self::start_with(binary()?, &|_| Ok(()), || Transport::InsecureLoopback).await
    }

    /// The same with the broker `program`, which is too old to know how often to sync.
    ///
    /// # Errors
    ///
    /// As [`Broker::start`].
    pub async fn start_old(program: PathBuf) -> Result<Self> {
        let known = |fleet: &FleetFolder| -> Result<()> {
            let path = fleet.broker().join("nats.conf");
            let text = std::fs::read_to_string(&path)?;
            let lines = text.lines().filter(|line| !line.trim_start().starts_with("sync_interval"));
            Ok(std::fs::write(&path, lines.collect::<Vec<_>>().join("\n"))?)
        };
        Self::start_with(program, &known, || Transport::InsecureLoopback).await
    }

    async fn start_with(
        program: PathBuf,
        prepare: &dyn Fn(&FleetFolder) -> Result<()>,
        transport: impl Fn() -> Transport,
    ) -> Result<Self> {
        let mut last = None;
        for _ in 0..PORTS_TRIED {
            let folder = tempfile::tempdir()?;
            let home = Home::at(folder.path().join("home"))?;
            let listen = free_address()?;
            let wanted = Wanted { fleet: FleetName::parse("lab")?, listen, transport: transport() };
            let fleet = init(&home, &wanted, SystemTime::now().duration_since(UNIX_EPOCH)?)?;
            prepare(&fleet)?;
            let program = program.clone();
            let mut broker = Self { home, fleet, listen, program, process: None, _folder: folder };
            match broker.resume().await {
                Ok(()) => return Ok(broker),
                Err(error) => last = Some(error),
            }
        }
        Err(last.context("no port was tried")?)
    }

    /// Starts the broker again, as it lies.
    ///
    /// # Errors
    ///
    /// Where it does not come up; with the end of its log.
    pub async fn resume(&mut self) -> Result<()> {
        let log = File::options().create(true).append(true).open(self.log())?;
        let configuration = self.fleet.broker().join("nats.conf");
        let mut command = Command::new(&self.program);
        command.arg("-c").arg(configuration).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let child = self.process.insert(command.spawn().context("cannot start nats-server")?);
        let listen = self.listen;
        let up = wait::until("the broker listens", STARTS_WITHIN, async || {
            if let Some(status) = child.try_wait()? {
                bail!("nats-server ended at once: {status}");
            }
            Ok(TcpStream::connect_timeout(&listen, Duration::from_millis(200)).ok())
        });
        let up = up.await.map(drop);
        up.with_context(|| std::fs::read_to_string(self.log()).unwrap_or_default())
    }

    /// Kills the broker, as a power cut would.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.process.take() {
            // Gone already is as good.
            let _gone = child.kill();
            let _ended = child.wait();
        }
    }

    /// Kills the broker and removes everything it has stored: streams and accounts. Its configuration stays.
    ///
    /// # Errors
    ///
    /// Where the folders cannot be emptied.
    pub fn wipe(&mut self) -> Result<()> {
        self.kill();
        for name in ["jetstream", "resolver"] {
            let folder = self.fleet.broker().join(name);
            std::fs::remove_dir_all(&folder)?;
            std::fs::create_dir(&folder)?;
        }
        Ok(())
    }

    /// What the broker has said so far.
    pub fn log(&self) -> PathBuf {
        self.fleet.broker().join("nats.log")
    }

    /// Admits `host` and connects with its credential.
    ///
    /// # Errors
    ///
    /// Where the broker refuses.
    pub async fn host(&self, host: &HostUid) -> Result<Host> {
        let pair = KeyPair::new_user();
        let jwt = Box::pin(admit_host(&self.fleet, host, &pair.public_key())).await?;
        let seed = pair.seed()?;
        let client = self.connect_as(&jwt, &seed, &subjects::inbox_prefix(host)).await?;
        Ok(Host { client, jwt, seed })
    }

    /// Connects with any credential, hearing answers under any inbox.
    ///
    /// # Errors
    ///
    /// Where the broker refuses.
    pub async fn connect_as(&self, jwt: &str, seed: &str, inbox: &str) -> Result<Client> {
        let pair = std::sync::Arc::new(KeyPair::from_seed(seed)?);
        let sign = move |nonce: Vec<u8>| {
            let pair = pair.clone();
            async move { pair.sign(&nonce).map_err(async_nats::AuthError::new) }
        };
        let settings = Settings::load(&self.fleet)?.broker;
        let mut options = ConnectOptions::with_jwt(jwt.to_owned(), sign)
            .custom_inbox_prefix(inbox)
            .max_reconnects(1)
            .request_timeout(Some(Duration::from_secs(2)));
        if !settings.insecure_loopback {
            options = options.tls_first().require_tls(true).tls_client_config(tls(&settings.ca)?);
        }
        Ok(Box::pin(options.connect(settings.urls)).await?)
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A host's connection, and what it was made with.
pub struct Host {
    /// The connection.
    pub client: Client,
    /// The user JWT.
    pub jwt: String,
    /// The user's seed.
    pub seed: String,
}

fn tls(authority: &str) -> Result<rustls::ClientConfig> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(authority.as_bytes()) {
        roots.add(certificate?)?;
    }
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(config)
}

fn free_address() -> Result<SocketAddr> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?)
}
