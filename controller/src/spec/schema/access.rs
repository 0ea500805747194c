//! `access`: how people reach the host.

/// How people reach the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// By SSH on its public address.
    SshDirect,
}
