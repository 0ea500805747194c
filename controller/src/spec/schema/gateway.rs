//! `gateway`: the coordination server, and the sign-in every public name is behind.

use replicator_protocol::ids::SecretName;

use crate::spec::names::{HostName, ImageRef, ImageRepository, ImageTag};

/// The coordination server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gateway {
    /// The name it answers.
    pub host: HostName,
    /// Where its image comes from, where it is not the distribution's own.
    pub image: Option<GatewayImage>,
    /// The release to run.
    pub image_tag: ImageTag,
    /// One for every row of [`CREDENTIALS`], in its order.
    pub credentials: Vec<GatewayCredential>,
}

/// Where the gateway's image comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GatewayImage {
    /// A registry.
    Registry(ImageRepository),
    /// The runtime of this machine: `local:NAME`.
    Local(ImageRepository),
}

impl Gateway {
    /// The image and its tag as one, where the spec names the image.
    pub fn image_ref(&self) -> Option<ImageRef> {
        let tag = self.image_tag.clone();
        self.image.clone().map(|image| match image {
            GatewayImage::Registry(repository) => ImageRef::Tagged { repository, tag },
            GatewayImage::Local(name) => ImageRef::Local { name, tag },
        })
    }
}

/// A credential of the gateway and the secret it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewayCredential {
    /// What it is.
    pub setting: &'static CredentialSetting,
    /// The name it resolves under.
    pub secret: SecretName,
    /// Whether the spec names it; one that is neither named nor required may be absent from the store.
    pub named: bool,
}

impl GatewayCredential {
    /// Whether the store must hold it.
    pub fn is_needed(&self) -> bool {
        self.named || self.setting.required
    }
}

/// A credential the gateway can be given: spec field, needed secret, file and variable all follow from its row.
#[derive(Debug, PartialEq, Eq)]
pub struct CredentialSetting {
    /// The field under `gateway`; a dot is nesting.
    pub field: &'static str,
    /// The secret's name where the spec gives none.
    pub default: &'static str,
    /// Whether the gateway cannot do without.
    pub required: bool,
    /// The file's name under `/run/secrets`.
    pub file: &'static str,
    /// The variable that names the file.
    pub variable: &'static str,
    /// What it is for, in words.
    pub purpose: &'static str,
}

/// Every credential the gateway can be given.
pub const CREDENTIALS: &[CredentialSetting] = &[
    CredentialSetting {
        field: "appFrom.appId",
        default: "gatewayAppId",
        required: true,
        file: "app-id",
        variable: "GATEWAY_APP_ID_FILE",
        purpose: "the id of the GitHub App the sign-in asks with",
    },
    CredentialSetting {
        field: "appFrom.privateKey",
        default: "gatewayAppPrivateKey",
        required: true,
        file: "app-key",
        variable: "GATEWAY_APP_PRIVATE_KEY_FILE",
        purpose: "the private key of that GitHub App",
    },
    CredentialSetting {
        field: "brokerSecretFrom",
        default: "gatewayBridgeSecret",
        required: true,
        file: "broker-secret",
        variable: "GATEWAY_BROKER_SECRET_FILE",
        purpose: "the key every pod's capability is made under",
    },
    CredentialSetting {
        field: "githubClientSecretFrom",
        default: "gatewayGithubClientSecret",
        required: false,
        file: "github-client-secret",
        variable: "GATEWAY_GITHUB_CLIENT_SECRET_FILE",
        purpose: "the redirect sign-in of the browser app",
    },
    CredentialSetting {
        field: "githubClientIdFrom",
        default: "gatewayGithubClientId",
        required: false,
        file: "github-client-id",
        variable: "GATEWAY_GITHUB_CLIENT_ID_FILE",
        purpose: "the device-flow sign-in",
    },
    CredentialSetting {
        field: "connectKeyFrom",
        default: "gatewayConnectKey",
        required: false,
        file: "connect-key",
        variable: "GATEWAY_CONNECT_KEY_FILE",
        purpose: "the key developers' connected credentials are encrypted under",
    },
];
