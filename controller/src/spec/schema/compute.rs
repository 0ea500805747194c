//! `compute`: what the host runs on.

use crate::spec::finding::{Code, Report};
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

pub(super) fn read(field: &Field<'_>, report: &mut Report) -> Option<Compute> {
    let block = field.block(KEYS, report)?;
    let words = [word("existing-host"), later_word("hetzner"), later_word("aws"), later_word("custom")];
    let provider = block.require("provider", "existing-host", report);
    let written = provider.is_some();
    let provider = provider.and_then(|field| field.choice(&words, report));
    other_providers(&block, provider, written, report);
    ssh_key(&block, report);
    let firewall = block.get("firewall").map_or(Some(Firewall::default()), |field| firewall(&field, report));
    let capacity = block.get("capacity").map(|field| capacity(&field, report));
    provider?;
    let host = block.require("existingHost", "{ address: local }", report)?.block(EXISTING_HOST, report)?;
    let address = host.require("address", "local", report).and_then(|field| address(&field, report));
    let ssh_user = match host.get("sshUser") {
        Some(field) => field.parsed(Login::parse, report),
        None => Login::parse("root").ok(),
    };
    let capacity = capacity.map_or(Some(None), |read| read.map(Some))?;
    Some(Compute::ExistingHost { address: address?, ssh_user: ssh_user?, firewall: firewall?, capacity })
}

fn other_providers(block: &Block<'_>, provider: Option<&str>, written: bool, report: &mut Report) {
    for name in ["hetzner", "aws", "custom"] {
        let Some(field) = block.get(name) else { continue };
        if provider.is_some() {
            let says = format!("has a block `{}` beside `provider: existing-host`", field.path);
            report.fault(Code::Conflict, field.place, says, "remove it: a host is one thing");
        } else if !written {
            let says = format!("has `{}`, which is not offered by this version", field.path);
            report.fault(Code::NotOffered, field.place, says, "write `provider: existing-host` and its block");
        }
    }
}

fn address(field: &Field<'_>, report: &mut Report) -> Option<Address> {
    let text = field.text(report)?;
    if text == "local" {
        return Some(Address::Local);
    }
    let says = format!("gives an address other than `local`, which is not offered by this version (`{}`)", field.path);
    field.fault(Code::NotOffered, says, "write `address: local`: this machine", report);
    None
}

fn ssh_key(block: &Block<'_>, report: &mut Report) {
    let Some(field) = block.get("sshKeyFrom") else { return };
    let Some(pair) = field.block(SSH_KEY_FROM, report) else { return };
    for (name, default) in [("privateKey", "hostSshPrivateKey"), ("publicKey", "hostSshPublicKey")] {
        if let Some(field) = pair.get(name) {
            field.secret(default, report);
        }
    }
    field.unused("at address `local`: nobody logs in", report);
}

fn firewall(field: &Field<'_>, report: &mut Report) -> Option<Firewall> {
    let block = field.block(FIREWALL, report)?;
    let mut line = |name: &str| match block.get(name) {
        Some(field) => field.boolean(report).map(Some),
        None => Some(None),
    };
    let (ssh, mosh, web) = (line("ssh"), line("mosh"), line("web"));
    Some(Firewall { ssh: ssh?, mosh: mosh?, web: web? })
}

fn capacity(field: &Field<'_>, report: &mut Report) -> Option<Capacity> {
    let block = field.block(CAPACITY, report)?;
    let mut number = |name: &str, example: &str| {
        block.require(name, example, report).and_then(|field| field.number(1..=CAPACITY_MAX, report))
    };
    let (cpus, memory_gb, disk_gb) = (number("cpus", "4"), number("memoryGb", "16"), number("diskGb", "160"));
    Some(Capacity { cpus: cpus?, memory_gb: memory_gb?, disk_gb: disk_gb? })
}
