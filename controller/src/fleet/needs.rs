//! Which secrets the two files name, and what each is for.

use super::schema::FleetFile;
use crate::secrets::Need;
use crate::spec::schema::HostSpec;

/// What the gateway of `host` and the enabled repositories of `fleet` need.
pub fn needs(host: &HostSpec, fleet: &FleetFile) -> Vec<Need> {
    let gateway = host.gateway.iter().flat_map(|gateway| gateway.credentials.iter());
    let gateway = gateway.filter(|credential| credential.is_needed()).map(|credential| Need {
        secret: credential.secret.clone(),
        reason: format!("gateway: {}", credential.setting.purpose),
    });
    let repos = fleet.enabled().flat_map(|repo| {
        let need = move |secret| Need { secret, reason: format!("the environment of `{}`", repo.repo) };
        repo.env.secrets.iter().cloned().map(need)
    });
    gateway.chain(repos).collect()
}
