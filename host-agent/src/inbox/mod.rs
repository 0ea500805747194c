//! From bytes to the declaration in force.
//!
//! An envelope comes in; the declaration this host is to be, or a refusal with a stable code, goes out. Nothing
//! of the machine is touched here.

mod in_force;

pub use in_force::InForce;
