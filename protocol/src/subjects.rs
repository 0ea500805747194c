//! The only place a NATS subject or stream name is spelled.
//!
//! `H` is a host's uid. A host's account imports exactly its own subjects; see `docs/architecture.md`.

use crate::ids::HostUid;

/// Declarations, one subject a host.
pub const DECLARATIONS: &str = "DECL";
/// Events, one subject a host.
pub const EVENTS: &str = "EVT";
/// Receipts, one subject a host.
pub const RECEIPTS: &str = "RCPT";
/// Keyrings, one subject a version.
pub const KEYRINGS: &str = "KEYS";

/// `decl.H` of every host.
pub const EVERY_DECLARATION: &str = "decl.*";
/// `evt.H` of every host.
pub const EVERY_EVENT: &str = "evt.*";
/// `rcpt.H` of every host.
pub const EVERY_RECEIPT: &str = "rcpt.*";
/// `hb.H` of every host.
pub const EVERY_HEARTBEAT: &str = "hb.*";
/// `keyring.N` of every version.
pub const EVERY_KEYRING: &str = "keyring.*";

/// `decl.H`: what the host should be.
#[must_use]
pub fn declaration(host: &HostUid) -> String {
    format!("decl.{host}")
}

/// `evt.H`: what happened on the host.
#[must_use]
pub fn events(host: &HostUid) -> String {
    format!("evt.{host}")
}

/// `rcpt.H`: how far the collector has stored it.
#[must_use]
pub fn receipt(host: &HostUid) -> String {
    format!("rcpt.{host}")
}

/// `hb.H`: the host's heartbeat, in no stream.
#[must_use]
pub fn heartbeat(host: &HostUid) -> String {
    format!("hb.{host}")
}

/// `keyring.N`: one version of the keyring.
#[must_use]
pub fn keyring(version: u64) -> String {
    format!("keyring.{version}")
}

/// The direct get of `subject`'s last message in `stream` (NATS ADR-31).
#[must_use]
pub fn direct_get(stream: &str, subject: &str) -> String {
    format!("$JS.API.DIRECT.GET.{stream}.{subject}")
}

/// The prefix under which a host hears answers; no other host may use it.
#[must_use]
pub fn inbox_prefix(host: &HostUid) -> String {
    format!("_INBOX_{host}")
}

/// The host whose subject of `every` this is; none where it is another's subject or names no host.
#[must_use]
pub fn host_of(every: &str, subject: &str) -> Option<HostUid> {
    let uid = subject.strip_prefix(every.strip_suffix('*')?)?;
    HostUid::parse(uid).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_is_read_back_from_its_own_subjects_only() {
        let uid = HostUid::parse("0123456789abcdef0123456789abcdef").unwrap();
        let pairs = [
            (EVERY_DECLARATION, declaration(&uid)),
            (EVERY_EVENT, events(&uid)),
            (EVERY_RECEIPT, receipt(&uid)),
            (EVERY_HEARTBEAT, heartbeat(&uid)),
        ];
        for (every, subject) in &pairs {
            for (other, _) in &pairs {
                assert_eq!(host_of(other, subject), (other == every).then(|| uid.clone()), "{other} {subject}");
            }
        }
        assert_eq!(host_of(EVERY_EVENT, "evt.somebody"), None);
        assert_eq!(host_of(EVERY_KEYRING, &keyring(1)), None);
    }
}
