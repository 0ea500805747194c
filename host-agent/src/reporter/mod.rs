//! What the controller is told: batches of events, settled by receipts, and heartbeats.
