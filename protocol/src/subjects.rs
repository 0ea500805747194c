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

/// `keyring.*`: every version of the keyring, for those who listen.
#[must_use]
pub fn keyrings() -> String {
    "keyring.*".to_owned()
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
