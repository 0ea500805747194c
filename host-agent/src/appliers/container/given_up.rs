//! Looking after what serves on in the place of one that is given up. From what it was made nobody knows any more, so
//! it is never made again: it is put right as it stands.

use replicator_protocol::wire::declaration::Container;
use replicator_protocol::wire::event::{Failure, Record};

use super::definition::endpoint;
use super::drift::limits;
use super::{Containers, own_grace, runtime};
use crate::appliers::applier::Done;
use crate::appliers::failure::{FailureCode, With as _, failure};
use crate::host::docker::Condition;

impl Containers<'_> {
    /// Puts the one right that serves in place of one that was `given_up`; what is declared is as failed as before.
    pub(in crate::appliers) async fn put_right(
        &self,
        declared: &Container,
        record: &Record,
        given_up: &Failure,
    ) -> Done {
        let failure = match self.as_it_was(declared, record).await {
            Ok(restored) => Failure { previous_restored: restored, ..given_up.clone() },
            Err(second) => Failure { previous_restored: false, ..given_up.clone() }.with("roll_back", second.code),
        };
        Done { failure: Some(failure), ..Done::well(record.clone()) }
    }

    /// Gives it back its name, its limits and its networks, and starts it again where it does not run, or holds a
    /// network that is gone. Says whether it runs then.
    async fn as_it_was(&self, declared: &Container, record: &Record) -> Result<bool, Failure> {
        let docker = &self.tools.docker;
        let seen = docker.container(&record.runtime_id).await.map_err(runtime)?;
        let seen = seen.ok_or_else(|| failure(FailureCode::ReadBack).with("container", "gone"))?;
        if seen.name != record.target {
            docker.rename(&seen.id, &record.target).await.map_err(runtime)?;
        }
        let unchanged = self.unchanged(declared, record);
        if unchanged.lost_limits(&seen) {
            docker.limit(&seen.id, limits(declared)).await.map_err(runtime)?;
        }
        for network in unchanged.strange_networks(&seen) {
            docker.leave(&seen.id, &network).await.map_err(runtime)?;
        }
        for network in unchanged.left_networks(&seen).into_iter().filter_map(|at| declared.networks.get(at)) {
            docker.join(&seen.id, &network.name, endpoint(network)).await.map_err(runtime)?;
        }
        let cut_off = self.lost_network(declared, record, &seen).await?.is_some();
        if seen.condition == Condition::Stopped || cut_off {
            docker.stop(&seen.id, own_grace(&seen)).await.map_err(runtime)?;
            docker.start(&seen.id).await.map_err(runtime)?;
        }
        self.await_running(&seen.id).await
    }
}
