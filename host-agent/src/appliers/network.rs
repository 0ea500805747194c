//! `network`: a bridge of the container runtime's, by name, acted on by id.

use std::net::Ipv4Addr;
use std::path::Path;

use replicator_protocol::wire::declaration::Network;
use replicator_protocol::wire::event::{Failure, Record};
use tokio::time::Instant;

use super::applier::{Applier, Done, Gone, Job, Tools, leave_behind, record};
use super::bounds;
use super::failure::{self, FailureCode, With as _, failure};
use crate::host::docker::{RuntimeError, SeenNetwork};
use crate::host::routes;
use crate::planner::Drift;

/// Bits of the network made around fixed addresses.
const PREFIX: u32 = 24;

/// Applies networks.
pub(super) struct Networks<'t> {
    pub(super) tools: &'t Tools,
    /// Addresses that containers of the declaration fix on it.
    pub(super) fixed: Vec<Ipv4Addr>,
}

impl Applier for Networks<'_> {
    type Declared = Network;

    async fn observe(&self, _declared: &Network, record: &Record, _full: bool) -> Result<Vec<Drift>, Failure> {
        let same_name = self.tools.docker.networks(&record.target).await.map_err(|error| failure::runtime(&error))?;
        let ours = same_name.iter().filter(|network| self.tools.is_ours(&network.labels)).count();
        Ok(match same_name.iter().any(|network| network.id == record.runtime_id) {
            false => vec![Drift::Word("gone")],
            // Nothing can be started on a network whose name another has as well.
            true if ours > 1 => vec![Drift::Word("altered")],
            true => Vec::new(),
        })
    }

    async fn change(&self, job: &Job<'_, Network>) -> Result<Done, Failure> {
        let name = &job.declared.name;
        let docker = &self.tools.docker;
        let failed = |error: crate::host::docker::RuntimeError| failure::runtime(&error);
        let (id, found) = match self.standing(job).await?.as_slice() {
            [] => {
                let subnet = subnet(&self.fixed)?;
                if let Some(subnet) = &subnet {
                    self.is_free(subnet)?;
                }
                let id = docker.create_network(name, &self.tools.labels(job.id), subnet).await.map_err(failed)?;
                (id, false)
            }
            [one] => (one.id.clone(), !self.tools.is_ours(&one.labels)),
            several => {
                let failure = failure(FailureCode::DuplicateNetwork).with("name", name);
                return Err(failure.with("networks", several.len()));
            }
        };
        let record = Record { runtime_id: id, found, ..record(job) };
        if !self.observe(job.declared, &record, true).await?.is_empty() {
            return Err(failure(FailureCode::ReadBack).with("network", name));
        }
        let note = leave_behind(self, job).await?;
        Ok(Done { note, ..Done::well(record) })
    }

    async fn remove(&self, record: &Record) -> Result<Gone, Failure> {
        let failed = |error: crate::host::docker::RuntimeError| failure::runtime(&error);
        if record.found {
            return Ok(Gone::Kept("it was here first".into()));
        }
        match self.tools.docker.on_network(&record.runtime_id).await.map_err(failed)? {
            None => Ok(Gone::Removed("it was gone already".into())),
            Some(names) if names.is_empty() => {
                self.tools.docker.remove_network(&record.runtime_id).await.map_err(failed)?;
                Ok(Gone::Removed(String::new()))
            }
            Some(names) => Ok(Gone::Kept(format!("still in use by {}", names.join(", ")))),
        }
    }
}

impl Networks<'_> {
    /// A network over a route of the machine would take that route's traffic.
    fn is_free(&self, subnet: &str) -> Result<(), Failure> {
        let routes =
            routes::all().map_err(|error| failure::file("read the routes from", Path::new("/proc"), &error))?;
        match self.fixed.first() {
            Some(address) if routes.iter().any(|route| route.overlaps(*address, PREFIX)) => {
                let taken = failure(FailureCode::SubnetTaken).with("subnet", subnet);
                Err(taken.with("problem", "a route of the host lies there"))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// The networks of this name. The runtime makes two of one name where it is asked twice, so what an agent
    /// that died had asked for is awaited first; and of several that are ours, only one is kept.
    async fn standing(&self, job: &Job<'_, Network>) -> Result<Vec<SeenNetwork>, Failure> {
        let failed = |error: RuntimeError| failure::runtime(&error);
        let docker = &self.tools.docker;
        let name = &job.declared.name;
        let mut standing = docker.networks(name).await.map_err(failed)?;
        let deadline = Instant::now() + bounds::UNDER_WAY;
        while job.begun && standing.is_empty() && Instant::now() < deadline {
            tokio::time::sleep(bounds::POLL).await;
            standing = docker.networks(name).await.map_err(failed)?;
        }
        if standing.len() < 2 || !standing.iter().all(|network| self.tools.is_ours(&network.labels)) {
            return Ok(standing);
        }
        let mut used = Vec::new();
        let mut spare = Vec::new();
        for network in standing {
            match docker.on_network(&network.id).await.map_err(failed)? {
                Some(names) if names.is_empty() => spare.push(network),
                Some(_) => used.push(network),
                None => {}
            }
        }
        let known = job.known.map(|known| known.runtime_id.as_str());
        spare.sort_by_key(|network| Some(network.id.as_str()) != known);
        let surplus = spare.split_off(usize::from(used.is_empty()).min(spare.len()));
        for network in surplus {
            docker.remove_network(&network.id).await.map_err(failed)?;
        }
        used.extend(spare);
        Ok(used)
    }
}

/// The /24 around the fixed addresses: the runtime takes a fixed address only in a subnet it was told.
fn subnet(fixed: &[Ipv4Addr]) -> Result<Option<String>, Failure> {
    let nets: std::collections::BTreeSet<[u8; 3]> = fixed
        .iter()
        .map(|address| {
            let [a, b, c, _] = address.octets();
            [a, b, c]
        })
        .collect();
    let mut nets = nets.into_iter();
    let (first, more) = (nets.next(), nets.next());
    match (first, more) {
        (None, _) => Ok(None),
        (Some(_), Some(_)) => Err(failure(FailureCode::SubnetTaken).with("problem", "addresses in two /24 networks")),
        (Some([a, b, c]), None) => Ok(Some(format!("{a}.{b}.{c}.0/{PREFIX}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_addresses_give_the_subnet_around_them() {
        let at = |text: &str| text.parse().unwrap();
        assert_eq!(subnet(&[]).unwrap(), None);
        assert_eq!(subnet(&[at("10.9.8.7"), at("10.9.8.9")]).unwrap(), Some("10.9.8.0/24".into()));
        assert_eq!(subnet(&[at("10.9.8.7"), at("10.9.7.9")]).unwrap_err().code, "subnet-taken");
    }
}
