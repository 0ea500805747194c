//! Networks, by name, acted on by id.

use std::collections::{BTreeMap, HashMap};

use bollard::models::{Ipam, IpamConfig, NetworkCreateRequest};
use bollard::query_parameters::{InspectNetworkOptions, ListNetworksOptionsBuilder};

use super::{CHANGE, Docker, LOOK, RuntimeError, found};
use crate::host::point::Effect;

/// A network, seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenNetwork {
    /// The runtime's id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its subnets.
    pub subnets: Vec<String>,
}

impl Docker {
    /// Every network of exactly this name: the runtime allows several.
    ///
    /// # Errors
    ///
    /// [`RuntimeError`].
    pub async fn networks(&self, name: &str) -> Result<Vec<SeenNetwork>, RuntimeError> {
        let mut all = self.networks_where("name", name.to_owned()).await?;
        // The filter matches parts of names.
        all.retain(|network| network.name == name);
        Ok(all)
    }

    /// Every network labelled with this host.
    ///
    /// # Errors
    ///
    /// [`RuntimeError`].
    pub async fn networks_of(&self, host: &str) -> Result<Vec<SeenNetwork>, RuntimeError> {
        self.networks_where("label", format!("replicator.host={host}")).await
    }

    async fn networks_where(&self, filter: &str, is: String) -> Result<Vec<SeenNetwork>, RuntimeError> {
        let filters = HashMap::from([(filter, vec![is])]);
        let options = ListNetworksOptionsBuilder::default().filters(&filters).build();
        let all = self.bounded("network.list", LOOK, self.client()?.list_networks(Some(options))).await?;
        Ok(all
            .into_iter()
            .map(|network| SeenNetwork {
                id: network.id.unwrap_or_default(),
                name: network.name.unwrap_or_default(),
                labels: network.labels.unwrap_or_default().into_iter().collect(),
                subnets: network
                    .ipam
                    .and_then(|ipam| ipam.config)
                    .unwrap_or_default()
                    .into_iter()
                    .filter_map(|config| config.subnet)
                    .collect(),
            })
            .collect())
    }

    /// Names of the containers on a network; `None` where it is gone.
    ///
    /// # Errors
    ///
    /// [`RuntimeError`].
    pub async fn on_network(&self, id: &str) -> Result<Option<Vec<String>>, RuntimeError> {
        let answer = self.client()?.inspect_network(id, None::<InspectNetworkOptions>);
        let seen = found(self.bounded("network.inspect", LOOK, answer).await)?;
        Ok(seen.map(|network| {
            let containers = network.containers.unwrap_or_default();
            let mut names: Vec<_> = containers.into_iter().map(|(id, endpoint)| endpoint.name.unwrap_or(id)).collect();
            names.sort();
            names
        }))
    }

    /// Makes a bridge network and returns its id. `subnet` is given only where an address on it is fixed.
    ///
    /// # Errors
    ///
    /// [`RuntimeError`].
    pub async fn create_network(
        &self,
        name: &str,
        labels: &BTreeMap<String, String>,
        subnet: Option<String>,
    ) -> Result<String, RuntimeError> {
        let config = subnet.map(|subnet| vec![IpamConfig { subnet: Some(subnet), ..IpamConfig::default() }]);
        let request = NetworkCreateRequest {
            name: name.to_owned(),
            labels: Some(labels.clone().into_iter().collect()),
            ipam: config.map(|config| Ipam { config: Some(config), ..Ipam::default() }),
            ..NetworkCreateRequest::default()
        };
        let made = self.effect(Effect::NetworkCreate, CHANGE, self.client()?.create_network(request)).await?;
        Ok(made.id)
    }

    /// Removes a network; one that is gone already is no error.
    ///
    /// # Errors
    ///
    /// [`RuntimeError::Refused`] where something is still on it.
    pub async fn remove_network(&self, id: &str) -> Result<(), RuntimeError> {
        found(self.effect(Effect::NetworkRemove, CHANGE, self.client()?.remove_network(id)).await).map(drop)
    }
}
