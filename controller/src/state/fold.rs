//! How the events of a log become a state.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::event::Entry;

/// What the events of a log add up to: one total function.
pub trait Fold: Default {
    /// What can happen.
    type Event: Serialize + DeserializeOwned;

    /// What happened, in words for whoever lost a race against it.
    fn says(event: &Self::Event) -> String;

    /// The state after `entry`.
    ///
    /// # Errors
    ///
    /// [`Illegal`] where it cannot follow.
    fn after(self, entry: &Entry<Self::Event>) -> Result<Self, Illegal>;
}

/// An event that cannot follow what is known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{event}` cannot follow: {because}")]
pub struct Illegal {
    /// What was to happen.
    pub event: String,
    /// Why it cannot.
    pub because: String,
}
