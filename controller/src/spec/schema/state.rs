//! `state` and `secrets`: where what must not be lost is kept.

use crate::state::App;

/// Where the provisioning log is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    /// The name it is kept under; never changes after the first run.
    pub app: App,
    /// The place.
    pub backend: Backend,
}

/// Where state and secrets lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    /// The controller's folder on this machine.
    Local,
}

/// Where `secret:NAME` resolves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Secrets {
    /// The store beside the state.
    Replicator,
}
