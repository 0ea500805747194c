//! `dns`: where the host's names are written.

use crate::spec::finding::{Code, Report};
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

pub(super) fn read(field: &Field<'_>, report: &mut Report) -> Option<Dns> {
    let block = field.block(KEYS, report)?;
    let words = [word("manual"), later_word("cloudflare"), later_word("route53"), later_word("custom")];
    let provider = match block.get("provider") {
        Some(field) => field.choice(&words, report),
        None => {
            let says = "lacks `dns.provider`, and its default `cloudflare` is not offered by this version";
            report.fault(Code::NotOffered, field.place, says, "write `provider: manual` there");
            None
        }
    };
    if let Some(field) = block.get("tokenFrom") {
        field.secret("cloudflareApiKey", report);
    }
    if provider.is_some() {
        others(&block, report);
    }
    let zones = block.require("zones", "[ acme.localhost ]", report).and_then(|field| zones(&field, report));
    provider?;
    Some(Dns { provider: DnsProvider::Manual, zones: zones? })
}

fn others(block: &Block<'_>, report: &mut Report) {
    if let Some(field) = block.get("tokenFrom") {
        field.unused("with `dns.provider: manual`", report);
    }
    for (name, owner) in [("records", "cloudflare"), ("route53", "route53"), ("custom", "custom")] {
        if let Some(field) = block.get(name) {
            let says = format!("has `{}`, which belongs to `dns.provider: {owner}`", field.path);
            report.fault(Code::Conflict, field.place, says, "remove it: with `manual` the names are written by you");
        }
    }
}

fn zones(field: &Field<'_>, report: &mut Report) -> Option<Vec<Zone>> {
    let items = field.list(report)?;
    if items.is_empty() {
        field.fault(
            Code::InvalidValue,
            "gives no zone (`dns.zones`)",
            "write at least one, as `- acme.localhost`",
            report,
        );
        return None;
    }
    let zones: Vec<_> = items.iter().map(|item| item.parsed(Zone::parse, report)).collect();
    let named = zones.iter().zip(&items).filter_map(|(zone, item)| Some((zone.clone()?, item.path.clone())));
    once(named, report);
    zones.into_iter().collect()
}
