//! `dns`: where the host's names are written.

use crate::spec::names::Zone;

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
