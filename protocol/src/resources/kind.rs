//! The closed list of kinds.
//!
//! Every word added here widens what a stolen controller can express, so a test pins the list.

use std::fmt;

/// What a resource can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A package of the system's package manager.
    Package,
    /// A file's content, owner and mode.
    File,
    /// A folder's owner and mode.
    Directory,
    /// Something the operator provides; confirmed, never made.
    Access,
    /// A login.
    User,
    /// A downloaded archive, unpacked.
    Archive,
    /// A network of the container runtime.
    Network,
    /// A WireGuard interface.
    Interface,
    /// A container.
    Container,
    /// A systemd unit found on the machine.
    Service,
    /// A program of the operator's own under systemd.
    Process,
    /// A carried command.
    Action,
}

impl Kind {
    /// All twelve.
    pub const ALL: [Self; 12] = [
        Self::Package,
        Self::File,
        Self::Directory,
        Self::Access,
        Self::User,
        Self::Archive,
        Self::Network,
        Self::Interface,
        Self::Container,
        Self::Service,
        Self::Process,
        Self::Action,
    ];

    /// The word itself.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Package => "package",
            Self::File => "file",
            Self::Directory => "directory",
            Self::Access => "access",
            Self::User => "user",
            Self::Archive => "archive",
            Self::Network => "network",
            Self::Interface => "interface",
            Self::Container => "container",
            Self::Service => "service",
            Self::Process => "process",
            Self::Action => "action",
        }
    }

    /// Whether it stands at a path of the machine's, so that no two of these can stand at one.
    #[must_use]
    pub fn has_path(self) -> bool {
        match self {
            Self::File | Self::Directory => true,
            Self::Package
            | Self::Access
            | Self::User
            | Self::Archive
            | Self::Network
            | Self::Interface
            | Self::Container
            | Self::Service
            | Self::Process
            | Self::Action => false,
        }
    }

    /// Whether it takes a container runtime to apply it.
    #[must_use]
    pub fn needs_runtime(self) -> bool {
        match self {
            Self::Network | Self::Container => true,
            Self::Package
            | Self::File
            | Self::Directory
            | Self::Access
            | Self::User
            | Self::Archive
            | Self::Interface
            | Self::Service
            | Self::Process
            | Self::Action => false,
        }
    }

    /// The lowest level of a host that can apply it. A compiler emits nothing above a host's level.
    #[must_use]
    pub fn level(self) -> u32 {
        match self {
            Self::File | Self::Directory | Self::Network | Self::Container => 1,
            Self::Package
            | Self::Access
            | Self::User
            | Self::Archive
            | Self::Interface
            | Self::Service
            | Self::Process
            | Self::Action => 2,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::Kind;

    #[test]
    fn vocabulary_is_closed() {
        let words = Kind::ALL.map(Kind::as_str).join(" ");
        assert_eq!(
            words,
            "package file directory access user archive network interface container service process action"
        );
    }

    #[test]
    fn level_one_is_what_messages_can_carry() {
        let carried: Vec<_> = Kind::ALL.into_iter().filter(|kind| kind.level() == 1).map(Kind::as_str).collect();
        assert_eq!(carried, ["file", "directory", "network", "container"]);
    }
}
