//! What all events so far fold to, kept in memory beside the log: nobody has to read the log to know where he is.

use std::sync::Arc;

use replicator_protocol::wire::event::Event;
use replicator_protocol::wire::event::event::Body;

use super::projections::resources::Resources;
use super::projections::{Applies, Fold, Status};

/// The folded answers; copied only where somebody still holds what was known before.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct State {
    /// What is applied, and what was begun.
    pub resources: Arc<Resources>,
    /// What this host was told, and how it stands.
    pub status: Arc<Status>,
    /// The last applies.
    pub applies: Arc<Applies>,
    /// The last entry whose file was dropped; 0 where none was.
    pub dropped: u64,
}

impl Fold for State {
    fn fold(&mut self, event: &Event) {
        Arc::make_mut(&mut self.resources).fold(event);
        Arc::make_mut(&mut self.status).fold(event);
        if let Some(Body::ApplyReported(_)) = &event.body {
            Arc::make_mut(&mut self.applies).fold(event);
        }
        if let Some(Body::LedgerDropped(dropped)) = &event.body {
            self.dropped = dropped.last;
        }
    }
}
