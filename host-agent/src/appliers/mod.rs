//! Observe and apply, one file a kind; the executor walks a plan.
