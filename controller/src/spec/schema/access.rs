//! `access`: how people reach the host.

use crate::spec::finding::{Code, Findings};
use crate::spec::read::{Field, Key, key, later_word, word};

/// How people reach the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// By SSH on its public address.
    SshDirect,
}

const KEYS: &[Key] = &[key("provider"), key("tailscale")];

pub(super) fn read(field: &Field<'_>, findings: &mut Findings) -> Option<Access> {
    let block = field.block(KEYS, findings)?;
    let words = [word("ssh-direct"), later_word("tailscale")];
    let provider = block.require("provider", "ssh-direct", findings).and_then(|field| field.choice(&words, findings));
    provider?;
    if let Some(field) = block.get("tailscale") {
        let says = "has a block `access.tailscale` beside `provider: ssh-direct`";
        findings.fault(Code::Conflict, field.place, says, "remove it: a host is reached in one way");
    }
    Some(Access::SshDirect)
}
