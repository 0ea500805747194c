//! What the controller is told: every event of the ledger, in batches, until a receipt says it is stored; and a
//! heartbeat.
//!
//! Entries of the ledger come in; signed batches go out through the link. A batch the broker has acknowledged is
//! sent, not delivered: only a collector's signed receipt settles the ledger. Nothing here appends events.

mod batches;
mod heartbeat;
mod outbox;
mod receipts;
mod sender;

pub use batches::{Batch, EVENTS_MAX, cut};
pub use heartbeat::{Known, Vitals, compose, keep_beating};
pub use outbox::Outbox;
pub use receipts::{ReceiptError, settle};
pub use sender::{Parts, keep_reporting};
