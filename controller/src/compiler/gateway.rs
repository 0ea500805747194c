//! The `gateway` module: the sign-in, a container of the host, there only while the spec has the block.

use std::collections::BTreeMap;

use replicator_protocol::ids::InvalidId;
use replicator_protocol::resources::Resource;
use replicator_protocol::wire::declaration::{
    Capabilities, Container, Mount, NetworkAttachment, Rollover, mount, resource,
};

use super::base;
use super::compile::{mount_secrets, pull, resource};
use super::intent::{Gateway, Place, Wanted};
use crate::secrets::Need;

/// What the proxy reaches it by.
pub(super) const ALIAS: &str = "gateway";
/// The port it listens on.
pub(super) const PORT: u16 = 8080;

/// One credential of the gateway: declared once, here; spec fields, needed secrets and the container's
/// environment follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Credential {
    /// The field of the spec that names the secret.
    pub field: &'static str,
    /// The secret where the field is unset.
    pub default: &'static str,
    /// The variable that names the mounted file.
    pub variable: &'static str,
    /// Whether the gateway cannot run without it. An optional one is mounted where the store holds it.
    pub required: bool,
    /// What it is for, in words.
    pub purpose: &'static str,
}

/// Every credential of the gateway.
pub const CREDENTIALS: &[Credential] = &[
    Credential {
        field: "gateway.appFrom.appId",
        default: "gatewayAppId",
        variable: "GATEWAY_APP_ID_FILE",
        required: true,
        purpose: "the gateway's GitHub App",
    },
    Credential {
        field: "gateway.appFrom.privateKey",
        default: "gatewayAppPrivateKey",
        variable: "GATEWAY_APP_PRIVATE_KEY_FILE",
        required: true,
        purpose: "the gateway's GitHub App",
    },
    Credential {
        field: "gateway.brokerSecretFrom",
        default: "gatewayBridgeSecret",
        variable: "GATEWAY_BROKER_SECRET_FILE",
        required: true,
        purpose: "the key pod capabilities are made under",
    },
    Credential {
        field: "gateway.githubClientSecretFrom",
        default: "gatewayGithubClientSecret",
        variable: "GATEWAY_GITHUB_CLIENT_SECRET_FILE",
        required: false,
        purpose: "sign-in by redirect",
    },
    Credential {
        field: "gateway.githubClientIdFrom",
        default: "gatewayGithubClientId",
        variable: "GATEWAY_GITHUB_CLIENT_ID_FILE",
        required: false,
        purpose: "sign-in from a device",
    },
    Credential {
        field: "gateway.connectKeyFrom",
        default: "gatewayConnectKey",
        variable: "GATEWAY_CONNECT_KEY_FILE",
        required: false,
        purpose: "the key connected credentials are encrypted under",
    },
];

pub(super) fn needs(gateway: &Gateway) -> Vec<Need> {
    let known = |field: &str| CREDENTIALS.iter().find(|credential| credential.field == field);
    let named = gateway.credentials.iter().filter_map(|(field, secret)| {
        let reason = format!("{}, `{field}`", known(field)?.purpose);
        Some(Need { secret: secret.clone(), reason })
    });
    named.collect()
}

pub(super) fn place(gateway: &Gateway) -> Place {
    Place { host: gateway.host.clone(), alias: ALIAS.into(), port: PORT, signed_in: false, route: None }
}

pub(super) fn compile(wanted: &Wanted, gateway: &Gateway) -> Result<Vec<Resource>, InvalidId> {
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
    for (field, secret) in &gateway.credentials {
        let credential = CREDENTIALS.iter().find(|credential| credential.field == *field);
        if let Some(credential) = credential {
            mount_secrets(wanted, &mut container, &[(credential.variable.to_owned(), secret.clone())]);
        }
    }
    pull(wanted, &mut container, &gateway.image);
    Ok(vec![resource("gateway", "server", resource::Kind::Container(container))?])
}
