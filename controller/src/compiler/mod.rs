//! From what an operator wants of one host to the declaration that says so; pure.
//!
//! Comes in: a checked [`Wanted`], images pinned, secrets by name and generation. Goes out: resources in order,
//! every choice made, nothing of it random; [`seal`] fills in the ciphertexts. Compiling never reads a file, a clock
//! or a secret's value; only [`Distribution`] is loaded from a file, before.

mod base;
mod caddy;
mod compile;
mod distribution;
mod error;
mod files;
mod gateway;
mod intent;
mod pod;
mod proxy;
mod resolve;
pub mod seal;

pub use compile::{Compiled, Head, compile, intent_hash, needs};
pub use distribution::{Distribution, DistributionError};
pub use error::CompileError;
pub use intent::{Gateway, HeldSecret, Image, Place, Pod, Repository, Route, User, Wanted};
pub use resolve::{ResolveError, images, wanted};
