//! From bytes to the declaration in force: verify, decode, order, supersede.
