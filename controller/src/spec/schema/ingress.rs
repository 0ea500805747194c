//! `ingress`: how the public reaches the host.

use crate::spec::finding::{Code, Findings};
use crate::spec::read::{Field, Key, key, later_word, word};

/// How the public reaches the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ingress {
    /// Not at all: the proxy listens on this machine only.
    None,
}

const KEYS: &[Key] = &[key("provider"), key("accountId"), key("tokenFrom"), key("tls")];

pub(super) fn read(field: &Field<'_>, findings: &mut Findings) -> Option<Ingress> {
    let block = field.block(KEYS, findings)?;
    let words = [word("none"), later_word("direct"), later_word("cloudflare-tunnel")];
    let provider = block.require("provider", "none", findings).and_then(|field| field.choice(&words, findings));
    if let Some(field) = block.get("tokenFrom") {
        field.secret("cloudflareApiKey", findings);
    }
    provider?;
    for name in ["accountId", "tokenFrom"] {
        if let Some(field) = block.get(name) {
            field.unused("with `ingress.provider: none`", findings);
        }
    }
    if let Some(field) = block.get("tls") {
        let says = "has `ingress.tls`, which belongs to `ingress.provider: direct`";
        findings.fault(Code::Conflict, field.place, says, "remove it: without ingress there is no certificate");
    }
    Some(Ingress::None)
}
