//! `compute`: what the host runs on.

use crate::spec::names::Login;

/// What the host runs on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Compute {
    /// A machine there is already.
    ExistingHost {
        /// Where it is.
        address: Address,
        /// Who logs in there; unused at `local`.
        ssh_user: Login,
        /// What its owner says about its firewall.
        firewall: Firewall,
        /// What it can hold, where its owner says so.
        capacity: Option<Capacity>,
    },
}

/// Where an existing host is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Address {
    /// This machine.
    Local,
}

/// Which public ports are open; unset is not `false`: some refusals want the line itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Firewall {
    /// Port 22.
    pub ssh: Option<bool>,
    /// The mosh range.
    pub mosh: Option<bool>,
    /// Ports 80 and 443.
    pub web: Option<bool>,
}

/// What a host can hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capacity {
    /// Processors.
    pub cpus: u32,
    /// Memory, in GiB.
    pub memory_gb: u32,
    /// Disk, in GiB.
    pub disk_gb: u32,
}
