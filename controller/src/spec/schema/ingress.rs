//! `ingress`: how the public reaches the host.

use crate::spec::finding::{Code, Report};
use crate::spec::read::{Field, Key, key, later_word, word};

/// How the public reaches the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ingress {
    /// Not at all: the proxy listens on this machine only.
    None,
}

const KEYS: &[Key] = &[key("provider"), key("accountId"), key("tokenFrom"), key("tls")];

pub(super) fn read(field: &Field<'_>, report: &mut Report) -> Option<Ingress> {
    let block = field.block(KEYS, report)?;
    let words = [word("none"), later_word("direct"), later_word("cloudflare-tunnel")];
    let provider = block.require("provider", "none", report).and_then(|field| field.choice(&words, report));
    if let Some(field) = block.get("tokenFrom") {
        field.secret("cloudflareApiKey", report);
    }
    provider?;
    for name in ["accountId", "tokenFrom"] {
        if let Some(field) = block.get(name) {
            field.unused("with `ingress.provider: none`", report);
        }
    }
    if let Some(field) = block.get("tls") {
        let says = "has `ingress.tls`, which belongs to `ingress.provider: direct`";
        report.fault(Code::Conflict, field.place, says, "remove it: without ingress there is no certificate");
    }
    Some(Ingress::None)
}
