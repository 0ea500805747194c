//! The host's append-only, hash-chained log of what happened.
//!
//! Event bodies come in; numbered, chained, durable entries go out. An entry is never changed and never taken
//! back: the log is the truth, and every other answer is folded from it. It is also the outbox: an entry
//! counts as delivered when a collector's receipt has settled it, and not before.
//!
//! It never decides what happened, and it never speaks to a network.

mod aside;
mod checkpoint;
mod damage;
mod entry;
mod error;
mod files;
mod lock;
mod log;
mod opened;
pub mod projections;
mod reader;
mod rows;
mod salvage;
mod schema;
mod shared;
mod sized;
mod state;
mod verify;

pub use aside::{ANCHORS, NEXT, open_or_set_aside};
pub use damage::Damage;
pub use entry::{Entry, Head};
pub use error::{AppendError, KeepError, OpenError, ReadError, StoreError, VerifyError};
pub use files::DATABASE;
pub use lock::{Hold, is_held};
pub use log::{Ledger, Limits};
pub use reader::Reader;
pub use shared::SharedLedger;
pub use state::State;
pub use verify::Verified;
