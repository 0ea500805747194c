//! From a checked host spec and fleet file to what the compiler looks at, and which images that takes.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use replicator_protocol::ids::{FleetName, SecretName};

use super::distribution::Distribution;
use super::intent::{Gateway, HeldSecret, Image, Pod, Repository, Route, Wanted};
use crate::fleet::{Auth, FleetFile, Repo};
use crate::spec::names::{ImageRef, InvalidText};
use crate::spec::{HostSpec, Ingress};

/// Where the proxy of a host without ingress listens: for this machine only.
const UNEXPOSED: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 8480);

/// Why what is wanted cannot be told.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    /// The gateway's image and tag make no image.
    #[error("cannot name the gateway's image")]
    Gateway(#[source] InvalidText),
    /// An image nobody has pinned.
    #[error("the image `{0}` was not resolved")]
    Unresolved(ImageRef),
    /// There is no zone public names could lie in.
    #[error("the host has no zone for public names")]
    NoZone,
}

impl ResolveError {
    /// One line that names the next action.
    pub fn hint(&self) -> String {
        match self {
            Self::Gateway(_) => "correct `gateway.image` and `gateway.imageTag`".into(),
            Self::Unresolved(image) => format!("pin `{image}` by its digest"),
            Self::NoZone => "write one under `dns.zones`".into(),
        }
    }
}

fn gateway_image(spec: &HostSpec, distribution: &Distribution) -> Result<Option<ImageRef>, ResolveError> {
    let Some(gateway) = &spec.gateway else { return Ok(None) };
    match gateway.image_ref() {
        Some(image) => Ok(Some(image)),
        None => distribution.gateway(&gateway.image_tag).map(Some).map_err(ResolveError::Gateway),
    }
}

fn net_image<'i>(spec: &'i HostSpec, distribution: &'i Distribution) -> &'i ImageRef {
    spec.image.net_image.as_ref().unwrap_or(&distribution.net)
}

/// Every image a host of `spec` and `fleet` runs.
///
/// # Errors
///
/// [`ResolveError::Gateway`].
pub fn images(
    spec: &HostSpec,
    fleet: Option<&FleetFile>,
    distribution: &Distribution,
) -> Result<BTreeSet<ImageRef>, ResolveError> {
    let mut images = BTreeSet::from([distribution.proxy.clone()]);
    images.extend(gateway_image(spec, distribution)?);
    if let Some(fleet) = fleet {
        images.extend(fleet.enabled().map(|repo| repo.image.clone()));
        if !fleet.developers.is_empty() && fleet.enabled().next().is_some() {
            images.insert(net_image(spec, distribution).clone());
        }
    }
    Ok(images)
}

/// Brings everything together. `pinned` holds what each image of [`images`] was resolved to.
///
/// # Errors
///
/// [`ResolveError`].
pub fn wanted(
    fleet_name: &FleetName,
    spec: &HostSpec,
    fleet: Option<&FleetFile>,
    distribution: &Distribution,
    pinned: &BTreeMap<ImageRef, Image>,
    secrets: BTreeMap<SecretName, HeldSecret>,
) -> Result<Wanted, ResolveError> {
    let image = |image: &ImageRef| pinned.get(image).cloned().ok_or_else(|| ResolveError::Unresolved(image.clone()));
    let zone = fleet.map_or_else(|| spec.dns.zones.first(), |fleet| fleet.zone_among(&spec.dns.zones));
    let mut wanted = Wanted {
        fleet: fleet_name.clone(),
        host: spec.id.clone(),
        name_prefix: spec.name_prefix.to_string(),
        zone: zone.ok_or(ResolveError::NoZone)?.to_string(),
        listen: match spec.ingress {
            Ingress::None => (UNEXPOSED.0.into(), UNEXPOSED.1),
        },
        proxy_image: image(&distribution.proxy)?,
        gateway: None,
        pods: Vec::new(),
        secrets,
    };
    if let (Some(gateway), Some(named)) = (&spec.gateway, gateway_image(spec, distribution)?) {
        let used = gateway.credentials.iter();
        let used = used.filter(|one| one.is_needed() || wanted.secrets.contains_key(&one.secret));
        wanted.gateway = Some(Gateway {
            host: gateway.host.to_string(),
            image: image(&named)?,
            credentials: used.map(|one| (one.setting, one.secret.clone())).collect(),
        });
    }
    if let Some(fleet) = fleet {
        let net = net_image(spec, distribution);
        let repositories = fleet.enabled().map(|repo| Ok(repository(repo, image(&repo.image)?)));
        let repositories: Vec<Repository> = repositories.collect::<Result<_, ResolveError>>()?;
        if !repositories.is_empty() {
            for developer in &fleet.developers {
                let developer = developer.slug.to_string();
                wanted.pods.push(Pod { developer, net_image: image(net)?, repositories: repositories.clone() });
            }
        }
    }
    Ok(wanted)
}

fn repository(repo: &Repo, image: Image) -> Repository {
    let route = |port: &crate::fleet::Port| Route {
        port: port.port,
        public: port.public,
        signed_in: match port.auth {
            Auth::Gateway => true,
            Auth::None => false,
        },
    };
    let plain = repo.env.plain.iter().map(|(name, value)| (name.to_string(), value.clone()));
    Repository {
        repository: repo.repo.clone(),
        image,
        ports: repo.ports.iter().map(route).collect(),
        environment: plain.collect(),
        secrets: repo.env.secrets.clone(),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use replicator_protocol::ids::Generation;

    use super::*;
    use crate::fleet;
    use crate::spec::load::Examined;

    #[test]
    fn example_compiles_as_it_is_committed() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
        let (spec, file) = fleet::together::load_fleet(&root.join("clanker.yml")).unwrap();
        let own = Distribution::load(None).unwrap();
        let names = images(&spec.value, Some(&file.value), &own).unwrap();
        let image = Image { pinned: format!("sha256:{}", "a".repeat(64)), user: Some(super::super::User::default()) };
        let pinned: BTreeMap<_, _> = names.into_iter().map(|name| (name, image.clone())).collect();
        let held = HeldSecret { generation: Generation(1), length: 8 };
        let secrets = fleet::needs(&spec.value, &file.value).into_iter().map(|need| (need.secret, held)).collect();
        let name = FleetName::parse("demo").unwrap();
        let wanted = wanted(&name, &spec.value, Some(&file.value), &own, &pinned, secrets).unwrap();
        let compiled = super::super::compile(&wanted).unwrap();
        assert_eq!(compiled.places[0].host, "web-3000--ada.demo.localhost");
    }

    #[test]
    fn optional_credential_is_used_only_where_the_store_holds_it() {
        let text = "id: a\nnamePrefix: a\ncompute:\n  provider: existing-host\n  existingHost: { address: local }\n\
                    ingress: { provider: none }\ndns: { provider: manual, zones: [ a.localhost ] }\n\
                    secrets: { provider: replicator }\nstate: { provider: replicator, replicator: { backend: local } }\n\
                    gateway: { host: api.a.localhost, image: 'local:g', imageTag: '1' }\n";
        let Examined { value: Some(spec), .. } = crate::spec::examine(Path::new("a.yml"), text) else {
            panic!("no spec")
        };
        let own = Distribution::load(None).unwrap();
        let image = Image { pinned: format!("sha256:{}", "a".repeat(64)), user: None };
        let pinned: BTreeMap<_, _> =
            images(&spec, None, &own).unwrap().into_iter().map(|name| (name, image.clone())).collect();
        let name = FleetName::parse("demo").unwrap();
        let credentials = |held: &[&str]| {
            let held = held
                .iter()
                .map(|name| (SecretName::parse(name).unwrap(), HeldSecret { generation: Generation(1), length: 8 }));
            wanted(&name, &spec, None, &own, &pinned, held.collect()).unwrap().gateway.unwrap().credentials.len()
        };
        assert_eq!(credentials(&[]), 3, "the required ones, to be demanded");
        assert_eq!(credentials(&["gatewayConnectKey"]), 4);
    }
}
