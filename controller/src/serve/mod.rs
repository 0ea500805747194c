//! The collector: verifies and stores what hosts report, signs receipts, answers health and metrics.
