//! Secrets sealed to one host and one place.
//!
//! HPKE (RFC 9180) base mode, single shot: DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, ChaCha20-Poly1305, with a
//! fresh encapsulation for every secret of every host. The host rebuilds the associated data from its own
//! identity and from the place where the ciphertext stands, so that a ciphertext pasted anywhere else does
//! not open. Lengths are hidden behind a few padding steps.

use bytes::Bytes;
use hpke::aead::ChaCha20Poly1305;
use hpke::kdf::HkdfSha256;
use hpke::kem::X25519HkdfSha256;
use hpke::{Deserializable as _, Kem as _, OpModeR, OpModeS, Serializable as _};
use zeroize::Zeroizing;

use crate::ids::{FleetName, Generation, HostUid, KeyId, ResourceId, SecretName};
use crate::refusal::{Code, Refusal};
use crate::secret::SecretBytes;
use crate::wire::declaration::Sealed;

type PrivateKey = <X25519HkdfSha256 as hpke::Kem>::PrivateKey;
type PublicKey = <X25519HkdfSha256 as hpke::Kem>::PublicKey;
type EncappedKey = <X25519HkdfSha256 as hpke::Kem>::EncappedKey;

/// Separates these ciphertexts from every other use of the same key.
const LABEL: &str = "replicator sealed secret v1";
/// Sizes a plaintext is padded to, in bytes, its length prefix included.
const PADDING: [usize; 5] = [256, 1024, 4 * 1024, 16 * 1024, 64 * 1024];
/// Bytes of the big-endian length before the plaintext.
const LENGTH_PREFIX: usize = 4;
/// Bytes of the authentication tag behind a ciphertext (RFC 8439).
const TAG: usize = 16;

/// Where a secret is used: part of what the ciphertext is bound to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Consumer {
    /// The resource that holds the ciphertext.
    pub resource: ResourceId,
    /// The field of that resource, with the key where the field is a map: `sealed`, `secrets/NAME`, `pull`.
    pub field: String,
}

/// A host's identity as far as sealing goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recipient {
    /// The fleet.
    pub fleet: FleetName,
    /// The host.
    pub host: HostUid,
}

/// The public half of a host's sealing key.
#[derive(Clone)]
pub struct SealingPublicKey(PublicKey);

impl SealingPublicKey {
    /// Reads the 32 bytes of an X25519 public key.
    ///
    /// # Errors
    ///
    /// [`Code::WeakKey`] where they are none, or a point of low order.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Refusal> {
        let weak = || Refusal::new(Code::WeakKey);
        let array = <[u8; 32]>::try_from(bytes).map_err(|_| weak())?;
        // Low-order points give an all-zero shared secret with every scalar (RFC 7748, section 6.1).
        let probe = x25519_dalek::StaticSecret::from([0x40; 32]);
        if !probe.diffie_hellman(&x25519_dalek::PublicKey::from(array)).was_contributory() {
            return Err(weak());
        }
        PublicKey::from_bytes(bytes).map(Self).map_err(|_| weak())
    }

    /// The 32 bytes.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 32] {
        self.0.to_bytes().into()
    }

    /// The SHA-256 of the key.
    #[must_use]
    pub fn id(&self) -> KeyId {
        KeyId::of(&self.to_bytes())
    }
}

/// The half that opens. It has no `Debug` and never leaves the host.
pub struct SealingSecretKey {
    secret: PrivateKey,
    public: SealingPublicKey,
}

impl SealingSecretKey {
    /// Derives the pair from 32 bytes of key material (RFC 9180, section 7.1.3).
    #[must_use]
    pub fn derive(key_material: &[u8; 32]) -> Self {
        let (secret, public) = X25519HkdfSha256::derive_keypair(key_material);
        Self { secret, public: SealingPublicKey(public) }
    }

    /// The public half.
    #[must_use]
    pub fn public(&self) -> &SealingPublicKey {
        &self.public
    }

    /// Opens what was sealed to this key for this recipient and this place.
    ///
    /// # Errors
    ///
    /// [`Code::CannotOpen`]: another key, host, fleet, secret name, generation or place, or a changed byte.
    pub fn open(&self, recipient: &Recipient, consumer: &Consumer, sealed: &Sealed) -> Result<SecretBytes, Refusal> {
        let refused = || Refusal::new(Code::CannotOpen).with("resource", &consumer.resource);
        if sealed.key_id != self.public.id().0.as_slice() {
            return Err(refused());
        }
        let secret = SecretName::parse(&sealed.secret).map_err(|_| refused())?;
        let encapped = EncappedKey::from_bytes(&sealed.encapsulated_key).map_err(|_| refused())?;
        let aad = associated_data(recipient, &self.public.id(), &secret, Generation(sealed.generation), consumer);
        let padded = hpke::single_shot_open::<ChaCha20Poly1305, HkdfSha256, X25519HkdfSha256>(
            &OpModeR::Base,
            &self.secret,
            &encapped,
            &info(&recipient.fleet),
            &sealed.ciphertext,
            &aad,
        )
        .map(Zeroizing::new)
        .map_err(|_| refused())?;
        unpad(&padded).ok_or_else(refused)
    }
}

/// Seals `value`, the `generation`th of `secret`, to `key` for one place on one host.
///
/// Two sealings of one value differ in every byte that could tell them equal.
///
/// # Errors
///
/// [`Code::SecretTooLarge`] above 64 KiB less the length prefix; [`Code::WeakKey`] where the key takes no
/// part in the agreement.
pub fn seal(
    key: &SealingPublicKey,
    recipient: &Recipient,
    (secret, generation): (&SecretName, Generation),
    consumer: &Consumer,
    value: &SecretBytes,
) -> Result<Sealed, Refusal> {
    let padded = pad(value)?;
    let aad = associated_data(recipient, &key.id(), secret, generation, consumer);
    let (encapped, ciphertext) = hpke::single_shot_seal::<ChaCha20Poly1305, HkdfSha256, X25519HkdfSha256>(
        &OpModeS::Base,
        &key.0,
        &info(&recipient.fleet),
        &padded,
        &aad,
    )
    .map_err(|_| Refusal::new(Code::WeakKey))?;
    Ok(Sealed {
        secret: secret.to_string(),
        generation: generation.0,
        key_id: Bytes::copy_from_slice(&key.id().0),
        encapsulated_key: Bytes::copy_from_slice(&encapped.to_bytes()),
        ciphertext: ciphertext.into(),
    })
}

/// How long the ciphertext of a value of `length` bytes is: the padding step it falls in, and the tag.
///
/// # Errors
///
/// [`Code::SecretTooLarge`].
pub fn ciphertext_len(length: usize) -> Result<usize, Refusal> {
    Ok(step(length)? + TAG)
}

/// The padding step a value of `length` bytes falls in.
fn step(length: usize) -> Result<usize, Refusal> {
    let largest = PADDING[PADDING.len() - 1] - LENGTH_PREFIX;
    let too_large = || Refusal::new(Code::SecretTooLarge).with("got", length).with("have", largest);
    PADDING.into_iter().find(|size| length + LENGTH_PREFIX <= *size).ok_or_else(too_large)
}

fn info(fleet: &FleetName) -> Vec<u8> {
    let mut out = Vec::new();
    push(&mut out, LABEL.as_bytes());
    push(&mut out, fleet.as_str().as_bytes());
    out
}

fn associated_data(
    recipient: &Recipient,
    key: &KeyId,
    secret: &SecretName,
    generation: Generation,
    consumer: &Consumer,
) -> Vec<u8> {
    let mut out = Vec::new();
    push(&mut out, recipient.fleet.as_str().as_bytes());
    push(&mut out, recipient.host.as_str().as_bytes());
    push(&mut out, &key.0);
    push(&mut out, secret.as_str().as_bytes());
    push(&mut out, &generation.0.to_be_bytes());
    push(&mut out, consumer.resource.to_string().as_bytes());
    push(&mut out, consumer.field.as_bytes());
    out
}

/// Appends `part` behind its length, so that no two lists of parts give the same bytes.
pub(crate) fn push(out: &mut Vec<u8>, part: &[u8]) {
    out.extend_from_slice(&(part.len() as u64).to_be_bytes());
    out.extend_from_slice(part);
}

fn pad(value: &SecretBytes) -> Result<Zeroizing<Vec<u8>>, Refusal> {
    let value = value.expose();
    let size = step(value.len())?;
    let length = u32::try_from(value.len()).map_err(|_| Refusal::new(Code::SecretTooLarge))?;
    let mut out = Zeroizing::new(Vec::with_capacity(size));
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(value);
    out.resize(size, 0);
    Ok(out)
}

fn unpad(padded: &[u8]) -> Option<SecretBytes> {
    let (length, rest) = padded.split_first_chunk::<LENGTH_PREFIX>()?;
    let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
    let (value, padding) = rest.split_at_checked(length)?;
    (PADDING.contains(&padded.len()) && padding.iter().all(|byte| *byte == 0)).then(|| SecretBytes::new(value.to_vec()))
}

/// Encrypts a short `message` to `key` under its own `info`: for a conversation, not for a declared place.
pub(crate) fn wrap(
    key: &SealingPublicKey,
    info: &[u8],
    aad: &[u8],
    message: &[u8],
) -> Result<([u8; 32], Vec<u8>), Refusal> {
    let (encapped, ciphertext) = hpke::single_shot_seal::<ChaCha20Poly1305, HkdfSha256, X25519HkdfSha256>(
        &OpModeS::Base,
        &key.0,
        info,
        message,
        aad,
    )
    .map_err(|_| Refusal::new(Code::WeakKey))?;
    Ok((encapped.to_bytes().into(), ciphertext))
}

/// Decrypts what [`wrap`] made with the same `info` and `aad`.
pub(crate) fn unwrap(
    key: &SealingSecretKey,
    info: &[u8],
    aad: &[u8],
    (encapped, ciphertext): (&[u8], &[u8]),
) -> Result<Zeroizing<Vec<u8>>, Refusal> {
    let refused = || Refusal::new(Code::CannotOpen);
    let encapped = EncappedKey::from_bytes(encapped).map_err(|_| refused())?;
    hpke::single_shot_open::<ChaCha20Poly1305, HkdfSha256, X25519HkdfSha256>(
        &OpModeR::Base,
        &key.secret,
        &encapped,
        info,
        ciphertext,
        aad,
    )
    .map(Zeroizing::new)
    .map_err(|_| refused())
}

#[cfg(test)]
mod tests;
