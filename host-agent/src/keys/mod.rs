//! The host's own keys, the controller keys it trusts, and first contact.
