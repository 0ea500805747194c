//! `image`: images of the engine's own containers.

use crate::spec::finding::Findings;
use crate::spec::names::ImageRef;
use crate::spec::read::{Field, Key, key, later};

/// Images of the engine's own containers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Image {
    /// What a pod's `net` container runs, where it is not the distribution's own.
    pub net_image: Option<ImageRef>,
}

const KEYS: &[Key] = &[
    key("netImage"),
    later("pull", "remove it: this version pulls without credentials, or uses images the machine holds"),
];

pub(super) fn read(field: &Field<'_>, findings: &mut Findings) -> Option<Image> {
    let block = field.block(KEYS, findings)?;
    let net_image = match block.get("netImage") {
        Some(field) => Some(field.parsed(ImageRef::parse, findings)?),
        None => None,
    };
    Some(Image { net_image })
}
