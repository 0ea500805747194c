//! The declaration in force, with the bytes it came in.

use bytes::Bytes;
use replicator_protocol::declaration::Declaration;
use replicator_protocol::wire::event::DeclarationRef;

/// What this host was told last and accepted.
#[derive(Debug, Clone, PartialEq)]
pub struct InForce {
    /// The checked declaration; secrets in it are sealed.
    pub declaration: Declaration,
    /// Names it in events.
    pub reference: DeclarationRef,
    /// The envelope as it came.
    pub envelope: Bytes,
}
