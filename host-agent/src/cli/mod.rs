//! The agent's commands, its output and its exit codes.
