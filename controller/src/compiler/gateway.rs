//! The `gateway` module: the sign-in, a container of the host, there only while the spec has the block.

use std::collections::BTreeMap;

use replicator_protocol::ids::SecretName;
use replicator_protocol::resources::Resource;
use replicator_protocol::wire::declaration::{
    Capabilities, Container, Mount, NetworkAttachment, Rollover, mount, resource,
};

use super::base;
use super::error::{CompileError, named};
use super::files::{self, SecretFile};
use super::intent::{Gateway, Place, Wanted};
use crate::secrets::Need;
use crate::spec::schema::gateway::CredentialSetting;

/// What the proxy reaches it by.
pub(super) const ALIAS: &str = "gateway";
/// The port it listens on.
pub(super) const PORT: u16 = 8080;

pub(super) fn needs(gateway: &Gateway) -> Vec<Need> {
    let need = |(setting, secret): &(&CredentialSetting, SecretName)| Need {
        secret: secret.clone(),
        reason: format!("`gateway.{}`: {}", setting.field, setting.purpose),
    };
    gateway.credentials.iter().map(need).collect()
}

pub(super) fn place(gateway: &Gateway) -> Place {
    Place { host: gateway.host.clone(), alias: ALIAS.into(), port: PORT, signed_in: false, route: None }
}

pub(super) fn compile(wanted: &Wanted, gateway: &Gateway) -> Result<Vec<Resource>, CompileError> {
    let name = format!("{}_gateway", wanted.name_prefix);
    let data =
        Mount { source: Some(mount::Source::Volume(format!("{name}_data"))), target: "/data".into(), read_only: false };
    let mut container = Container {
        name,
        image: gateway.image.pinned.clone(),
        environment: BTreeMap::from([("GATEWAY_HOST".to_owned(), gateway.host.clone())]),
        mounts: vec![data],
        networks: vec![NetworkAttachment {
            name: base::network(wanted),
            aliases: vec![ALIAS.into()],
            ip: String::new(),
        }],
        capabilities: Some(Capabilities { add: vec![], drop: vec!["ALL".into()] }),
        rollover: Rollover::StopFirst.into(),
        ..Container::default()
    };
    let file = |(setting, secret): &(&CredentialSetting, SecretName)| SecretFile {
        name: setting.file.into(),
        mounted: setting.file.into(),
        variable: setting.variable.into(),
        secret: secret.clone(),
    };
    let credentials: Vec<_> = gateway.credentials.iter().map(file).collect();
    let mut resources = files::mount(wanted, ("gateway", "server"), &mut container, &gateway.image, &credentials)?;
    resources.push(named("gateway", "server", resource::Kind::Container(container))?);
    Ok(resources)
}
