//! Every lab test, in one binary.
