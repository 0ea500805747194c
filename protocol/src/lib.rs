//! What crosses the wire between a controller and its hosts, and what may be said; no I/O.

pub mod wire;
