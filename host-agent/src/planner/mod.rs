//! Wanted and observed in, plan out; pure.
