//! What an apply would change, as data, before it is issued; pure.
