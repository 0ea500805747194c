//! The lab: real brokers, real agents and real container runtimes, raised for a test and gone after it.
//!
//! Nothing here is a mock where the real thing can run. Everything listens on free loopback ports, lies in a
//! folder of its own, and is ended by its own handle when dropped.

pub mod bench;
pub mod dockerd;
pub mod fleet;
pub mod images;
pub mod life;
pub mod namespace;
pub mod nats;
pub mod recorder;
pub mod verb;
pub mod wait;
pub mod watch;
