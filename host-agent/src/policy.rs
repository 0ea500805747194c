//! What a declaration may ask of this host at all, whoever signed it.
//!
//! `policy.toml` is root's: the link cannot write it. Without the file the default holds, which refuses what would
//! hand the machine over: folders of the system as bind sources, capabilities as good as root's, and files that
//! other programs run as root. A refusal is of the whole declaration, and names the line that would allow it.

use std::path::{Path, PathBuf};

use replicator_protocol::declaration::Declaration;
use replicator_protocol::refusal::{Code, Refusal};
use replicator_protocol::resources::Resource;
use replicator_protocol::wire::declaration::{Container, mount::Source, resource::Kind};
use serde::Deserialize;

use crate::config::Layout;
use crate::durable::{self, FileError};

/// Sources that give a container the machine.
const BINDS: [&str; 7] = ["/etc", "/proc", "/sys", "/boot", "/root", "/var/run/docker.sock", "/run/docker.sock"];
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
    #[error("cannot read `{}`", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// Where and why.
        source: Box<toml::de::Error>,
    },
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
    own: [PathBuf; 3],
}

impl Policy {
    /// Reads `policy.toml`; the default where there is none.
    ///
    /// # Errors
    ///
    /// See [`PolicyError`].
    pub fn load(layout: &Layout) -> Result<Self, PolicyError> {
        let path = layout.policy();
        let text = durable::read(&path)?.unwrap_or_default();
        let parsed = toml::from_str(&String::from_utf8_lossy(&text));
        let allowed = parsed.map_err(|source| PolicyError::Syntax { path, source: Box::new(source) })?;
        Ok(Self { allowed, own: [layout.etc(), layout.state(), layout.run()] })
    }

    /// Checks every resource of `declaration`.
    ///
    /// # Errors
    ///
    /// [`Code::ForbiddenBind`], [`Code::ForbiddenCapability`] or [`Code::ForbiddenPath`], with the resource and the
    /// line that would allow it: the first of them, in declaration order.
    pub fn check(&self, declaration: &Declaration) -> Result<(), Refusal> {
        declaration.resources.iter().try_for_each(|resource| self.resource(resource))
    }

    fn resource(&self, resource: &Resource) -> Result<(), Refusal> {
        let refused = match &resource.body {
            Kind::File(file) => self.path(Path::new(&file.path)),
            Kind::Directory(directory) => self.path(Path::new(&directory.path)),
            Kind::Network(_) => Ok(()),
            Kind::Container(container) => self.container(container),
        };
        refused.map_err(|refusal| refusal.with("resource", &resource.id))
    }

    fn path(&self, path: &Path) -> Result<(), Refusal> {
        let forbidden = PATHS.iter().any(|folder| path.starts_with(folder))
            || self.own.iter().any(|folder| path.starts_with(folder));
        if forbidden && !is_below_any(path, &self.allowed.allow_paths) {
            return Err(refusal(Code::ForbiddenPath, "allow_paths", &path.display()));
        }
        Ok(())
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
        let gives = |folder: &Path| source.starts_with(folder) || folder.starts_with(source);
        let forbidden =
            BINDS.iter().any(|folder| gives(Path::new(folder))) || self.own.iter().any(|folder| gives(folder));
        if forbidden && !is_below_any(source, &self.allowed.allow_binds) {
            return Err(refusal(Code::ForbiddenBind, "allow_binds", &source.display()));
        }
        Ok(())
    }
}

fn is_below_any(path: &Path, folders: &[PathBuf]) -> bool {
    folders.iter().any(|folder| path.starts_with(folder))
}

fn refusal(code: Code, key: &str, value: &dyn std::fmt::Display) -> Refusal {
    Refusal::new(code).with("line", format!("{key} = [\"{value}\"]"))
}

#[cfg(test)]
mod tests {
    use replicator_protocol::ids::ResourceId;
    use replicator_protocol::wire::declaration::{Capabilities, File, Mount};

    use super::*;

    fn policy(text: &str) -> Policy {
        let at = tempfile::tempdir().unwrap();
        let layout = Layout::new(at.path());
        layout.make_folders().unwrap();
        std::fs::write(layout.policy(), text).unwrap();
        let own = Layout::new(Path::new("/agent"));
        Policy { own: [own.etc(), own.state(), own.run()], ..Policy::load(&layout).unwrap() }
    }

    fn checked(policy: &Policy, body: Kind) -> Option<(Code, String)> {
        let id = ResourceId::parse("web.server").unwrap();
        let refused = policy.resource(&Resource { id, confirms_link: false, body }).err()?;
        Some((refused.code, refused.fields["line"].clone()))
    }

    fn file(path: &str) -> Kind {
        Kind::File(File { path: path.into(), ..File::default() })
    }

    fn bind(source: &str) -> Kind {
        let mount = Mount { source: Some(Source::Bind(source.into())), target: "/in".into(), read_only: true };
        Kind::Container(Container { mounts: vec![mount], ..Container::default() })
    }

    fn capability(name: &str) -> Kind {
        let capabilities = Some(Capabilities { add: vec![name.into()], drop: vec![] });
        Kind::Container(Container { capabilities, ..Container::default() })
    }

    #[test]
    fn ordinary_places_need_no_policy() {
        let policy = policy("");
        for body in [file("/srv/app/config"), file("/etc/app.conf"), bind("/srv/app"), capability("NET_BIND_SERVICE")] {
            assert_eq!(checked(&policy, body), None);
        }
    }

    #[test]
    fn what_hands_the_machine_over_is_refused_with_the_line_that_would_allow_it() {
        let policy = policy("");
        let binds = ["/", "/etc", "/etc/ssl", "/proc", "/var", "/var/run/docker.sock", "/run", "/agent/etc"];
        for source in binds {
            let (code, line) = checked(&policy, bind(source)).unwrap();
            assert_eq!((code, line), (Code::ForbiddenBind, format!("allow_binds = [\"{source}\"]")));
        }
        for path in ["/etc/sudoers.d/x", "/etc/cron.d/x", "/etc/ld.so.preload", "/etc/systemd/system/x.service"] {
            assert_eq!(checked(&policy, file(path)).unwrap().0, Code::ForbiddenPath, "{path}");
        }
        let own = "/agent/var/lib/replicator-host-agent/anchor.a";
        assert_eq!(checked(&policy, file(own)).unwrap().0, Code::ForbiddenPath);
        for name in ["SYS_ADMIN", "CAP_SYS_PTRACE", "ALL"] {
            assert_eq!(checked(&policy, capability(name)).unwrap().0, Code::ForbiddenCapability, "{name}");
        }
    }

    #[test]
    fn line_allows_what_it_names_and_what_is_below_and_no_more() {
        let policy = policy(
            "allow_binds = ['/etc/ssl']\nallow_capabilities = ['SYS_PTRACE']\nallow_paths = ['/etc/cron.d/backup']",
        );
        for body in [bind("/etc/ssl/certs"), capability("CAP_SYS_PTRACE"), file("/etc/cron.d/backup")] {
            assert_eq!(checked(&policy, body), None);
        }
        for body in [bind("/etc/ssh"), capability("SYS_ADMIN"), file("/etc/cron.d/other")] {
            assert!(checked(&policy, body).is_some());
        }
    }

    #[test]
    fn unknown_key_is_an_error_and_not_an_empty_policy() {
        let at = tempfile::tempdir().unwrap();
        let layout = Layout::new(at.path());
        assert!(Policy::load(&layout).is_ok(), "no file is the default");
        layout.make_folders().unwrap();
        std::fs::write(layout.policy(), "allow_bind = ['/etc']").unwrap();
        assert!(matches!(Policy::load(&layout), Err(PolicyError::Syntax { .. })));
    }
}
