//! `repos`: a repository, the image it runs, where it listens and what it is told.

use std::collections::BTreeMap;

use super::{Auth, Env, HostRequirements, Port, Repo};
use crate::spec::finding::{Code, Report};
use crate::spec::names::{ImageRef, InvalidText, RepoName, VariableName};
use crate::spec::read::{Field, Key, key, later, once, word};

const KEYS: &[Key] = &[
    key("repo"),
    key("enabled"),
    key("image"),
    key("ports"),
    key("env"),
    key("hostRequirements"),
    later("workspace", "remove it and give an `image`: this version checks nothing out"),
    later("build", "give an `image`: this version builds nothing"),
    later("resources", "remove it: this version provides no shared backends"),
];
const PORT: &[Key] = &[key("port"), key("public"), key("auth")];
const ENV: &[Key] =
    &[key("plain"), key("secrets"), later("git", "remove it: this version checks nothing out, so git needs no token")];
const REQUIREMENTS: &[Key] = &[key("cpus"), key("memory"), key("storage")];

/// Most processors that can be asked for.
const CPUS_MAX: u32 = 1_000_000;

pub(super) fn read_all(field: &Field<'_>, report: &mut Report) -> Option<Vec<Repo>> {
    let items = field.list(report)?;
    let repos: Vec<_> = items.iter().map(|item| repo(item, report)).collect();
    let named = repos
        .iter()
        .zip(&items)
        .filter_map(|(repo, item)| Some((repo.as_ref()?.repo.to_string(), format!("{}.repo", item.path))));
    once(named, report);
    repos.into_iter().collect()
}

fn repo(field: &Field<'_>, report: &mut Report) -> Option<Repo> {
    let block = field.block(KEYS, report)?;
    let name = block.require("repo", "acme/web", report).and_then(|field| field.parsed(RepoName::parse, report));
    let enabled = block.get("enabled").map_or(Some(true), |field| field.boolean(report));
    // An entry with one of these has its finding already; the image is not missed on top of it.
    let image = match block.get("image") {
        None if block.get("workspace").is_some() || block.get("build").is_some() => None,
        None => {
            block.require("image", "registry/acme/web@sha256:…", report);
            None
        }
        Some(field) => image(&field, report),
    };
    let ports = block.get("ports").map_or(Some(Vec::new()), |field| ports(&field, report));
    let env = block.get("env").map_or(Some(Env::default()), |field| env(&field, report));
    let host_requirements =
        block.get("hostRequirements").map_or(Some(HostRequirements::default()), |field| requirements(&field, report));
    Some(Repo {
        repo: name?,
        enabled: enabled?,
        image: image?,
        ports: ports?,
        env: env?,
        host_requirements: host_requirements?,
    })
}

fn image(field: &Field<'_>, report: &mut Report) -> Option<ImageRef> {
    let image = field.parsed(ImageRef::parse, report)?;
    match image {
        ImageRef::Tagged { repository, tag } => {
            let says = format!("names the image `{repository}` by the tag `{tag}`, which can move (`{}`)", field.path);
            let hint = format!(
                "write `{repository}@sha256:…`; `docker buildx imagetools inspect {repository}:{tag}` shows the digest"
            );
            field.fault(Code::InvalidValue, says, hint, report);
            None
        }
        ImageRef::Registry { .. } | ImageRef::Held(_) | ImageRef::Local { .. } => Some(image),
    }
}

fn ports(field: &Field<'_>, report: &mut Report) -> Option<Vec<Port>> {
    let items = field.list(report)?;
    let ports: Vec<_> = items.iter().map(|item| port(item, report)).collect();
    ports.into_iter().collect()
}

fn port(field: &Field<'_>, report: &mut Report) -> Option<Port> {
    let block = field.block(PORT, report)?;
    let number = block.require("port", "3000", report);
    let number = number.and_then(|field| field.number(1..=u32::from(u16::MAX), report));
    let public = block.get("public").map_or(Some(false), |field| field.boolean(report));
    let auth = match block.get("auth") {
        None => Some(Auth::Gateway),
        Some(field) => field.choice(&[word("none"), word("gateway")], report).map(|word| match word {
            "none" => Auth::None,
            // The list above has these two.
            _ => Auth::Gateway,
        }),
    };
    if let (Some(false), Some(field)) = (public, block.get("auth")) {
        field.unused("without `public: true`", report);
    }
    let port = u16::try_from(number?).ok()?;
    Some(Port { port, public: public?, auth: auth? })
}

fn env(field: &Field<'_>, report: &mut Report) -> Option<Env> {
    let block = field.block(ENV, report)?;
    let plain = block.get("plain").map_or(Some(BTreeMap::new()), |field| plain(&field, report));
    let secrets = match block.get("secrets") {
        None => Some(Vec::new()),
        Some(field) => {
            let items = field.list(report)?;
            let names: Vec<_> = items.iter().map(|item| item.bare_secret(report)).collect();
            let named = names.iter().zip(&items).filter_map(|(name, item)| Some((name.clone()?, item.path.clone())));
            once(named, report);
            names.into_iter().collect()
        }
    };
    let env = Env { plain: plain?, secrets: secrets? };
    for (index, name) in env.secrets.iter().enumerate() {
        if VariableName::parse(name.as_str()).is_ok_and(|name| env.plain.contains_key(&name)) {
            let says = format!("has `{name}` both in `{}.plain` and as a secret", field.path);
            let place = report.place(&format!("{}.secrets[{index}]", field.path));
            report.fault(Code::Conflict, place, says, "keep one of them");
        }
    }
    Some(env)
}

fn plain(field: &Field<'_>, report: &mut Report) -> Option<BTreeMap<VariableName, String>> {
    let mut variables = BTreeMap::new();
    let mut all = true;
    for (key, value) in field.entries(report)? {
        let name = VariableName::parse(key);
        if let Err(invalid) = &name {
            let says = format!("has a key in `{}` that {}", field.path, lead(invalid));
            report.fault(Code::InvalidValue, value.place, says, format!("write {}", invalid.expected));
        }
        match (name, value.text(report)) {
            (Ok(name), Some(text)) => {
                variables.insert(name, text.to_owned());
            }
            (Ok(_) | Err(_), _) => all = false,
        }
    }
    all.then_some(variables)
}

fn lead(invalid: &InvalidText) -> String {
    format!("is no {}", invalid.what)
}

fn requirements(field: &Field<'_>, report: &mut Report) -> Option<HostRequirements> {
    let block = field.block(REQUIREMENTS, report)?;
    let cpus = block.get("cpus").map(|field| field.number(1..=CPUS_MAX, report));
    let memory = block.get("memory").map(|field| field.parsed(size, report));
    let storage = block.get("storage").map(|field| field.parsed(size, report));
    Some(HostRequirements {
        cpus: cpus.map_or(Some(None), |read| read.map(Some))?,
        memory: memory.map_or(Some(None), |read| read.map(Some))?,
        storage: storage.map_or(Some(None), |read| read.map(Some))?,
    })
}

/// Bytes of `4gb`, as the dev-container format has it.
fn size(text: &str) -> Result<u64, InvalidText> {
    let invalid = InvalidText { what: "size", expected: "a whole number and `mb`, `gb` or `tb`, as `4gb`" };
    let units = [("mb", 20), ("gb", 30), ("tb", 40)];
    let (digits, shift) =
        units.iter().find_map(|(unit, shift)| Some((text.strip_suffix(unit)?, *shift))).ok_or(invalid)?;
    let number = digits.parse::<u32>().map_err(|_| invalid)?;
    if number == 0 || digits.starts_with(['0', '+']) {
        return Err(invalid);
    }
    u64::from(number).checked_shl(shift).filter(|bytes| bytes >> shift == u64::from(number)).ok_or(invalid)
}
