//! `compute`: what the host runs on.

use crate::spec::finding::{Code, Findings};
use crate::spec::names::Login;
use crate::spec::read::{Block, Field, Key, key, later_word, word};

/// What the host runs on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Compute {
    /// A machine there is already.
    ExistingHost {
        /// Where it is.
        address: Address,
        /// Who logs in there; unused at `local`.
        ssh_user: Login,
        /// What its owner says about its firewall.
        firewall: Firewall,
        /// What it can hold, where its owner says so.
        capacity: Option<Capacity>,
    },
}

/// Where an existing host is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Address {
    /// This machine.
    Local,
}

/// Which public ports are open; unset is not `false`: some refusals want the line itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Firewall {
    /// Port 22.
    pub ssh: Option<bool>,
    /// The mosh range.
    pub mosh: Option<bool>,
    /// Ports 80 and 443.
    pub web: Option<bool>,
}

/// What a host can hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capacity {
    /// Processors.
    pub cpus: u32,
    /// Memory, in GiB.
    pub memory_gb: u32,
    /// Disk, in GiB.
    pub disk_gb: u32,
}

const KEYS: &[Key] = &[
    key("provider"),
    key("existingHost"),
    key("sshKeyFrom"),
    key("firewall"),
    key("capacity"),
    // Known, and answered below by what the provider is.
    key("hetzner"),
    key("aws"),
    key("custom"),
];
const EXISTING_HOST: &[Key] = &[key("address"), key("sshUser")];
const SSH_KEY_FROM: &[Key] = &[key("privateKey"), key("publicKey")];
const FIREWALL: &[Key] = &[key("ssh"), key("mosh"), key("web")];
const CAPACITY: &[Key] = &[key("cpus"), key("memoryGb"), key("diskGb")];

/// Largest capacity that is believed: processors, or GiB.
const CAPACITY_MAX: u32 = 1_000_000;

pub(super) fn read(field: &Field<'_>, findings: &mut Findings) -> Option<Compute> {
    let block = field.block(KEYS, findings)?;
    let words = [word("existing-host"), later_word("hetzner"), later_word("aws"), later_word("custom")];
    let provider = block.require("provider", "existing-host", findings);
    let written = provider.is_some();
    let provider = provider.and_then(|field| field.choice(&words, findings));
    other_providers(&block, provider, written, findings);
    ssh_key(&block, findings);
    let firewall = block.get("firewall").map_or(Some(Firewall::default()), |field| firewall(&field, findings));
    let capacity = block.get("capacity").map(|field| capacity(&field, findings));
    // Where another provider is meant it is not missed; what stands in it is read in any case, for its faults.
    let host = match provider {
        Some(_) => block.require("existingHost", "{ address: local }", findings),
        None => block.get("existingHost"),
    };
    let host = host?.block(EXISTING_HOST, findings)?;
    let address = host.require("address", "local", findings).and_then(|field| address(&field, findings));
    let ssh_user = match host.get("sshUser") {
        Some(field) => field.parsed(Login::parse, findings),
        None => Login::parse("root").ok(),
    };
    provider?;
    let capacity = capacity.map_or(Some(None), |read| read.map(Some))?;
    Some(Compute::ExistingHost { address: address?, ssh_user: ssh_user?, firewall: firewall?, capacity })
}

fn other_providers(block: &Block<'_>, provider: Option<&str>, written: bool, findings: &mut Findings) {
    for name in ["hetzner", "aws", "custom"] {
        let Some(field) = block.get(name) else { continue };
        if provider.is_some() {
            let says = format!("has a block `{}` beside `provider: existing-host`", field.path);
            findings.fault(Code::Conflict, field.place, says, "remove it: a host is one thing");
        } else if !written {
            let says = format!("has `{}`, which is not offered by this version", field.path);
            findings.fault(Code::NotOffered, field.place, says, "write `provider: existing-host` and its block");
        }
    }
}

fn address(field: &Field<'_>, findings: &mut Findings) -> Option<Address> {
    let text = field.text(findings)?;
    if text == "local" {
        return Some(Address::Local);
    }
    let says = format!("gives an address other than `local`, which is not offered by this version (`{}`)", field.path);
    field.fault(Code::NotOffered, says, "write `address: local`: this machine", findings);
    None
}

fn ssh_key(block: &Block<'_>, findings: &mut Findings) {
    let Some(field) = block.get("sshKeyFrom") else { return };
    let Some(pair) = field.block(SSH_KEY_FROM, findings) else { return };
    for (name, default) in [("privateKey", "hostSshPrivateKey"), ("publicKey", "hostSshPublicKey")] {
        if let Some(field) = pair.get(name) {
            field.secret(default, findings);
        }
    }
    field.unused("at address `local`: nobody logs in", findings);
}

fn firewall(field: &Field<'_>, findings: &mut Findings) -> Option<Firewall> {
    let block = field.block(FIREWALL, findings)?;
    let mut line = |name: &str| match block.get(name) {
        Some(field) => field.boolean(findings).map(Some),
        None => Some(None),
    };
    let (ssh, mosh, web) = (line("ssh"), line("mosh"), line("web"));
    Some(Firewall { ssh: ssh?, mosh: mosh?, web: web? })
}

fn capacity(field: &Field<'_>, findings: &mut Findings) -> Option<Capacity> {
    let block = field.block(CAPACITY, findings)?;
    let mut number = |name: &str, example: &str| {
        block.require(name, example, findings).and_then(|field| field.number(1..=CAPACITY_MAX, findings))
    };
    let (cpus, memory_gb, disk_gb) = (number("cpus", "4"), number("memoryGb", "16"), number("diskGb", "160"));
    Some(Capacity { cpus: cpus?, memory_gb: memory_gb?, disk_gb: disk_gb? })
}
