//! Files that are read together: a host and its fleet, or everything in a folder.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::schema::{self, FleetFile};
use super::{check_with_host, examine, find};
use crate::spec::finding::{Code, Findings};
use crate::spec::load::{self, Examined, LoadError, Loaded};
use crate::spec::schema::HostSpec;
use crate::spec::{self, yaml};

/// The host spec at `host` and the fleet file at `fleet`, each right on its own and with the other.
///
/// # Errors
///
/// [`LoadError`] for the first of the two that is refused, with every fault of that file.
pub fn load(host: &Path, fleet: &Path) -> Result<(Loaded<HostSpec>, Loaded<FleetFile>), LoadError> {
    let host = spec::load(host)?;
    let mut examined = examine(fleet, &load::text(fleet)?);
    if let Some(value) = &examined.value {
        check_with_host(value, &host.value, &mut examined.findings);
    }
    Ok((host, examined.accept(fleet)?))
}

/// The fleet file at `fleet` and the host spec it names.
///
/// # Errors
///
/// [`LoadError`], as [`load`]; a fleet file that is refused on its own comes first.
pub fn load_fleet(fleet: &Path) -> Result<(Loaded<HostSpec>, Loaded<FleetFile>), LoadError> {
    let alone = super::load(fleet)?;
    // The reader takes exactly one host.
    let host = alone.value.hosts.first().map(|host| alone.path.parent().unwrap_or_else(|| Path::new("")).join(host));
    load(&host.unwrap_or_default(), fleet)
}

/// What was found in several files.
#[derive(Debug, Default)]
pub struct Checked {
    /// The findings of each file, in the order they were read.
    pub files: Vec<Findings>,
    /// Whether a file that one of them names could not be read.
    pub unreadable: bool,
}

/// Why nothing was checked.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// A folder with neither.
    #[error("`{}` holds no fleet file and no host specs", path.display())]
    Nothing {
        /// The folder.
        path: PathBuf,
    },
    /// A folder that cannot be listed.
    #[error("cannot read the folder `{}`", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file that cannot be read.
    #[error(transparent)]
    File(#[from] LoadError),
}

impl CheckError {
    /// One line that names the next action.
    pub fn hint(&self) -> String {
        match self {
            Self::Nothing { .. } => "name the folder that holds `clanker.yml` and `hosts/`, or the files".into(),
            Self::Folder { path, .. } => format!("check that `{}` is there and may be read", path.display()),
            Self::File(error) => error.hint(),
        }
    }
}

/// Checks files and folders, offline. Of a folder, every `hosts/*.yml` and the fleet file, else every
/// `*.yml`; of a fleet file, its host as well.
///
/// # Errors
///
/// [`CheckError`] where something named cannot be read; findings are no errors.
pub fn check(paths: &[PathBuf]) -> Result<Checked, CheckError> {
    let mut all = All::default();
    for path in paths {
        if path.is_dir() {
            for file in files(path)? {
                all.add(&file)?;
            }
        } else {
            all.add(path)?;
        }
    }
    Ok(all.finish())
}

fn files(folder: &Path) -> Result<Vec<PathBuf>, CheckError> {
    let hosts = folder.join("hosts");
    let mut files = if hosts.is_dir() { specs(&hosts)? } else { Vec::new() };
    files.extend(find(folder));
    if files.is_empty() {
        // The folder of specs itself.
        files = specs(folder)?;
    }
    if files.is_empty() { Err(CheckError::Nothing { path: folder.to_owned() }) } else { Ok(files) }
}

/// Every `*.yml` right in `folder`, sorted.
fn specs(folder: &Path) -> Result<Vec<PathBuf>, CheckError> {
    let failed = |source| CheckError::Folder { path: folder.to_owned(), source };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_file() && path.extension().is_some_and(|extension| extension == "yml") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

#[derive(Default)]
struct All {
    hosts: Vec<(PathBuf, Examined<HostSpec>)>,
    fleets: Vec<(PathBuf, Examined<FleetFile>)>,
}

impl All {
    fn add(&mut self, path: &Path) -> Result<(), LoadError> {
        let known = |other: &PathBuf| same(other, path);
        if self.hosts.iter().any(|(other, _)| known(other)) || self.fleets.iter().any(|(other, _)| known(other)) {
            return Ok(());
        }
        let text = load::text(path)?;
        if is_fleet(path, &text) {
            self.fleets.push((path.to_owned(), examine(path, &text)));
        } else {
            self.hosts.push((path.to_owned(), spec::examine(path, &text)));
        }
        Ok(())
    }

    fn finish(mut self) -> Checked {
        let mut unreadable = false;
        for (path, fleet) in &mut self.fleets {
            let Some(value) = &fleet.value else { continue };
            for (index, host) in value.hosts.iter().enumerate() {
                let host = path.parent().unwrap_or_else(|| Path::new("")).join(host);
                let known = self.hosts.iter().position(|(other, _)| same(other, &host));
                let known = match known.map_or_else(|| load::text(&host).map(Err), |known| Ok(Ok(known))) {
                    Ok(Ok(known)) => known,
                    Ok(Err(text)) => {
                        self.hosts.push((host.clone(), spec::examine(&host, &text)));
                        self.hosts.len() - 1
                    }
                    Err(error) => {
                        unreadable = true;
                        unreadable_host(&mut fleet.findings, index, &host, &error);
                        continue;
                    }
                };
                if let Some(host) = &self.hosts[known].1.value {
                    check_with_host(value, host, &mut fleet.findings);
                }
            }
        }
        distinct(&mut self.hosts);
        let hosts = self.hosts.into_iter().map(|(_, examined)| examined.findings);
        let fleets = self.fleets.into_iter().map(|(_, examined)| examined.findings);
        Checked { files: hosts.chain(fleets).collect(), unreadable }
    }
}

fn unreadable_host(findings: &mut Findings, index: usize, host: &Path, error: &LoadError) {
    let place = if findings.has("host") { findings.place("host") } else { findings.place(&format!("hosts[{index}]")) };
    let why = std::error::Error::source(error).map(|source| format!(": {source}")).unwrap_or_default();
    let says = format!("names the host spec `{}`, which cannot be read{why}", host.display());
    findings.fault(Code::Unreadable, place, says, "write a path that starts at the folder of this file");
}

/// Two hosts of one fleet differ in `id` and in `namePrefix`.
fn distinct(hosts: &mut [(PathBuf, Examined<HostSpec>)]) {
    let mut seen: BTreeMap<(&'static str, String), String> = BTreeMap::new();
    for (_, examined) in hosts {
        let Some(spec) = &examined.value else { continue };
        for (key, name) in [("id", spec.id.to_string()), ("namePrefix", spec.name_prefix.to_string())] {
            let findings = &mut examined.findings;
            if let Some(first) = seen.get(&(key, name.clone())) {
                let says = format!("gives `{key}: {name}`, which `{first}` has already");
                findings.fault(
                    Code::Conflict,
                    findings.place(key),
                    says,
                    "give each host of a fleet a name of its own",
                );
            } else {
                seen.insert((key, name), findings.file().to_owned());
            }
        }
    }
}

fn same(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        (Ok(_) | Err(_), _) => one == other,
    }
}

/// By its name, else by the keys it has.
fn is_fleet(path: &Path, text: &str) -> bool {
    if path.file_name().is_some_and(|name| super::NAMES.iter().any(|known| name == *known)) {
        return true;
    }
    let mut findings = Findings::new(path, text);
    yaml::parse(text, &mut findings).is_some_and(|node| schema::is_fleet(&node))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: &str = include_str!("../../../examples/hosts/this-machine.yml");
    const FLEET: &str = include_str!("../../../examples/clanker.yml");

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("hosts")).unwrap();
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        folder
    }

    fn messages(checked: &Checked) -> String {
        checked.files.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn folder_gives_every_host_and_the_fleet() {
        let folder = folder(&[("hosts/this-machine.yml", HOST), ("clanker.yml", FLEET), ("hosts/notes.txt", "x")]);
        let checked = check(&[folder.path().to_owned()]).unwrap();
        assert_eq!(checked.files.len(), 2);
        assert!(!checked.files.iter().any(Findings::is_refused), "{}", messages(&checked));
    }

    #[test]
    fn folder_of_host_specs_gives_them() {
        let folder = folder(&[("hosts/this-machine.yml", HOST), ("hosts/other.yml", HOST)]);
        let checked = check(&[folder.path().join("hosts")]).unwrap();
        assert_eq!(checked.files.len(), 2);
        assert!(messages(&checked).contains("other.yml"), "{}", messages(&checked));
    }

    #[test]
    fn factory_yml_is_read_where_clanker_yml_is_absent() {
        let folder = folder(&[("hosts/this-machine.yml", HOST), ("factory.yml", FLEET)]);
        assert_eq!(find(folder.path()), Some(folder.path().join("factory.yml")));
        std::fs::write(folder.path().join("clanker.yml"), FLEET).unwrap();
        assert_eq!(find(folder.path()), Some(folder.path().join("clanker.yml")));
    }

    #[test]
    fn fleet_file_alone_brings_its_host() {
        let folder =
            folder(&[("hosts/this-machine.yml", &HOST.replace("namePrefix", "namePrefx")), ("clanker.yml", FLEET)]);
        let checked = check(&[folder.path().join("clanker.yml")]).unwrap();
        assert!(messages(&checked).contains("did you mean `namePrefix`?"), "{}", messages(&checked));
    }

    #[test]
    fn host_that_cannot_be_read_is_named_with_its_line() {
        let folder = folder(&[("clanker.yml", FLEET)]);
        let checked = check(&[folder.path().to_owned()]).unwrap();
        assert!(checked.unreadable);
        assert!(messages(&checked).contains("clanker.yml:2:1` names the host spec"), "{}", messages(&checked));
    }

    #[test]
    fn two_hosts_with_one_id_or_prefix_are_refused() {
        let folder = folder(&[("hosts/a.yml", HOST), ("hosts/b.yml", HOST)]);
        let checked = check(&[folder.path().to_owned()]).unwrap();
        let text = messages(&checked);
        assert!(text.contains("b.yml:2:1` gives `id: this-machine`, which"), "{text}");
        assert!(text.contains("b.yml:3:1` gives `namePrefix: demo`, which"), "{text}");
    }

    #[test]
    fn folder_without_either_is_no_input() {
        let folder = folder(&[]);
        assert!(matches!(check(&[folder.path().to_owned()]), Err(CheckError::Nothing { .. })));
        assert!(matches!(
            check(&[folder.path().join("none.yml")]),
            Err(CheckError::File(LoadError::Unreadable { .. }))
        ));
    }

    #[test]
    fn host_and_fleet_are_loaded_as_a_pair() {
        let folder = folder(&[("hosts/a.yml", HOST), ("clanker.yml", FLEET)]);
        let (host, fleet) = (folder.path().join("hosts/a.yml"), folder.path().join("clanker.yml"));
        std::fs::write(folder.path().join("hosts/this-machine.yml"), HOST).unwrap();
        assert_eq!(load_fleet(&fleet).unwrap().0.path, folder.path().join("./hosts/this-machine.yml"));
        let (host_spec, _) = load(&host, &fleet).unwrap();
        assert_eq!(host_spec.value.id.as_str(), "this-machine");
        std::fs::write(&fleet, FLEET.replace("pod:", "hostnames: { zone: other.localhost }\npod:")).unwrap();
        let LoadError::Refused(findings) = load(&host, &fleet).unwrap_err() else { panic!("accepted") };
        assert!(findings.to_string().contains("is not a zone of `this-machine`"), "{findings}");
    }
}
