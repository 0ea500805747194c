//! The messages as they travel, generated from `proto/`.
//!
//! Nothing here is checked: a message becomes believable through [`crate::envelope::verify`] and usable
//! through its checked form. Maps are ordered, so that equal content has equal bytes.

#![allow(missing_docs, reason = "the fields are documented in the .proto files they are generated from")]
#![allow(clippy::all, reason = "generated code")]

/// The signed envelope (DSSE v1, protobuf form).
pub mod envelope {
    include!(concat!(env!("OUT_DIR"), "/replicator.envelope.v1.rs"));
}

/// What a host should be.
pub mod declaration {
    include!(concat!(env!("OUT_DIR"), "/replicator.declaration.v1.rs"));
}

/// Who may sign what.
pub mod keyring {
    include!(concat!(env!("OUT_DIR"), "/replicator.keyring.v1.rs"));
}

/// First contact.
pub mod enrolment {
    include!(concat!(env!("OUT_DIR"), "/replicator.enrolment.v1.rs"));
}

/// What happened on a host.
pub mod event {
    include!(concat!(env!("OUT_DIR"), "/replicator.event.v1.rs"));
}
