//! Where the agent's files lie, and what its operator has set in `agent.toml`.
//!
//! `agent.toml` comes in; checked settings go out. Nothing here is ever written by a declaration.

use std::path::{Path, PathBuf};
use std::time::Duration;

use replicator_protocol::enrolment::Broker;
use serde::{Deserialize, Serialize};

use crate::durable::{self, FileError};
use crate::host::docker;
use crate::ledger::{self, Limits};

/// Least bytes of a file of the ledger: an empty one takes more than half of it.
const FILE_MIN: u64 = 64 << 10;

/// The folder name under `etc`, `var/lib` and `run`.
const OURS: &str = "replicator-host-agent";

/// Every path of one agent, under one root: several agents fit on one machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    root: PathBuf,
}

impl Layout {
    /// The paths under `root`; `/` for a machine's one agent.
    #[must_use]
    pub fn new(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    /// What everything below lies under.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The operator's folder.
    #[must_use]
    pub fn etc(&self) -> PathBuf {
        self.root.join("etc").join(OURS)
    }

    /// The agent's own folder, which survives a reboot.
    #[must_use]
    pub fn state(&self) -> PathBuf {
        self.root.join("var/lib").join(OURS)
    }

    /// What lives no longer than the process.
    #[must_use]
    pub fn run(&self) -> PathBuf {
        self.root.join("run").join(OURS)
    }

    /// Broker, certificate authority, intervals.
    #[must_use]
    pub fn config(&self) -> PathBuf {
        self.etc().join("agent.toml")
    }

    /// What a declaration may ask for at all.
    #[must_use]
    pub fn policy(&self) -> PathBuf {
        self.etc().join("policy.toml")
    }

    /// Private keys and the broker credential, 0600 each.
    #[must_use]
    pub fn keys(&self) -> PathBuf {
        self.state().join("keys")
    }

    /// The user JWT that lets this host into the broker; its seed lies beside it.
    #[must_use]
    pub fn link_credential(&self) -> PathBuf {
        self.keys().join("nats.jwt")
    }

    /// The seed that answers the broker's challenge: 32 bytes, made on this host.
    #[must_use]
    pub fn link_seed(&self) -> PathBuf {
        self.keys().join("nats")
    }

    /// Who this host is and whom it believes.
    #[must_use]
    pub fn trust(&self) -> PathBuf {
        self.state().join("trust")
    }

    /// Declarations as they came: the one in force, and any that equivocates.
    #[must_use]
    pub fn declarations(&self) -> PathBuf {
        self.state().join("declarations")
    }

    /// What [`crate::ledger::Ledger::open`] takes: the folder in which `ledger/` lies.
    #[must_use]
    pub fn ledger(&self) -> PathBuf {
        self.state()
    }

    /// The folder of the ledger's files.
    #[must_use]
    pub fn ledger_files(&self) -> PathBuf {
        self.state().join(ledger::DATABASE)
    }

    /// A new ledger that has not taken the place of a damaged one yet.
    #[must_use]
    pub fn ledger_next(&self) -> PathBuf {
        self.state().join(ledger::NEXT)
    }

    /// Answers folded from the ledger; may be deleted at any time.
    #[must_use]
    pub fn projections(&self) -> PathBuf {
        self.state().join("projections.db")
    }

    /// The two copies of the floor that lie outside the ledger.
    #[must_use]
    pub fn anchors(&self) -> [PathBuf; 2] {
        ledger::ANCHORS.map(|name| self.state().join(name))
    }

    /// What was found in the place of a declared file, by digest.
    #[must_use]
    pub fn originals(&self) -> PathBuf {
        self.state().join("originals")
    }

    /// Files as they were before the change under way.
    #[must_use]
    pub fn previous(&self) -> PathBuf {
        self.state().join("previous")
    }

    /// Makes the folders, readable by root alone, unless they are there.
    ///
    /// # Errors
    ///
    /// [`FileError`] names the folder that could not be made.
    pub fn make_folders(&self) -> Result<(), FileError> {
        self.folders().iter().try_for_each(|folder| durable::folder(folder))
    }

    /// Removes from the folders what writes of an agent that died have left. Only for the one that holds the ledger.
    ///
    /// # Errors
    ///
    /// [`FileError`]; some may be left.
    pub fn sweep(&self) -> Result<(), FileError> {
        self.folders().iter().try_for_each(|folder| durable::sweep(folder))
    }

    fn folders(&self) -> [PathBuf; 6] {
        [self.etc(), self.state(), self.run(), self.keys(), self.trust(), self.declarations()]
    }
}

/// Settings that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// There is no file.
    #[error("there is no `{}`", .0.display())]
    Missing(PathBuf),
    /// It could not be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// It is no TOML, or has a key or value that is not known.
    #[error("cannot read `{}`", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// Where and why.
        source: Box<toml::de::Error>,
    },
    /// A rule over several keys is broken.
    #[error("`{}` breaks a rule: {rule}", path.display())]
    Rule {
        /// The file.
        path: PathBuf,
        /// Which rule.
        rule: &'static str,
    },
}

/// What `agent.toml` says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The broker.
    pub broker: Broker,
    /// How often to look.
    #[serde(default)]
    pub intervals: Intervals,
    /// The container runtime's socket; unset for the runtime's own default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub docker: Option<String>,
    /// Bytes of the whole ledger above which its oldest files are dropped, once they are receipted to their end.
    #[serde(default = "default_budget")]
    pub ledger_budget: u64,
    /// Bytes of one of its files from which on a further one is begun.
    #[serde(default = "default_file")]
    pub ledger_file: u64,
}

fn default_budget() -> u64 {
    Limits::default().budget
}

fn default_file() -> u64 {
    Limits::default().file
}

/// How often the agent looks, in seconds. Each is jittered by a fifth either way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Intervals {
    /// A cheap look: does everything declared run?
    pub cheap: u64,
    /// A full look: is everything what was declared?
    pub full: u64,
    /// Asking the broker without having been woken.
    pub poll: u64,
    /// A heartbeat.
    pub heartbeat: u64,
}

impl Default for Intervals {
    fn default() -> Self {
        Self { cheap: 60, full: 600, poll: 60, heartbeat: 30 }
    }
}

impl Config {
    /// Reads `agent.toml`.
    ///
    /// # Errors
    ///
    /// See [`ConfigError`]; the file is never changed.
    pub fn load(layout: &Layout) -> Result<Self, ConfigError> {
        let path = layout.config();
        let bytes = durable::read(&path)?.ok_or_else(|| ConfigError::Missing(path.clone()))?;
        Self::parse(&String::from_utf8_lossy(&bytes), &path)
    }

    /// Reads settings from `text`; `path` is for messages.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Syntax`] or [`ConfigError::Rule`].
    pub fn parse(text: &str, path: &Path) -> Result<Self, ConfigError> {
        let config: Self = toml::from_str(text)
            .map_err(|source| ConfigError::Syntax { path: path.to_owned(), source: Box::new(source) })?;
        match config.broken_rule() {
            None => Ok(config),
            Some(rule) => Err(ConfigError::Rule { path: path.to_owned(), rule }),
        }
    }

    /// How large the ledger grows.
    #[must_use]
    pub fn ledger_limits(&self) -> Limits {
        Limits { file: self.ledger_file, budget: self.ledger_budget }
    }

    /// Where the container runtime listens.
    #[must_use]
    pub fn docker_socket(&self) -> &str {
        self.docker.as_deref().unwrap_or(docker::SOCKET)
    }

    fn broken_rule(&self) -> Option<&'static str> {
        let Broker { urls, server_name, ca, insecure_loopback } = &self.broker;
        let Limits { file, budget } = self.ledger_limits();
        let Intervals { cheap, full, poll, heartbeat } = self.intervals;
        if urls.is_empty() {
            Some("`broker.urls` names at least one address")
        } else if urls.iter().any(|url| !url.starts_with("tls://") && !is_plain_loopback(url)) {
            Some("an address is `tls://host:port`, or `nats://` with a loopback address")
        } else if urls.iter().any(|url| is_plain_loopback(url)) && !insecure_loopback {
            Some("plain text to a loopback address needs `insecure_loopback = true`")
        } else if urls.iter().any(|url| url.starts_with("tls://")) && (ca.is_empty() || server_name.is_empty()) {
            Some("`tls://` needs `broker.ca` and `broker.server_name`")
        } else if [cheap, full, poll, heartbeat].contains(&0) {
            Some("an interval is at least one second")
        } else if file < FILE_MIN {
            Some("`ledger_file` is at least 65536 bytes")
        } else if budget < file {
            Some("`ledger_budget` is at least `ledger_file`")
        } else {
            None
        }
    }
}

fn is_plain_loopback(url: &str) -> bool {
    let Some(rest) = url.strip_prefix("nats://") else { return false };
    let address: Result<std::net::SocketAddr, _> = rest.parse();
    address.is_ok_and(|address| address.ip().is_loopback())
}

/// `interval` of seconds, moved by up to a fifth either way as `random` (any number) says.
#[must_use]
pub fn jittered(interval: u64, random: u64) -> Duration {
    let whole = interval.saturating_mul(1000);
    let span = whole / 5 * 2;
    let moved = if span == 0 { 0 } else { random % (span + 1) };
    Duration::from_millis(whole - span / 2 + moved)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TLS: &str = "[broker]\nurls = ['tls://broker.lab:4222']\nserver_name = 'broker.lab'\nca = 'PEM'\n";

    fn parse(text: &str) -> Result<Config, ConfigError> {
        Config::parse(text, Path::new("agent.toml"))
    }

    #[test]
    fn defaults_are_those_of_the_manual() {
        assert_eq!(parse(TLS).unwrap().intervals, Intervals { cheap: 60, full: 600, poll: 60, heartbeat: 30 });
    }

    #[test]
    fn unknown_key_is_refused() {
        assert!(matches!(parse(&format!("{TLS}cacert = 'x'\n")), Err(ConfigError::Syntax { .. })));
    }

    #[test]
    fn ledger_has_room_for_a_file_and_a_file_for_entries() {
        assert_eq!(parse(TLS).unwrap().ledger_limits(), Limits { file: 67_108_864, budget: 1_073_741_824 });
        let limits = |file: u64, budget: u64| parse(&format!("ledger_file = {file}\nledger_budget = {budget}\n{TLS}"));
        assert!(limits(65_536, 65_536).is_ok());
        assert!(limits(65_535, 100_000).is_err());
        assert!(limits(100_000, 99_999).is_err());
    }

    #[test]
    fn plain_text_goes_to_loopback_only_and_only_when_asked_for() {
        let plain = |url: &str, flag: bool| parse(&format!("[broker]\nurls = ['{url}']\ninsecure_loopback = {flag}\n"));
        assert!(plain("nats://127.0.0.1:4222", true).is_ok());
        assert!(plain("nats://127.0.0.1:4222", false).is_err());
        assert!(plain("nats://10.0.0.1:4222", true).is_err());
        assert!(plain("nats://127.0.0.1.evil.example:4222", true).is_err());
    }

    #[test]
    fn tls_needs_a_pinned_authority_and_a_name() {
        assert!(parse("[broker]\nurls = ['tls://broker.lab:4222']\n").is_err());
    }

    #[test]
    fn jitter_stays_within_a_fifth() {
        assert_eq!(jittered(30, 0), Duration::from_secs(24));
        assert_eq!(jittered(30, 12_000), Duration::from_secs(36));
        assert!((0..1000).all(|n| (24..=36).contains(&jittered(30, n * 7919).as_secs())));
    }

    #[test]
    fn everything_lies_under_the_root() {
        let layout = Layout::new(Path::new("/tmp/agent-1"));
        assert_eq!(layout.config(), Path::new("/tmp/agent-1/etc/replicator-host-agent/agent.toml"));
        assert_eq!(layout.keys(), Path::new("/tmp/agent-1/var/lib/replicator-host-agent/keys"));
        assert_eq!(layout.run(), Path::new("/tmp/agent-1/run/replicator-host-agent"));
    }
}
