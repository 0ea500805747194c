//! The `[broker]` table, as a fleet's settings hold it and as its hosts are told.

use serde::{Deserialize, Serialize};

/// Where the broker is and how it proves itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Broker {
    /// Addresses, `tls://name:port`; `nats://` only to a loopback address, with `insecure_loopback`.
    pub urls: Vec<String>,
    /// The name its certificate must carry, whatever the address says; empty without TLS.
    #[serde(default)]
    pub server_name: String,
    /// The certificate authority, PEM, in place; empty without TLS.
    #[serde(default)]
    pub ca: String,
    /// Allows plain text to a loopback address.
    #[serde(default)]
    pub insecure_loopback: bool,
}
