//! What a host can apply, as it said itself: nothing else is declared to it.

use std::collections::BTreeSet;

use replicator_protocol::ids::{HostId, HostUid};
use replicator_protocol::resources::Resource;
use replicator_protocol::wire::enrolment;

use super::BootstrapError;
use crate::home::FleetFolder;
use crate::keys::{Keyrings, certificates};
use crate::projections::fleet_view::SILENT_AFTER;
use crate::serve::Store;
use crate::state::{self, HostState};

/// The words of kinds that a host can apply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Abilities(BTreeSet<String>);

impl Abilities {
    /// What the host `uid` said in its last heartbeat, as the collector keeps it in `store`. `None` where it has not been
    /// heard lately at `now`, in milliseconds since the Unix epoch: what it lacked may be there by now, and it refuses
    /// by itself what it cannot apply.
    #[must_use]
    pub fn heard(folder: &FleetFolder, store: &Store, uid: &HostUid, now: u64) -> Option<Self> {
        let (_, at, envelope) = store.heartbeats().ok()?.into_iter().find(|(host, ..)| host == uid)?;
        let certified = certificates::load(folder, uid, &Keyrings::load(folder).ok()?.current).ok()??;
        let beat = certified.heartbeat(envelope).ok()?;
        (now.saturating_sub(at) < SILENT_AFTER).then(|| Self(beat.kinds.iter().cloned().collect()))
    }

    /// What a host says when it introduces itself.
    #[must_use]
    pub fn introduced(said: &enrolment::Abilities) -> Self {
        Self(said.kinds.iter().cloned().collect())
    }

    /// Demands that the host of `state`, called `host`, can apply all of `resources` by what it said lately, as
    /// [`Abilities::heard`]; without a store nothing is known of it.
    ///
    /// # Errors
    ///
    /// As [`Abilities::demand`].
    pub fn demand_of(
        state: &HostState,
        host: &HostId,
        (folder, store): (&FleetFolder, Option<&Store>),
        resources: &[Resource],
    ) -> Result<(), BootstrapError> {
        let uid = state.identity.as_ref().map(|(_, uid)| uid);
        let heard = uid.zip(store).and_then(|(uid, store)| Self::heard(folder, store, uid, state::now()));
        heard.map_or(Ok(()), |abilities| abilities.demand(host, resources))
    }

    /// Demands that `host` can apply all of `resources`.
    ///
    /// # Errors
    ///
    /// [`BootstrapError::CannotApply`], with every kind that it cannot.
    pub fn demand(&self, host: &HostId, resources: &[Resource]) -> Result<(), BootstrapError> {
        let lacking = resources.iter().filter(|resource| !self.0.contains(resource.kind().as_str()));
        let mut kinds: Vec<_> = lacking.clone().map(|resource| resource.kind().as_str()).collect();
        kinds.sort_unstable();
        kinds.dedup();
        match lacking.map(|resource| resource.id.clone()).next() {
            Some(first) => Err(BootstrapError::CannotApply { host: host.clone(), kinds, first }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
