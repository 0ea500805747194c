//! NATS JWTs, version 2: who an account or user is and what it may do, signed by the key above it.
//!
//! The form is that of github.com/nats-io/jwt: header `ed25519-nkey`, and an id that is the digest of the claims.

use data_encoding::{BASE32_NOPAD, BASE64URL_NOPAD};
use nkeys::KeyPair;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha512_256};

use super::KeysError;

/// No limit, as NATS writes it.
pub(super) const UNLIMITED: i64 = -1;

/// Signs claims about `subject` (a public key) with `issuer`; `issued_at` in seconds since the Unix epoch.
///
/// # Errors
///
/// [`KeysError::Nkey`] where `issuer` holds no private key.
pub(super) fn sign(
    issuer: &KeyPair,
    subject: &str,
    name: &str,
    issued_at: u64,
    nats: Value,
) -> Result<String, KeysError> {
    let mut claims =
        json!({ "iat": issued_at, "iss": issuer.public_key(), "name": name, "sub": subject, "nats": nats });
    claims["jti"] = BASE32_NOPAD.encode(&Sha512_256::digest(claims.to_string())).into();
    let header = BASE64URL_NOPAD.encode(br#"{"typ":"JWT","alg":"ed25519-nkey"}"#);
    let signed = format!("{header}.{}", BASE64URL_NOPAD.encode(claims.to_string().as_bytes()));
    let signature = issuer.sign(signed.as_bytes()).map_err(KeysError::Nkey)?;
    Ok(format!("{signed}.{}", BASE64URL_NOPAD.encode(&signature)))
}

/// Whom `token` is about: a public key. None where it is no token.
pub(super) fn subject(token: &str) -> Option<String> {
    let claims = BASE64URL_NOPAD.decode(token.split('.').nth(1)?.as_bytes()).ok()?;
    let claims: Value = serde_json::from_slice(&claims).ok()?;
    Some(claims["sub"].as_str()?.to_owned())
}

/// What a user may publish and hear: everything else is denied.
pub(super) struct Allowed {
    /// Subjects it may publish on.
    pub(super) publish: Vec<String>,
    /// Subjects it may subscribe to.
    pub(super) subscribe: Vec<String>,
}

/// The claims of a user.
pub(super) fn user(allowed: &Allowed) -> Value {
    json!({
        "pub": { "allow": allowed.publish },
        "sub": { "allow": allowed.subscribe },
        "subs": UNLIMITED, "data": UNLIMITED, "payload": UNLIMITED,
        "type": "user", "version": 2,
    })
}

/// The text of a credentials file: the user's JWT and seed.
pub(super) fn credentials(jwt: &str, seed: &str) -> String {
    format!(
        "-----BEGIN NATS USER JWT-----\n{jwt}\n------END NATS USER JWT------\n\n\
         -----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
    )
}
