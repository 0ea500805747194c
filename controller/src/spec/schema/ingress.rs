//! `ingress`: how the public reaches the host.

/// How the public reaches the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ingress {
    /// Not at all: the proxy listens on this machine only.
    None,
}
