//! `gateway`: the coordination server, and the sign-in every public name is behind.

use replicator_protocol::ids::SecretName;

use crate::spec::finding::{Code, Findings};
use crate::spec::names::{HostName, ImageRef, ImageRepository, ImageTag, InvalidText};
use crate::spec::read::{Block, Field, Key, key, later, later_word, word};

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

const DEFAULT_ONLY: &str = "remove it: this version runs the gateway with its default";
const KEYS: &[Key] = &[
    key("host"),
    key("image"),
    key("imageTag"),
    key("appOrigin"),
    key("app"),
    later("githubOrg", "remove it: this version's sign-in asks for push access only"),
    key("admit"),
    later("tokenTtlDays", DEFAULT_ONLY),
    later("accessRecheckSeconds", DEFAULT_ONLY),
    later("brokerTokenTtlDays", DEFAULT_ONLY),
    key("appFrom"),
    key("brokerSecretFrom"),
    key("githubClientSecretFrom"),
    key("githubClientIdFrom"),
    key("connectKeyFrom"),
];
const APP: &[Key] = &[key("serve")];
const APP_FROM: &[Key] = &[key("appId"), key("privateKey")];

pub(super) fn read(field: &Field<'_>, findings: &mut Findings) -> Option<Gateway> {
    let block = field.block(KEYS, findings)?;
    let host = block.require("host", "api.acme.localhost", findings);
    let host = host.and_then(|field| field.parsed(HostName::parse, findings));
    let image_tag = block.require("imageTag", "\"1.0\"", findings);
    let image_tag = image_tag.and_then(|field| field.parsed(ImageTag::parse, findings));
    let image = block.get("image").map(|field| field.parsed(image, findings));
    if let Some(field) = block.get("appOrigin") {
        field.text(findings);
        field.unused("any more", findings);
    }
    if let Some(app) = block.get("app").and_then(|field| field.block(APP, findings))
        && let Some(field) = app.get("serve")
    {
        field.choice(&[word("external"), later_word("host")], findings);
    }
    if let Some(field) = block.get("admit") {
        admit(&field, findings);
    }
    let credentials = credentials(&block, findings);
    let image = image.map_or(Some(None), |read| read.map(Some))?;
    Some(Gateway { host: host?, image, image_tag: image_tag?, credentials: credentials? })
}

fn image(text: &str) -> Result<GatewayImage, InvalidText> {
    match text.strip_prefix("local:") {
        Some(name) => ImageRepository::parse(name).map(GatewayImage::Local),
        None => ImageRepository::parse(text).map(GatewayImage::Registry),
    }
}

fn admit(field: &Field<'_>, findings: &mut Findings) {
    if field.is_mapping() {
        let says = "narrows `gateway.admit`, which is not offered by this version";
        field.fault(Code::NotOffered, says, "write `admit: any`, or leave it out", findings);
    } else {
        field.choice(&[word("any"), later_word("all")], findings);
    }
}

fn credentials(block: &Block<'_>, findings: &mut Findings) -> Option<Vec<GatewayCredential>> {
    let app = block.get("appFrom").map(|field| field.block(APP_FROM, findings));
    let read = |setting: &'static CredentialSetting| {
        let field = match setting.field.strip_prefix("appFrom.") {
            Some(name) => app.as_ref().and_then(|app| app.as_ref()?.get(name)),
            None => block.get(setting.field),
        };
        let named = field.is_some();
        let secret = match field {
            Some(field) => field.secret(setting.default, findings),
            None => SecretName::parse(setting.default).ok(),
        };
        secret.map(|secret| GatewayCredential { setting, secret, named })
    };
    // All are read before any is missed, so that all faults are found.
    let all: Vec<_> = CREDENTIALS.iter().map(read).collect();
    if matches!(app, Some(None)) { None } else { all.into_iter().collect() }
}
