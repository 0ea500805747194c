//! The host's append-only, hash-chained log of what happened, and the answers folded from it.
