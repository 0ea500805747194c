//! What crosses the wire between a controller and its hosts, and what may be said; no I/O.
//!
//! Bytes come in, checked values or a [`refusal::Refusal`] go out. Nothing here opens a file, a socket or a
//! clock, and nothing here prints.

pub mod broker_version;
pub mod change;
mod closed_list;
pub mod declaration;
#[cfg(test)]
mod descriptors;
pub mod enrolment;
pub mod envelope;
pub mod event_words;
pub mod ids;
pub mod keyring;
pub mod mask;
pub mod refusal;
pub mod resources;
pub mod sealed_box;
pub mod secret;
pub mod strict;
pub mod subjects;
mod validate;
pub mod wire;
