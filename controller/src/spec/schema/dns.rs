//! `dns`: where the host's names are written.

use crate::spec::finding::{Code, Findings};
use crate::spec::names::Zone;
use crate::spec::read::{Block, Field, Key, key, later_word, once, word};

/// Where the host's names are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dns {
    /// Who writes them.
    pub provider: DnsProvider,
    /// The zones names may be in; at least one, the first is the default.
    pub zones: Vec<Zone>,
}

/// Who writes names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DnsProvider {
    /// The operator.
    Manual,
}

const KEYS: &[Key] = &[key("provider"), key("zones"), key("tokenFrom"), key("records"), key("route53"), key("custom")];

pub(super) fn read(field: &Field<'_>, findings: &mut Findings) -> Option<Dns> {
    let block = field.block(KEYS, findings)?;
    let words = [word("manual"), later_word("cloudflare"), later_word("route53"), later_word("custom")];
    let provider = match block.get("provider") {
        Some(field) => field.choice(&words, findings),
        None => {
            let says = "lacks `dns.provider`, and its default `cloudflare` is not offered by this version";
            findings.fault(Code::NotOffered, field.place, says, "write `provider: manual` there");
            None
        }
    };
    if let Some(field) = block.get("tokenFrom") {
        field.secret("cloudflareApiKey", findings);
    }
    if provider.is_some() {
        others(&block, findings);
    }
    let zones = block.require("zones", "[ acme.localhost ]", findings).and_then(|field| zones(&field, findings));
    provider?;
    Some(Dns { provider: DnsProvider::Manual, zones: zones? })
}

fn others(block: &Block<'_>, findings: &mut Findings) {
    if let Some(field) = block.get("tokenFrom") {
        field.unused("with `dns.provider: manual`", findings);
    }
    for (name, owner) in [("records", "cloudflare"), ("route53", "route53"), ("custom", "custom")] {
        if let Some(field) = block.get(name) {
            let says = format!("has `{}`, which belongs to `dns.provider: {owner}`", field.path);
            findings.fault(Code::Conflict, field.place, says, "remove it: with `manual` the names are written by you");
        }
    }
}

fn zones(field: &Field<'_>, findings: &mut Findings) -> Option<Vec<Zone>> {
    let items = field.list(findings)?;
    if items.is_empty() {
        field.fault(
            Code::InvalidValue,
            "gives no zone (`dns.zones`)",
            "write at least one, as `- acme.localhost`",
            findings,
        );
        return None;
    }
    let zones: Vec<_> = items.iter().map(|item| item.parsed(Zone::parse, findings)).collect();
    let named = zones.iter().zip(&items).filter_map(|(zone, item)| Some((zone.clone()?, item.path.clone())));
    once(named, findings);
    zones.into_iter().collect()
}
