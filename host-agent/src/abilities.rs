//! What this machine can apply, by what is installed on it.
//!
//! A runtime that is installed and does not run is one: what needs it is owed until it runs. Where there is none at all,
//! nothing of a declaration that needs one is taken up.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use replicator_protocol::declaration::{Declaration, LEVEL};
use replicator_protocol::refusal::{Code, Refusal};
use replicator_protocol::resources::Kind;

/// The programs that a container runtime is known by where its socket is not there.
const RUNTIMES: [&str; 2] = ["dockerd", "podman"];
/// Where programs are looked for by an agent that was not told: what systemd gives its services.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// The folder that is there where systemd runs, see sd_booted(3).
const SYSTEMD: &str = "/run/systemd/system";

/// What there is on this machine. Looked up anew each time it is asked: what is installed counts at once.
#[derive(Debug, Clone)]
pub struct Abilities {
    /// Where the container runtime listens.
    socket: PathBuf,
    /// Folders of programs, as `PATH` has them.
    path: OsString,
}

impl Abilities {
    /// Of a machine whose container runtime listens at `socket`, and whose programs lie in the folders of `path`,
    /// written as `PATH` is.
    #[must_use]
    pub fn new(socket: &str, path: OsString) -> Self {
        Self { socket: socket.into(), path }
    }

    /// Of this machine, whose container runtime listens at `socket`.
    #[must_use]
    pub fn of_this_machine(socket: &str) -> Self {
        Self::new(socket, std::env::var_os("PATH").unwrap_or_else(|| PATH.into()))
    }

    /// The kinds that can be applied, sorted by their words.
    #[must_use]
    pub fn kinds(&self) -> Vec<Kind> {
        let has_runtime = self.has_runtime();
        let can = |kind: &Kind| kind.level() <= LEVEL && (has_runtime || !kind.needs_runtime());
        let mut kinds: Vec<_> = Kind::ALL.into_iter().filter(can).collect();
        kinds.sort_by_key(|kind| kind.as_str());
        kinds
    }

    /// What the machine lacks, in words, sorted.
    #[must_use]
    pub fn missing(&self) -> Vec<String> {
        let lacks = |has: bool, what: &str| (!has).then(|| what.to_owned());
        let all = [lacks(self.has_runtime(), "docker"), lacks(Path::new(SYSTEMD).exists(), "systemd")];
        all.into_iter().flatten().collect()
    }

    /// Checks that all of `declaration` can be applied here.
    ///
    /// # Errors
    ///
    /// [`Code::UnsupportedKind`], with the first resource that cannot.
    pub fn check(&self, declaration: &Declaration) -> Result<(), Refusal> {
        match declaration.resources.iter().find(|resource| resource.kind().needs_runtime()) {
            Some(resource) if !self.has_runtime() => Err(Refusal::new(Code::UnsupportedKind)
                .with("resource", &resource.id)
                .with("kind", resource.kind())
                .with("lacks", "docker")),
            Some(_) | None => Ok(()),
        }
    }

    fn has_runtime(&self) -> bool {
        let is_there = |folder: PathBuf| RUNTIMES.iter().any(|program| folder.join(program).exists());
        self.socket.exists() || std::env::split_paths(&self.path).any(is_there)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use replicator_protocol::resources::Resource;
    use replicator_protocol::wire::declaration::{Directory, Network, resource};

    use super::*;
    use crate::testing::declaration;

    fn declared(bodies: Vec<resource::Kind>) -> Declaration {
        let mut declared = Declaration::from_wire(&declaration(1, 1)).unwrap();
        let named = |(at, body): (usize, resource::Kind)| Resource {
            id: format!("m.r{at}").parse().unwrap(),
            confirms_link: false,
            body,
        };
        declared.resources = bodies.into_iter().enumerate().map(named).collect();
        declared
    }

    fn words(kinds: &[Kind]) -> Vec<&'static str> {
        kinds.iter().map(|kind| kind.as_str()).collect()
    }

    #[test]
    fn runtime_is_there_where_its_socket_or_its_program_is() {
        let at = tempfile::tempdir().unwrap();
        let (socket, programs) = (at.path().join("docker.sock"), at.path().join("bin"));
        let machine = Abilities::new(&socket.to_string_lossy(), programs.clone().into_os_string());
        assert_eq!(words(&machine.kinds()), ["directory", "file"]);
        assert!(machine.missing().contains(&"docker".to_owned()));

        fs::create_dir(&programs).unwrap();
        fs::write(programs.join("dockerd"), "").unwrap();
        assert_eq!(words(&machine.kinds()), ["container", "directory", "file", "network"], "it is merely stopped");
        assert!(!machine.missing().contains(&"docker".to_owned()));

        fs::remove_file(programs.join("dockerd")).unwrap();
        fs::write(&socket, "").unwrap();
        assert_eq!(words(&machine.kinds()), ["container", "directory", "file", "network"]);
    }

    #[test]
    fn declaration_is_refused_whole_where_one_kind_cannot_be_applied() {
        let nowhere = Abilities::new("/not/there.sock", "/not/there".into());
        let folder = || resource::Kind::Directory(Directory { path: "/x".into(), ..Directory::default() });
        let network = resource::Kind::Network(Network { name: "lan".into() });
        nowhere.check(&declared(vec![folder()])).unwrap();
        let refused = nowhere.check(&declared(vec![folder(), network.clone()])).unwrap_err();
        assert_eq!(refused.code, Code::UnsupportedKind);
        assert_eq!(
            refused.fields.into_iter().collect::<Vec<_>>(),
            [("kind", "network".to_owned()), ("lacks", "docker".to_owned()), ("resource", "m.r1".to_owned())]
        );
        Abilities::new("/", "".into()).check(&declared(vec![folder(), network])).unwrap();
    }
}
