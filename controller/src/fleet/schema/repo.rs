//! `repos`: a repository, the image it runs, where it listens and what it is told.

use std::collections::BTreeMap;

use super::{Auth, Env, HostRequirements, Port, Repo};
use crate::spec::finding::{Code, Findings};
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

/// Most bytes of a variable with its name, `=` and the zero byte after it: the kernel starts no program with more.
const VARIABLE_MAX: usize = 128 * 1024;

/// Most processors that can be asked for.
const CPUS_MAX: u32 = 1_000_000;

pub(super) fn read_all(field: &Field<'_>, findings: &mut Findings) -> Option<Vec<Repo>> {
    let items = field.list(findings)?;
    let repos: Vec<_> = items.iter().map(|item| repo(item, findings)).collect();
    let named = repos
        .iter()
        .zip(&items)
        .filter_map(|(repo, item)| Some((repo.as_ref()?.repo.to_string(), format!("{}.repo", item.path))));
    once(named, findings);
    repos.into_iter().collect()
}

fn repo(field: &Field<'_>, findings: &mut Findings) -> Option<Repo> {
    let block = field.block(KEYS, findings)?;
    let name = block.require("repo", "acme/web", findings).and_then(|field| field.parsed(RepoName::parse, findings));
    let enabled = block.get("enabled").map_or(Some(true), |field| field.boolean(findings));
    // An entry with one of these has its finding already; the image is not missed on top of it.
    let image = match block.get("image") {
        None if block.get("workspace").is_some() || block.get("build").is_some() => None,
        None => {
            block.require("image", "registry/acme/web@sha256:…", findings);
            None
        }
        Some(field) => image(&field, findings),
    };
    let ports = block.get("ports").map_or(Some(Vec::new()), |field| ports(&field, findings));
    let env = block.get("env").map_or(Some(Env::default()), |field| env(&field, findings));
    let host_requirements =
        block.get("hostRequirements").map_or(Some(HostRequirements::default()), |field| requirements(&field, findings));
    Some(Repo {
        repo: name?,
        enabled: enabled?,
        image: image?,
        ports: ports?,
        env: env?,
        host_requirements: host_requirements?,
    })
}

fn image(field: &Field<'_>, findings: &mut Findings) -> Option<ImageRef> {
    let image = field.parsed(ImageRef::parse, findings)?;
    match image {
        ImageRef::Tagged { repository, tag } => {
            let says = format!("names the image `{repository}` by the tag `{tag}`, which can move (`{}`)", field.path);
            let hint = format!(
                "write `{repository}@sha256:…`; `docker buildx imagetools inspect {repository}:{tag}` shows the digest. \
                 For an image that only this machine holds write `local:{repository}:{tag}`"
            );
            field.fault(Code::InvalidValue, says, hint, findings);
            None
        }
        ImageRef::Registry { .. } | ImageRef::Held(_) | ImageRef::Local { .. } => Some(image),
    }
}

fn ports(field: &Field<'_>, findings: &mut Findings) -> Option<Vec<Port>> {
    let items = field.list(findings)?;
    let ports: Vec<_> = items.iter().map(|item| port(item, findings)).collect();
    ports.into_iter().collect()
}

fn port(field: &Field<'_>, findings: &mut Findings) -> Option<Port> {
    let block = field.block(PORT, findings)?;
    let number = block.require("port", "3000", findings);
    let number = number.and_then(|field| field.number(1..=u32::from(u16::MAX), findings));
    let public = block.get("public").map_or(Some(false), |field| field.boolean(findings));
    let auth = match block.get("auth") {
        None => Some(Auth::Gateway),
        Some(field) => field.choice(&[word("none"), word("gateway")], findings).map(|word| match word {
            "none" => Auth::None,
            // The list above has these two.
            _ => Auth::Gateway,
        }),
    };
    if let (Some(false), Some(field)) = (public, block.get("auth")) {
        field.unused("without `public: true`", findings);
    }
    let port = u16::try_from(number?).ok()?;
    Some(Port { port, public: public?, auth: auth? })
}

fn env(field: &Field<'_>, findings: &mut Findings) -> Option<Env> {
    let block = field.block(ENV, findings)?;
    let plain = block.get("plain").map_or(Some(BTreeMap::new()), |field| plain(&field, findings));
    let secrets = match block.get("secrets") {
        None => Some(Vec::new()),
        Some(field) => {
            let items = field.list(findings)?;
            let names: Vec<_> = items.iter().map(|item| item.bare_secret(findings)).collect();
            let named = names.iter().zip(&items).filter_map(|(name, item)| Some((name.clone()?, item.path.clone())));
            once(named, findings);
            names.into_iter().collect()
        }
    };
    let env = Env { plain: plain?, secrets: secrets? };
    for (index, name) in env.secrets.iter().enumerate() {
        if VariableName::parse(name.as_str()).is_ok_and(|name| env.plain.contains_key(&name)) {
            let says = format!("has `{name}` both in `{}.plain` and as a secret", field.path);
            let place = findings.place(&format!("{}.secrets[{index}]", field.path));
            findings.fault(Code::Conflict, place, says, "keep one of them");
        }
    }
    Some(env)
}

fn plain(field: &Field<'_>, findings: &mut Findings) -> Option<BTreeMap<VariableName, String>> {
    let mut variables = BTreeMap::new();
    let mut all = true;
    for (key, value) in field.entries(findings)? {
        let name = VariableName::parse(key);
        if let Err(invalid) = &name {
            let says = format!("has a key in `{}` that {}", field.path, lead(invalid));
            findings.fault(Code::InvalidValue, value.place, says, format!("write {}", invalid.expected));
            findings.hide_value(value.place);
        }
        match (name, value.text(findings)) {
            (Ok(name), Some(text)) if name.as_str().len() + text.len() + 2 > VARIABLE_MAX => {
                let got = name.as_str().len() + text.len() + 2;
                let says = format!(
                    "gives a value no program can be started with (`{}`; got {got} bytes, have {VARIABLE_MAX})",
                    value.path
                );
                value.fault(Code::InvalidValue, says, "keep it in a file of the image, and name that here", findings);
                value.hide(findings);
                all = false;
            }
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

fn requirements(field: &Field<'_>, findings: &mut Findings) -> Option<HostRequirements> {
    let block = field.block(REQUIREMENTS, findings)?;
    let cpus = block.get("cpus").map(|field| field.number(1..=CPUS_MAX, findings));
    let memory = block.get("memory").map(|field| field.parsed(size, findings));
    let storage = block.get("storage").map(|field| field.parsed(size, findings));
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
