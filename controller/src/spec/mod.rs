//! The host spec: YAML with spans in, checked blocks or every fault at once out.
