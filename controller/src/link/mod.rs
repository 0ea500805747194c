//! The way to the broker: one connection for each of the fleet's own users.
//!
//! Comes in: the fleet's folder. Goes out: a connection, proved on both sides. It knows no declaration and no
//! event.

mod connection;
mod tls;

pub use connection::{LinkError, connect};
