//! `image`: images of the engine's own containers.

use crate::spec::names::ImageRef;

/// Images of the engine's own containers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Image {
    /// What a pod's `net` container runs, where it is not the distribution's own.
    pub net_image: Option<ImageRef>,
}
