//! Everything a broker starts from: operator, accounts, credentials, TLS and its configuration file.
//!
//! Made once for a fleet, as a whole: in a folder beside it that is renamed when it is complete.

mod lock;

use std::fs::Permissions;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nkeys::KeyPair;
use replicator_protocol::enrolment::Broker;
use replicator_protocol::ids::{Digest, FleetName};
use replicator_protocol::resources::text::is_host_name;
use serde_json::json;

use super::accounts::{self, Member};
use super::settings::Settings;
use super::signing::{self, Signer};
use super::{KeysError, files, jwt, keyring, root, tls};
use crate::home::{FleetFolder, Home, private_folder};
use crate::point::{self, Effect};

/// Most bytes of all streams, in the configuration: above the sum of the bounded ones.
const STORE_MAX: &str = "16GB";
/// What the folder of a half-made fleet is called, before what tells it from others: no fleet can be called so.
const DRAFT: &str = ".new-";

/// How the broker is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transport {
    /// TLS 1.3 from the first byte, with a certificate for these names.
    Tls {
        /// Host names or addresses; the first is the one hosts pin.
        names: Vec<String>,
    },
    /// Plain text, to a loopback address.
    InsecureLoopback,
}

/// What `broker init` was asked for.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// The fleet; its name is fixed from now on.
    pub fleet: FleetName,
    /// Where the broker listens.
    pub listen: SocketAddr,
    /// How it is reached.
    pub transport: Transport,
}

/// Why a broker was not set up; nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum InitError {
    /// It is there already.
    #[error("fleet `{fleet}` was set up already, in `{}`", path.display())]
    Exists {
        /// The fleet.
        fleet: FleetName,
        /// Its folder.
        path: PathBuf,
    },
    /// Plain text beyond this machine.
    #[error("plain text is allowed to a loopback address only, and `{0}` is none")]
    PlainBeyondLoopback(SocketAddr),
    /// TLS without a name.
    #[error("the broker's certificate needs at least one name")]
    NoName,
    /// No host could reach it by that.
    #[error("`{0}` is neither the name of a machine nor an address")]
    Name(String),
    /// A name twice.
    #[error("the broker's name `{0}` is given twice")]
    Twice(String),
    /// Hosts could not be told where the broker is.
    #[error("the broker's port must be given (got 0)")]
    NoPort,
    /// Keys could not be made.
    #[error(transparent)]
    Keys(#[from] KeysError),
    /// A folder could not be made.
    #[error(transparent)]
    Home(#[from] crate::home::HomeError),
    /// Somebody else sets up a fleet, and does not come to an end.
    #[error("another `broker init` keeps `{}` locked (waited {seconds} s){}", path.display(), by(*pid))]
    Busy {
        /// The folder of all fleets.
        path: PathBuf,
        /// How long it was waited for.
        seconds: u64,
        /// Its process, where it is known.
        pid: Option<u32>,
    },
    /// The complete folder could not be put in place.
    #[error("cannot put `{}` in place", path.display())]
    Place {
        /// The fleet's folder.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

impl InitError {
    /// One line that names the next action.
    pub fn hint(&self) -> String {
        match self {
            Self::Exists { path, .. } => format!(
                "use it as it is; to set it up anew, move `{}` away first: its hosts must then be enrolled again",
                path.display()
            ),
            Self::PlainBeyondLoopback(_) => {
                "listen on `127.0.0.1:PORT`, or leave `--insecure-loopback` out and give `--name NAME`".into()
            }
            Self::NoName => {
                "add `--name NAME`, the name or address hosts will use; on this machine alone, `--insecure-loopback`"
                    .into()
            }
            Self::Name(_) => {
                "write `--name` with a name like `broker.acme.example` or an address, without scheme, port and `*`"
                    .into()
            }
            Self::Twice(_) => "leave one of them out".into(),
            Self::NoPort => "write `--listen ADDRESS:4222`".into(),
            Self::Keys(error) => error.hint(),
            Self::Home(error) => error.hint(),
            Self::Busy { pid: Some(pid), .. } => format!(
                "it may be stopped: see `ps -p {pid}`, let it go on with `kill -CONT {pid}` or end it with `kill -KILL {pid}`, \
                 then run this again"
            ),
            Self::Busy { path, pid: None, .. } => {
                format!("see who that is with `fuser {}`, end it, then run this again", path.display())
            }
            Self::Place { .. } => "check that nobody else sets up the same fleet, and the disk".into(),
        }
    }
}

/// Sets up the fleet's folder; `now` since the Unix epoch. All of it is on disk when this returns, or none.
///
/// # Errors
///
/// [`InitError`]; an existing fleet is as it was.
pub fn init(home: &Home, wanted: &Wanted, now: Duration) -> Result<FleetFolder, InitError> {
    let folder = home.fleet(&wanted.fleet);
    check(wanted)?;
    let place = |source| InitError::Place { path: folder.root().to_owned(), source };
    let fleets = home.root().join("fleets");
    private_folder(&fleets)?;
    // Held to the end: one at a time, so that a draft that lies here is nobody's.
    let _lock = lock::lock(&fleets, lock::WITHIN)?;
    remove_left_drafts(&fleets).map_err(place)?;
    if folder.root().exists() {
        return Err(InitError::Exists { fleet: wanted.fleet.clone(), path: folder.root().to_owned() });
    }
    let beside = new_draft(&fleets).map_err(place)?;
    let draft = Home::at(beside.path().to_owned())?.fleet(&wanted.fleet);
    write(&draft, folder.root(), wanted, now)?;
    std::fs::rename(draft.root(), folder.root()).map_err(place)?;
    files::sync_folder(&fleets).map_err(place)?;
    point::behind(Effect::FleetPlace);
    Ok(folder)
}

fn by(pid: Option<u32>) -> String {
    pid.map(|pid| format!("; it is process {pid}")).unwrap_or_default()
}

/// A home of its own, so that the half-made fleet has the layout it will have in its place. Gone when dropped.
fn new_draft(fleets: &Path) -> std::io::Result<tempfile::TempDir> {
    let mut draft = tempfile::Builder::new();
    let folder = draft.prefix(DRAFT).permissions(Permissions::from_mode(0o700)).tempdir_in(fleets)?;
    point::behind(Effect::FleetDraft);
    Ok(folder)
}

/// Removes what runs that were cut off left behind: it holds private keys.
fn remove_left_drafts(fleets: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(fleets)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(DRAFT) {
            std::fs::remove_dir_all(entry.path())?;
            point::behind(Effect::FileRemove);
        }
    }
    Ok(())
}

fn check(wanted: &Wanted) -> Result<(), InitError> {
    if wanted.listen.port() == 0 {
        return Err(InitError::NoPort);
    }
    match &wanted.transport {
        Transport::Tls { names } if names.is_empty() => Err(InitError::NoName),
        Transport::InsecureLoopback if !wanted.listen.ip().is_loopback() => {
            Err(InitError::PlainBeyondLoopback(wanted.listen))
        }
        Transport::Tls { names } => check_names(names),
        Transport::InsecureLoopback => Ok(()),
    }
}

/// Names that a certificate can carry and that a host can look up or dial.
fn check_names(names: &[String]) -> Result<(), InitError> {
    // One whose last label is a number is meant as an address, and would be dialled as none.
    let is_numeric = |name: &str| name.rsplit('.').next().is_some_and(|last| last.bytes().all(|b| b.is_ascii_digit()));
    let is_name = |name: &str| is_host_name(name) && !is_numeric(name);
    for (index, name) in names.iter().enumerate() {
        if name.parse::<IpAddr>().is_err() && !is_name(name) {
            return Err(InitError::Name(name.clone()));
        }
        if names[..index].iter().any(|other| other.eq_ignore_ascii_case(name)) {
            return Err(InitError::Twice(name.clone()));
        }
    }
    Ok(())
}

/// Writes everything into `draft`; `place` is where it will lie, as the broker's configuration names it.
fn write(draft: &FleetFolder, place: &Path, wanted: &Wanted, now: Duration) -> Result<(), InitError> {
    let document = signing_keys(draft, &wanted.fleet)?;
    let accounts = nats_accounts(draft, &wanted.fleet, now.as_secs())?;
    let authority = certificates(draft, wanted, now)?;
    let folders = [draft.broker().join("resolver"), draft.broker().join("jetstream")];
    folders.iter().try_for_each(|folder| private_folder(folder))?;
    let text = configuration(&place.join("broker"), wanted, &accounts);
    files::create(&draft.broker().join("nats.conf"), text.as_bytes()).map_err(KeysError::from)?;
    let settings = Settings {
        fleet: wanted.fleet.clone(),
        root: Digest::of(&document).to_string(),
        broker: reached_at(wanted, authority),
    };
    // Last: a folder without settings is no fleet.
    let text = settings.text(draft.settings())?;
    files::create(&draft.settings(), text.as_bytes()).map_err(KeysError::from)?;
    Ok(())
}

fn signing_keys(draft: &FleetFolder, fleet: &FleetName) -> Result<bytes::Bytes, KeysError> {
    let root = root::make(draft)?;
    let mut keys = Vec::new();
    for signer in Signer::ONLINE {
        keys.push((signer, signing::make(draft, signer)?.verifying_key()));
    }
    let document = keyring::first(fleet, &root, &keys);
    files::create(&draft.root_document(), &document)?;
    Ok(document)
}

/// What the configuration names: the operator's JWT and the two accounts every broker starts with.
struct Accounts {
    operator: String,
    system: (String, String),
    core: (String, String),
}

fn nats_accounts(draft: &FleetFolder, fleet: &FleetName, now: u64) -> Result<Accounts, KeysError> {
    let keep = |name: &str, pair: &KeyPair| accounts::keep(draft, name, pair);
    let operator = KeyPair::new_operator();
    let signing = KeyPair::new_operator();
    let (system, core) = (KeyPair::new_account(), KeyPair::new_account());
    keep(accounts::OPERATOR, &operator)?;
    keep(accounts::OPERATOR_SIGNING, &signing)?;
    keep(accounts::SYSTEM, &system)?;
    keep(accounts::CORE, &core)?;
    let claims = json!({
        "type": "operator", "version": 2,
        "signing_keys": [signing.public_key()],
        "system_account": system.public_key(),
    });
    let operator_jwt = jwt::sign(&operator, &operator.public_key(), fleet.as_str(), now, claims)?;
    let system_jwt = jwt::sign(&signing, &system.public_key(), "SYS", now, accounts::system_claims())?;
    let core_jwt = jwt::sign(&signing, &core.public_key(), "CORE", now, accounts::core_claims())?;
    for member in Member::ALL {
        let account = if member == Member::System { &system } else { &core };
        let user = KeyPair::new_user();
        let jwt = jwt::sign(account, &user.public_key(), member.name(), now, jwt::user(&member.allowed()))?;
        let seed = zeroize::Zeroizing::new(user.seed().map_err(KeysError::Nkey)?);
        let text = zeroize::Zeroizing::new(jwt::credentials(&jwt, &seed));
        files::create(&draft.credentials().join(member.name()), text.as_bytes())?;
    }
    Ok(Accounts {
        operator: operator_jwt,
        system: (system.public_key(), system_jwt),
        core: (core.public_key(), core_jwt),
    })
}

/// Makes the TLS files where they are wanted, and returns the authority's certificate.
fn certificates(draft: &FleetFolder, wanted: &Wanted, now: Duration) -> Result<String, KeysError> {
    let Transport::Tls { names } = &wanted.transport else { return Ok(String::new()) };
    let authority = tls::authority(&wanted.fleet, now).map_err(KeysError::Certificate)?;
    let server = tls::server(&wanted.fleet, &authority.key, names, now).map_err(KeysError::Certificate)?;
    files::create(&tls::authority_key(draft), authority.key.as_bytes())?;
    files::create(&draft.broker().join("tls/ca.pem"), authority.certificate.as_bytes())?;
    files::create(&tls::server_file(&draft.broker()), server.as_bytes())?;
    Ok(authority.certificate)
}

fn reached_at(wanted: &Wanted, authority: String) -> Broker {
    let port = wanted.listen.port();
    match &wanted.transport {
        Transport::Tls { names } => Broker {
            urls: names.iter().map(|name| format!("tls://{}:{port}", bracketed(name))).collect(),
            server_name: names.first().cloned().unwrap_or_default(),
            ca: authority,
            insecure_loopback: false,
        },
        Transport::InsecureLoopback => Broker {
            urls: vec![format!("nats://{}", wanted.listen)],
            server_name: String::new(),
            ca: String::new(),
            insecure_loopback: true,
        },
    }
}

/// A literal IPv6 address stands in brackets before a port.
fn bracketed(name: &str) -> String {
    match name.parse::<std::net::Ipv6Addr>() {
        Ok(address) => format!("[{address}]"),
        Err(_) => name.to_owned(),
    }
}

/// The broker's configuration, with `folder` as the place of its files.
fn configuration(folder: &Path, wanted: &Wanted, accounts: &Accounts) -> String {
    let path = |name: &str| serde_json::Value::from(folder.join(name).to_string_lossy()).to_string();
    let tls = match &wanted.transport {
        Transport::Tls { .. } => format!(
            "# TLS before anything else is said, and no older version.\n\
             tls {{\n  cert_file: {server}\n  key_file: {server}\n  min_version: \"1.3\"\n  handshake_first: true\n  timeout: 5\n}}\n\n",
            server = path("tls/server.pem"),
        ),
        Transport::InsecureLoopback => "# Plain text: this address is reached from this machine only.\n\n".to_owned(),
    };
    let Accounts { operator, system: (system, system_jwt), core: (core, core_jwt) } = accounts;
    format!(
        "# Broker of fleet `{fleet}`, written by `replicator broker init`.\n\
         # Hosts are added by pushing their accounts: nothing here changes for them.\n\n\
         server_name: \"replicator-{fleet}\"\n\
         listen: \"{listen}\"\n\
         pid_file: {pid}\n\
         # Before a connection has proved itself, it may say little and has little time.\n\
         max_control_line: 4KB\n\
         max_payload: 1MB\n\
         authorization {{\n  timeout: 5\n}}\n\n\
         {tls}\
         # An acknowledged message is on disk.\n\
         jetstream {{\n  store_dir: {store}\n  sync_interval: always\n  max_memory_store: 64MB\n  \
         max_file_store: {STORE_MAX}\n}}\n\n\
         operator: {operator}\n\
         system_account: {system}\n\
         resolver {{\n  type: full\n  dir: {resolver}\n  allow_delete: true\n  interval: \"2m\"\n  timeout: \"2s\"\n}}\n\
         resolver_preload {{\n  {system}: {system_jwt}\n  {core}: {core_jwt}\n}}\n",
        fleet = wanted.fleet,
        listen = wanted.listen,
        pid = path("nats.pid"),
        store = path("jetstream"),
        resolver = path("resolver"),
    )
}

#[cfg(test)]
mod tests;
