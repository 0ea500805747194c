//! Root, signing and transport keys; the broker's accounts; admission of hosts.
