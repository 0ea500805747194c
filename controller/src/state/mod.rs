//! The provisioning log: one encrypted object per event, created only if absent.
