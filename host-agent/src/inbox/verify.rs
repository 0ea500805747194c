//! Is it for us, by someone who may say it, and sound?

use bytes::Bytes;
use replicator_protocol::declaration::{Declaration, Mode};
use replicator_protocol::envelope::{self, Role, Unverified, Verified};
use replicator_protocol::ids::Digest;
use replicator_protocol::keyring::Keyring;
use replicator_protocol::refusal::{Code, Refusal};
use replicator_protocol::wire::declaration as wire;

use crate::keys::Membership;

/// How far clocks may be apart before a last day counts, in milliseconds: a day. Clocks inform, and no more.
const CLOCK_SKEW: u64 = 24 * 60 * 60 * 1000;

/// A declaration for this host that is sound; whether it is taken up is a matter of its number.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// The checked declaration.
    pub declaration: Declaration,
    /// SHA-256 of its signed payload.
    pub hash: Digest,
    /// The envelope as it came.
    pub envelope: Bytes,
}

/// Verifies `envelope`, then reads it, then checks it whole; `now` is in milliseconds since the Unix epoch.
///
/// # Errors
///
/// As [`envelope::verify`]; [`Code::WrongHost`], [`Code::OutOfScope`], [`Code::Expired`], [`Code::UnsupportedMode`]; as
/// [`Declaration::from_wire`]. Nothing was touched.
pub fn verify(envelope: &Bytes, keyring: &Keyring, me: &Membership, now: u64) -> Result<Candidate, Refusal> {
    let verified: Verified<wire::Declaration> = envelope::verify(&Unverified::new(envelope.clone()), &keyring.at(now))?;
    let addressed = (verified.fleet.as_str(), verified.host.as_str(), verified.uid.as_str());
    if addressed != (me.fleet.as_str(), me.host.as_str(), me.uid.as_str()) {
        return Err(Refusal::new(Code::WrongHost).with("have", &me.host));
    }
    if !keyring.scope_allows(Role::Declare, verified.signers(), &me.uid) {
        return Err(Refusal::new(Code::OutOfScope));
    }
    if verified.not_after.is_some_and(|end| now > end.saturating_add(CLOCK_SKEW)) {
        return Err(Refusal::new(Code::Expired).with("sequence", verified.sequence));
    }
    let declaration = Declaration::from_wire(&verified)?;
    if declaration.mode == Mode::Adopt {
        // Its promise is that nothing found is touched; what cannot be kept is not taken up.
        return Err(Refusal::new(Code::UnsupportedMode).with("got", declaration.mode));
    }
    Ok(Candidate { declaration, hash: verified.payload_hash(), envelope: envelope.clone() })
}
