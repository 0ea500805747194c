//! Fills the ciphertexts into a compiled declaration: each secret sealed to one host, for the one place it
//! stands in.

use std::collections::BTreeMap;

use bytes::Bytes;
use replicator_protocol::declaration::Declaration;
use replicator_protocol::ids::{Generation, ResourceId, SecretName};
use replicator_protocol::refusal::{Code, Refusal};
use replicator_protocol::resources::Resource;
use replicator_protocol::sealed_box::{self, Consumer, Recipient, SealingPublicKey};
use replicator_protocol::secret::SecretBytes;
use replicator_protocol::wire::declaration::{Sealed, file, resource};

/// Values by name, with the generation they were read at.
pub type Values = BTreeMap<SecretName, (Generation, SecretBytes)>;

/// A place where a secret will stand: its name and generation, and as many bytes as the ciphertext will have.
pub(super) fn placeholder(secret: &SecretName, generation: Generation, length: usize) -> Sealed {
    // Too long a value is refused where it is sealed; until then it is as long as the longest.
    let ciphertext = sealed_box::ciphertext_len(length).unwrap_or(length);
    Sealed {
        secret: secret.to_string(),
        generation: generation.0,
        key_id: Bytes::from_static(&[0; 32]),
        encapsulated_key: Bytes::from_static(&[0; 32]),
        ciphertext: vec![0; ciphertext].into(),
    }
}

/// Every secret of `resource`, with the field it stands in.
pub(super) fn places(resource: &mut Resource) -> Vec<(String, &mut Sealed)> {
    let keyed = |(name, sealed)| (format!("secrets/{name}"), sealed);
    match &mut resource.body {
        resource::Kind::File(file) => {
            let body = match &mut file.body {
                Some(file::Body::Sealed(sealed)) => Some(("sealed".to_owned(), sealed)),
                Some(file::Body::Content(_) | file::Body::Bytes(_)) | None => None,
            };
            body.into_iter().chain(file.secrets.iter_mut().map(keyed)).collect()
        }
        resource::Kind::Container(container) => {
            container.pull.iter_mut().map(|sealed| ("pull".to_owned(), sealed)).collect()
        }
        resource::Kind::Directory(_) | resource::Kind::Network(_) => Vec::new(),
    }
}

/// Seals every secret of `declaration` to `key`.
///
/// # Errors
///
/// [`Code::CannotOpen`] where `values` lacks a secret at the generation it was compiled for; what sealing itself
/// refuses.
pub fn seal(mut declaration: Declaration, key: &SealingPublicKey, values: &Values) -> Result<Declaration, Refusal> {
    let recipient = Recipient { fleet: declaration.fleet.clone(), host: declaration.uid.clone() };
    for resource in &mut declaration.resources {
        let id = resource.id.clone();
        for (field, place) in places(resource) {
            *place = one(&recipient, key, values, &id, field, place)?;
        }
    }
    Ok(declaration)
}

fn one(
    recipient: &Recipient,
    key: &SealingPublicKey,
    values: &Values,
    resource: &ResourceId,
    field: String,
    place: &Sealed,
) -> Result<Sealed, Refusal> {
    let lacking = || Refusal::new(Code::CannotOpen).with("resource", resource).with("secret", &place.secret);
    let secret = SecretName::parse(&place.secret).map_err(|_| lacking())?;
    let (generation, value) = values.get(&secret).ok_or_else(lacking)?;
    if generation.0 != place.generation {
        return Err(lacking().with("got", generation.0).with("have", place.generation));
    }
    let consumer = Consumer { resource: resource.clone(), field };
    sealed_box::seal(key, recipient, (&secret, *generation), &consumer, value)
}
