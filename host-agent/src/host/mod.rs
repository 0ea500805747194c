//! The only code that touches the machine: files and the container runtime.
//!
//! One function for each effect, and each effect passes a named [`point`] before and after. What is found and
//! what went wrong go out; nothing here decides what should be.

pub mod docker;
pub mod files;
pub mod http;
pub mod point;
pub mod routes;
pub mod unfinished;
pub mod users;
