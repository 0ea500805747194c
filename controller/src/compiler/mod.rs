//! Spec and fleet in, declaration out; pure.
