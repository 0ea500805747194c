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
/// [`LoadError`], with every fault of both files.
pub fn load(host: &Path, fleet: &Path) -> Result<(Loaded<HostSpec>, Loaded<FleetFile>), LoadError> {
    let (host_text, fleet_text) = (load::text(host)?, load::text(fleet)?);
    accept((host, spec::examine(host, &host_text)), (fleet, examine(fleet, &fleet_text)))
}

/// The fleet file at `fleet` and the host spec it names.
///
/// # Errors
///
/// [`LoadError`], as [`load`].
pub fn load_fleet(fleet: &Path) -> Result<(Loaded<HostSpec>, Loaded<FleetFile>), LoadError> {
    let text = load::text(fleet)?;
    let mut examined = examine(fleet, &text);
    // The reader takes exactly one host, and refuses a file without.
    let Some(host) = named(fleet, &text).into_iter().next() else {
        return Err(LoadError::Refused { refused: vec![examined.findings] });
    };
    match load::text(&host) {
        Ok(text) => accept((&host, spec::examine(&host, &text)), (fleet, examined)),
        Err(error) if examined.findings.is_refused() => {
            unreadable_host(&mut examined.findings, 0, &host, &error);
            Err(LoadError::Refused { refused: vec![examined.findings] })
        }
        Err(error) => Err(error),
    }
}

fn accept(
    (host_path, host): (&Path, Examined<HostSpec>),
    (fleet_path, mut fleet): (&Path, Examined<FleetFile>),
) -> Result<(Loaded<HostSpec>, Loaded<FleetFile>), LoadError> {
    if let (Some(host), Some(value)) = (&host.value, &fleet.value) {
        check_with_host(value, host, &mut fleet.findings);
    }
    match (host.accept(host_path), fleet.accept(fleet_path)) {
        (Ok(host), Ok(fleet)) => Ok((host, fleet)),
        (Err(LoadError::Refused { mut refused }), Err(LoadError::Refused { refused: more })) => {
            refused.extend(more);
            Err(LoadError::Refused { refused })
        }
        (Err(error), _) | (_, Err(error)) => Err(error),
    }
}

/// The host specs that the fleet file at `path` names, whatever else is wrong with it.
fn named(path: &Path, text: &str) -> Vec<PathBuf> {
    // What is wrong with it is found by who reads it whole.
    let mut unseen = Findings::new(path, text);
    let hosts = yaml::parse(text, &mut unseen).and_then(|node| schema::hosts_of(&node, &mut unseen));
    let folder = path.parent().unwrap_or_else(|| Path::new(""));
    hosts.unwrap_or_default().iter().map(|host| folder.join(host)).collect()
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
    /// Each with the host specs it names.
    fleets: Vec<(PathBuf, Vec<PathBuf>, Examined<FleetFile>)>,
}

impl All {
    fn add(&mut self, path: &Path) -> Result<(), LoadError> {
        let known = |other: &PathBuf| same(other, path);
        if self.hosts.iter().any(|(other, _)| known(other)) || self.fleets.iter().any(|(other, ..)| known(other)) {
            return Ok(());
        }
        let text = load::text(path)?;
        if is_fleet(path, &text) {
            self.fleets.push((path.to_owned(), named(path, &text), examine(path, &text)));
        } else {
            self.hosts.push((path.to_owned(), spec::examine(path, &text)));
        }
        Ok(())
    }

    fn finish(mut self) -> Checked {
        let mut unreadable = false;
        for (_, named, fleet) in &mut self.fleets {
            for (index, host) in named.iter().enumerate() {
                let known = self.hosts.iter().position(|(other, _)| same(other, host));
                let known = match known.map_or_else(|| load::text(host).map(Err), |known| Ok(Ok(known))) {
                    Ok(Ok(known)) => known,
                    Ok(Err(text)) => {
                        self.hosts.push((host.clone(), spec::examine(host, &text)));
                        self.hosts.len() - 1
                    }
                    Err(error) => {
                        unreadable = true;
                        unreadable_host(&mut fleet.findings, index, host, &error);
                        continue;
                    }
                };
                if let (Some(host), Some(value)) = (&self.hosts[known].1.value, &fleet.value) {
                    check_with_host(value, host, &mut fleet.findings);
                }
            }
        }
        distinct(&mut self.hosts);
        let hosts = self.hosts.into_iter().map(|(_, examined)| examined.findings);
        let fleets = self.fleets.into_iter().map(|(.., examined)| examined.findings);
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
mod tests;
