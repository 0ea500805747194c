//! From bytes to the declaration in force.
//!
//! An envelope comes in; the declaration this host is to be, or a refusal with a stable code, goes out. Nothing
//! of the machine is touched here. What is accepted is on disk, in three places, before anyone acts on it.

mod anchors;
mod in_force;
mod order;
mod receive;
mod supersede;
mod verify;

pub use anchors::{AnchorError, Anchors, Floor};
pub use in_force::{InForce, reference};
pub use order::{JUMP_MAX, Verdict, decide};
pub use receive::{Inbox, InboxError, Received};
pub use supersede::skipped;
pub use verify::{Candidate, verify};
