//! The fleet file: repositories, pods, names.
