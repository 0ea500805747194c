//! What the controller gives the broker: accounts, streams, keyrings and declarations.
//!
//! Comes in: what was made and signed elsewhere. Goes out: the broker's yes, and what hosts report. Never signs.

pub mod accounts;
