//! What a declaration may ask of this host at all, whoever signed it.
//!
//! `policy.toml` is root's: the link cannot write it. Without the file the default holds, which refuses what would
//! hand the machine over: folders of the system as bind sources, capabilities as good as root's, and files that
//! other programs run as root. A refusal is of the whole declaration, and names the line that would allow it.
//!
//! Paths are compared as they are written and as they lead: a link to a forbidden folder is as forbidden as the
//! folder. Links can be turned later, so an apply asks again, of each resource before it is touched.

use std::path::{Path, PathBuf};

use replicator_protocol::declaration::Declaration;
use replicator_protocol::refusal::{Code, Refusal};
use replicator_protocol::resources::Resource;
use replicator_protocol::wire::declaration::{Container, mount::Source, resource::Kind};
use serde::Deserialize;

use crate::config::Layout;
use crate::durable::{self, FileError};
use crate::host::files;

/// Sources that give a container the machine; the sockets are those a runtime has unless told otherwise.
const BINDS: [&str; 8] = [
    "/etc",
    "/proc",
    "/sys",
    "/boot",
    "/root",
    "/var/run/docker.sock",
    "/run/docker.sock",
    "/run/containerd/containerd.sock",
];
/// Capabilities with which a container is root on the machine.
const CAPABILITIES: [&str; 5] = ["SYS_ADMIN", "SYS_MODULE", "SYS_PTRACE", "SYS_RAWIO", "DAC_READ_SEARCH"];
/// Files that others run, load or obey as root; folders with all below them.
const PATHS: [&str; 17] = [
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/crontab",
    "/etc/cron.d",
    "/etc/cron.hourly",
    "/etc/cron.daily",
    "/etc/cron.weekly",
    "/etc/cron.monthly",
    "/etc/anacrontab",
    "/var/spool/cron",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/ld.so.preload",
    "/etc/systemd",
    "/usr/lib/systemd",
    "/lib/systemd",
    "/run/systemd",
];

/// The policy could not be read. Nothing is accepted without it.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// The file could not be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// It is no TOML, or has a key that is not known.
    #[error("cannot read line {line} of `{}`", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// Where, from 1.
        line: usize,
        /// Why.
        source: Box<toml::de::Error>,
    },
}

impl PolicyError {
    /// What is said of a declaration that cannot be judged. The file holds no secret, so it may be quoted.
    #[must_use]
    pub fn refusal(&self) -> Refusal {
        let refusal = Refusal::new(Code::Policy);
        match self {
            Self::File(error) => refusal.with("file", error.path.display()).with("error", &error.source),
            Self::Syntax { path, line, source } => {
                refusal.with("file", path.display()).with("at", format!("line {line}")).with("error", source.message())
            }
        }
    }
}

/// What is allowed beyond the default.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Allowed {
    /// Bind sources, each with all below it.
    allow_binds: Vec<PathBuf>,
    /// Capabilities, without `CAP_`.
    allow_capabilities: Vec<String>,
    /// Files and folders a declaration may write, each with all below it.
    allow_paths: Vec<PathBuf>,
}

/// What this host allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    allowed: Allowed,
    /// Sources no container may have, as they are written and as they lead.
    binds: Vec<PathBuf>,
    /// What no declaration may write, as it is written and as it leads.
    paths: Vec<PathBuf>,
    /// Why `policy.toml` says nothing.
    unread: Option<Refusal>,
}

impl Policy {
    /// Reads `policy.toml`; the default where there is none. `socket` is where the container runtime listens.
    ///
    /// # Errors
    ///
    /// See [`PolicyError`].
    pub fn load(layout: &Layout, socket: &str) -> Result<Self, PolicyError> {
        let path = layout.policy();
        let text = durable::read(&path)?.unwrap_or_default();
        let allowed = toml::from_slice(&text).map_err(|source| {
            let before = source.span().map_or(0, |span| span.start).min(text.len());
            let line = text[..before].iter().filter(|byte| **byte == b'\n').count() + 1;
            PolicyError::Syntax { path, line, source: Box::new(source) }
        })?;
        Ok(Self::new(allowed, layout, socket))
    }

    /// The same for what is in force already: where the file cannot be read the default holds, which allows less
    /// than any file does, and what is refused for that says so.
    #[must_use]
    pub fn load_or_default(layout: &Layout, socket: &str) -> Self {
        Self::load(layout, socket).unwrap_or_else(|error| {
            tracing::error!(%error, "the policy of this host cannot be read; the default holds");
            Self { unread: Some(error.refusal()), ..Self::new(Allowed::default(), layout, socket) }
        })
    }

    fn new(allowed: Allowed, layout: &Layout, socket: &str) -> Self {
        let own = [layout.etc(), layout.state(), layout.run()];
        let socket = PathBuf::from(socket.strip_prefix("unix://").unwrap_or(socket));
        let binds = BINDS.iter().map(PathBuf::from).chain([socket]).chain(own.clone());
        let paths = PATHS.iter().map(PathBuf::from).chain(own).chain(std::env::current_exe());
        Self {
            allowed,
            binds: binds.flat_map(|folder| forms(&folder)).collect(),
            paths: paths.flat_map(|folder| forms(&folder)).collect(),
            unread: None,
        }
    }

    /// Checks every resource of `declaration`.
    ///
    /// # Errors
    ///
    /// As [`Policy::resource`]: the first of them, in declaration order.
    pub fn check(&self, declaration: &Declaration) -> Result<(), Refusal> {
        declaration.resources.iter().try_for_each(|resource| self.resource(resource))
    }

    /// Checks one resource. Reads links on the way of its paths, and nothing else.
    ///
    /// # Errors
    ///
    /// [`Code::ForbiddenBind`], [`Code::ForbiddenCapability`] or [`Code::ForbiddenPath`], with the resource and the
    /// line that would allow it.
    pub fn resource(&self, resource: &Resource) -> Result<(), Refusal> {
        let refused = match &resource.body {
            Kind::File(file) => self.file(Path::new(&file.path)),
            Kind::Directory(directory) => self.directory(Path::new(&directory.path)),
            Kind::Network(_) => Ok(()),
            Kind::Container(container) => self.container(container),
        };
        refused.map_err(|refusal| {
            let unread = self.unread.iter().flat_map(|unread| &unread.fields);
            unread.fold(refusal.with("resource", &resource.id), |refusal, (name, value)| refusal.with(name, value))
        })
    }

    /// A folder is refused above what is forbidden too: whose it is decides who may put another one in its place.
    fn directory(&self, path: &Path) -> Result<(), Refusal> {
        let forbidden = |path: &Path| leads_to_any(path, &self.paths);
        self.judge(path, forbidden, &self.allowed.allow_paths)
            .map_err(|path| refusal(Code::ForbiddenPath, "allow_paths", &path.display()))
    }

    fn file(&self, path: &Path) -> Result<(), Refusal> {
        let forbidden = |path: &Path| is_below_any(path, &self.paths);
        self.judge(path, forbidden, &self.allowed.allow_paths)
            .map_err(|path| refusal(Code::ForbiddenPath, "allow_paths", &path.display()))
    }

    fn container(&self, container: &Container) -> Result<(), Refusal> {
        for mount in &container.mounts {
            match &mount.source {
                Some(Source::Bind(source)) => self.bind(Path::new(source))?,
                Some(Source::Volume(_) | Source::Tmpfs(_)) | None => {}
            }
        }
        let added = container.capabilities.iter().flat_map(|capabilities| &capabilities.add);
        for capability in added {
            let name = capability.strip_prefix("CAP_").unwrap_or(capability);
            let forbidden = name == "ALL" || CAPABILITIES.contains(&name);
            if forbidden && !self.allowed.allow_capabilities.iter().any(|allowed| allowed == name) {
                return Err(refusal(Code::ForbiddenCapability, "allow_capabilities", &name));
            }
        }
        Ok(())
    }

    /// A source is refused below a forbidden folder, and above one: what holds it gives it away too.
    fn bind(&self, source: &Path) -> Result<(), Refusal> {
        let forbidden = |source: &Path| leads_to_any(source, &self.binds);
        self.judge(source, forbidden, &self.allowed.allow_binds)
            .map_err(|source| refusal(Code::ForbiddenBind, "allow_binds", &source.display()))
    }

    /// Demands that neither what is written nor where it leads is forbidden, unless it is allowed; else the one
    /// of them that is. A line allows where it leads to only if it is about something forbidden itself: a link in
    /// a folder that anyone may be given cannot widen it.
    fn judge(&self, path: &Path, forbidden: impl Fn(&Path) -> bool, allowed: &[PathBuf]) -> Result<(), PathBuf> {
        let lines = allowed.iter().flat_map(|line| if forbidden(line) { forms(line) } else { vec![line.clone()] });
        let lines: Vec<_> = lines.collect();
        match forms(path).into_iter().find(|form| forbidden(form) && !is_below_any(form, &lines)) {
            Some(form) => Err(form),
            None => Ok(()),
        }
    }
}

/// A path as it is written, and as it leads. One whose links cannot be followed leads nowhere.
fn forms(path: &Path) -> Vec<PathBuf> {
    let mut forms = vec![path.to_owned()];
    forms.extend(files::resolve(path).ok().filter(|real| real != path));
    forms
}

fn is_below_any(path: &Path, folders: &[PathBuf]) -> bool {
    folders.iter().any(|folder| path.starts_with(folder))
}

/// Whether it is one of the folders, below one, or above one.
fn leads_to_any(path: &Path, folders: &[PathBuf]) -> bool {
    is_below_any(path, folders) || folders.iter().any(|folder| folder.starts_with(path))
}

fn refusal(code: Code, key: &str, value: &dyn std::fmt::Display) -> Refusal {
    Refusal::new(code).with("line", format!("{key} = [\"{value}\"]"))
}

#[cfg(test)]
mod tests;
