//! Sends signed messages to the broker, and waits for what comes back.
