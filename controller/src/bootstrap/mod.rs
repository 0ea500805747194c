//! Brings an agent onto a machine and enrols it.
