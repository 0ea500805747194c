//! Where the controller keeps what it must not lose: one folder, and one place that spells its paths.
//!
//! Comes in: the environment and the operator's `--context`. Goes out: paths. Never reads a key itself.

use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use replicator_protocol::ids::FleetName;

use crate::point::{self, Effect};
use crate::words;

/// The controller's folder, readable by its owner only.
#[derive(Debug, Clone)]
pub struct Home {
    root: PathBuf,
}

/// Why the folder cannot be used; nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum HomeError {
    /// Neither variable that could name it is set.
    #[error(
        "cannot tell where the controller's folder is: neither `REPLICATOR_HOME`, `XDG_CONFIG_HOME` nor `HOME` is set"
    )]
    Nowhere,
    /// Others may read it.
    #[error("`{}` may be read by others (mode {mode:04o}, want 0700)", path.display())]
    Open {
        /// The folder.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// The file system refused.
    #[error("cannot {act} `{}`", path.display())]
    File {
        /// `create`, `find`, `read`.
        act: &'static str,
        /// What it was about.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// No fleet was ever made here.
    #[error("`{}` holds no fleet", path.display())]
    NoFleet {
        /// The folder of fleets.
        path: PathBuf,
    },
    /// Several fleets and no choice.
    #[error("`{}` holds several fleets: {names}", path.display())]
    Several {
        /// The folder of fleets.
        path: PathBuf,
        /// Their names, sorted.
        names: String,
    },
    /// The context names none of them.
    #[error("there is no fleet `{wanted}` in `{}`; there is {names}", path.display())]
    Unknown {
        /// What was asked for.
        wanted: FleetName,
        /// The folder of fleets.
        path: PathBuf,
        /// Their names, sorted.
        names: String,
    },
}

impl HomeError {
    /// One line that names the next action.
    pub fn hint(&self) -> String {
        match self {
            Self::Nowhere => "set `REPLICATOR_HOME` to a folder of its own".into(),
            Self::Open { path, .. } => format!("run `chmod 700 {}`", path.display()),
            Self::File { path, .. } => format!("check who owns `{}` and whether the disk is full", path.display()),
            Self::NoFleet { .. } => {
                "make one with `replicator broker init --fleet NAME --name ADDRESS`; where there is one \
                                     in another folder, set `REPLICATOR_HOME` to that"
                    .into()
            }
            Self::Several { .. } => "choose one with `--context NAME`".into(),
            Self::Unknown { .. } => "write `--context` with one of those names".into(),
        }
    }
}

impl Home {
    /// Finds the folder: `REPLICATOR_HOME`, else `replicator` under `XDG_CONFIG_HOME`, else under `~/.config`. A path
    /// that starts nowhere starts at the folder this process was started in. It need not be there: it is made, 0700,
    /// by whoever writes into it first.
    ///
    /// # Errors
    ///
    /// [`HomeError::Nowhere`], [`HomeError::Open`] or [`HomeError::File`].
    pub fn from_environment(variable: impl Fn(&str) -> Option<std::ffi::OsString>) -> Result<Self, HomeError> {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let root = set("REPLICATOR_HOME")
            .or_else(|| set("XDG_CONFIG_HOME").map(|folder| folder.join("replicator")))
            .or_else(|| set("HOME").map(|folder| folder.join(".config/replicator")))
            .ok_or(HomeError::Nowhere)?;
        let whole = std::path::absolute(&root);
        Self::at(whole.map_err(|source| HomeError::File { act: "find", path: root, source })?)
    }

    /// Uses `root`, which need not be there yet.
    ///
    /// # Errors
    ///
    /// [`HomeError::Open`] or [`HomeError::File`].
    pub fn at(root: PathBuf) -> Result<Self, HomeError> {
        let mode = match std::fs::metadata(&root) {
            Ok(folder) => folder.permissions().mode() & 0o7777,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Self { root }),
            Err(source) => return Err(HomeError::File { act: "read", path: root, source }),
        };
        if mode & 0o077 != 0 {
            return Err(HomeError::Open { path: root, mode });
        }
        Ok(Self { root })
    }

    /// The folder itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Everything of one fleet: `fleets/<fleet>`.
    pub fn fleet(&self, fleet: &FleetName) -> FleetFolder {
        FleetFolder { root: self.root.join("fleets").join(fleet.as_str()), old_broker: false }
    }

    /// The fleet meant: `context` where given, else the only one there is.
    ///
    /// # Errors
    ///
    /// [`HomeError::NoFleet`], [`HomeError::Several`] or [`HomeError::Unknown`].
    pub fn choose(&self, context: Option<&FleetName>) -> Result<FleetName, HomeError> {
        let path = self.root.join("fleets");
        let names = self.fleets()?;
        let listed = || words::listed(&names);
        match (context, names.as_slice()) {
            (_, []) => Err(HomeError::NoFleet { path }),
            (Some(wanted), all) if all.contains(wanted) => Ok(wanted.clone()),
            (Some(wanted), _) => Err(HomeError::Unknown { wanted: wanted.clone(), path, names: listed() }),
            (None, [only]) => Ok(only.clone()),
            (None, _) => Err(HomeError::Several { path, names: listed() }),
        }
    }

    /// Every fleet with a `fleet.toml`, sorted.
    ///
    /// # Errors
    ///
    /// [`HomeError::File`] where the folder is there and cannot be read.
    pub fn fleets(&self) -> Result<Vec<FleetName>, HomeError> {
        let path = self.root.join("fleets");
        let entries = match std::fs::read_dir(&path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => return Err(HomeError::File { act: "read", path, source }),
        };
        let mut names: Vec<FleetName> = entries
            .filter_map(Result::ok)
            .filter(|entry| entry.path().join("fleet.toml").is_file())
            .filter_map(|entry| FleetName::parse(entry.file_name().to_str()?).ok())
            .collect();
        names.sort();
        Ok(names)
    }

    /// Provisioning logs: `state`; an object store's root.
    pub fn state(&self) -> PathBuf {
        self.root.join("state")
    }

    /// Encrypted secret values: `secrets`; an object store's root.
    pub fn secrets(&self) -> PathBuf {
        self.root.join("secrets")
    }

    /// The key the state is encrypted under: `data.key`, beside what gets backed up.
    pub fn data_key(&self) -> PathBuf {
        self.root.join("data.key")
    }

    /// The collector's append-only truth.
    pub fn collected_events(&self) -> PathBuf {
        self.root.join("serve/events.db")
    }

    /// What may be deleted at any time.
    pub fn projections(&self) -> PathBuf {
        self.root.join("serve/projections.db")
    }
}

/// The folder of one fleet.
#[derive(Debug, Clone)]
pub struct FleetFolder {
    root: PathBuf,
    old_broker: bool,
}

impl FleetFolder {
    /// The same, where a broker that is too old for us is put up with: for tests.
    #[must_use]
    pub fn allow_old_broker(self, allowed: bool) -> Self {
        Self { old_broker: allowed, ..self }
    }

    /// Whether a broker that is too old for us is put up with.
    pub fn allows_old_broker(&self) -> bool {
        self.old_broker
    }

    /// The folder itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Broker URLs, certificate authority, digest of the root document.
    pub fn settings(&self) -> PathBuf {
        self.root.join("fleet.toml")
    }

    /// The signed root document: keyring version 1.
    pub fn root_document(&self) -> PathBuf {
        self.root.join("root.keyring")
    }

    /// Private keys: `keys/root`, `keys/declare`, `keys/collect`, `keys/enrol`, `keys/operator` and so on.
    pub fn keys(&self) -> PathBuf {
        self.root.join("keys")
    }

    /// Broker credentials: `creds/controller`, `creds/collector`, `creds/admin`, `creds/sys`.
    pub fn credentials(&self) -> PathBuf {
        self.root.join("creds")
    }

    /// What the broker runs from: `nats.conf`, `tls/`, `resolver/`, `jetstream/`.
    pub fn broker(&self) -> PathBuf {
        self.root.join("broker")
    }
}

/// Makes `path` and what leads to it, 0700.
///
/// # Errors
///
/// [`HomeError::File`].
pub fn private_folder(path: &Path) -> Result<(), HomeError> {
    if path.is_dir() {
        return Ok(());
    }
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(|source| HomeError::File { act: "create", path: path.to_owned(), source })?;
    point::behind(Effect::FolderMake);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fleet(home: &Home, name: &str) {
        let folder = home.fleet(&FleetName::parse(name).unwrap());
        private_folder(folder.root()).unwrap();
        std::fs::write(folder.settings(), "").unwrap();
    }

    #[test]
    fn replicator_home_wins_over_the_standard_folders() {
        let folder = tempfile::tempdir().unwrap();
        let wanted = folder.path().join("own");
        let home = Home::from_environment(|name| match name {
            "REPLICATOR_HOME" => Some(wanted.clone().into()),
            _ => Some("/nowhere".into()),
        })
        .unwrap();
        assert_eq!(home.root(), wanted);
        let home = Home::from_environment(|name| {
            (name == "XDG_CONFIG_HOME").then(|| folder.path().join("xdg").into_os_string())
        })
        .unwrap();
        assert_eq!(home.root(), folder.path().join("xdg/replicator"));
        assert!(matches!(Home::from_environment(|_| None), Err(HomeError::Nowhere)));
        let relative = Home::from_environment(|_| Some("own".into())).unwrap();
        assert_eq!(relative.root(), std::env::current_dir().unwrap().join("own"));
        assert!(!wanted.exists() && !relative.root().exists(), "asking where it is makes nothing");
    }

    #[test]
    fn a_folder_others_may_read_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let refused = Home::at(folder.path().to_owned()).unwrap_err();
        assert!(refused.hint().starts_with("run `chmod 700 "), "{}", refused.hint());
    }

    #[test]
    fn the_only_fleet_needs_no_context() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path().join("home")).unwrap();
        assert!(matches!(home.choose(None), Err(HomeError::NoFleet { .. })));
        fleet(&home, "acme");
        assert_eq!(home.choose(None).unwrap().as_str(), "acme");
        fleet(&home, "beta");
        assert!(matches!(home.choose(None), Err(HomeError::Several { .. })));
        assert_eq!(home.choose(Some(&FleetName::parse("beta").unwrap())).unwrap().as_str(), "beta");
        assert!(matches!(home.choose(Some(&FleetName::parse("gamma").unwrap())), Err(HomeError::Unknown { .. })));
    }
}
