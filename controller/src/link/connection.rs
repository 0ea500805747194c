//! One connection to the broker: TLS first under the pinned authority and name, or plain text on this machine.

use std::error::Error;
use std::time::Duration;

use async_nats::{Client, ConnectErrorKind, ConnectOptions, ServerAddr};
use replicator_protocol::broker_version::{OLDEST, is_too_old};
use replicator_protocol::enrolment::Broker;
use rustls::CertificateError;

use super::tls::{self, Refused};
use crate::home::FleetFolder;
use crate::keys::accounts::{self, Member};
use crate::keys::{KeysError, Settings};
use crate::words;

/// How long a connection may take to be there.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long one answer may take: a broker that syncs every write to a slow disk needs seconds at worst.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// The hint where another one answers.
const OTHER_BROKER: &str =
    "another broker may listen there; compare its certificate with `broker/tls/ca.pem` of the fleet";

/// The broker cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// The fleet's settings or the credential cannot be read.
    #[error(transparent)]
    Keys(#[from] KeysError),
    /// The credential is none.
    #[error("`creds/{user}` of the fleet is not a broker credential")]
    Credential {
        /// Whose.
        user: &'static str,
        /// Why.
        source: std::io::Error,
    },
    /// The authority in the settings cannot be used.
    #[error("the broker's certificate authority in `fleet.toml` cannot be used: {why}")]
    Authority {
        /// Why.
        why: String,
    },
    /// An address is none.
    #[error("`{url}` is not an address of a broker")]
    Address {
        /// The address.
        url: String,
        /// Why.
        source: std::io::Error,
    },
    /// Nobody answers, or not as the broker.
    #[error("cannot reach the broker at {urls}")]
    Unreachable {
        /// Where it should be.
        urls: String,
        /// Why.
        source: async_nats::ConnectError,
    },
    /// Who answers shows a certificate that is not believed.
    #[error("the certificate of the broker at {urls} is not believed")]
    Certificate {
        /// Where.
        urls: String,
        /// Why.
        source: rustls::Error,
    },
    /// The broker does not know the credential.
    #[error("the broker at {urls} refuses the credential `{user}`")]
    Denied {
        /// Where.
        urls: String,
        /// Whose.
        user: &'static str,
        /// What it said.
        source: async_nats::ConnectError,
    },
    /// The broker is too old.
    #[error("the broker is too old (got nats-server {got}, need {}.{} or later)", OLDEST.0, OLDEST.1)]
    TooOld {
        /// Its version.
        got: String,
    },
}

impl LinkError {
    /// One line that names the next action.
    pub fn hint(&self) -> String {
        match self {
            Self::Keys(error) => error.hint(),
            Self::Credential { .. } => "restore the folder `creds` of the fleet from a backup".into(),
            Self::Authority { .. } | Self::Address { .. } => "restore `fleet.toml` from a backup".into(),
            Self::Certificate { source, .. } if is_outside_its_dates(source) => {
                "run `replicator broker renew`; if that was done, see that this machine's clock is right".into()
            }
            Self::Certificate { .. } => OTHER_BROKER.into(),
            Self::Unreachable { source, .. } if matches!(source.kind(), ConnectErrorKind::Tls) || is_of_tls(source) => {
                OTHER_BROKER.into()
            }
            Self::Unreachable { .. } => {
                "start it with `nats-server -c` and `fleets/NAME/broker/nats.conf` of the controller's folder".into()
            }
            Self::Denied { .. } => {
                "start the broker with the `nats.conf` of this fleet; another fleet's broker may listen there".into()
            }
            Self::TooOld { .. } => "install a current nats-server; older ones silently ignore limits we rely on".into(),
        }
    }
}

/// Connects to the fleet's broker as `user`.
///
/// Answers are waited for up to 10 seconds; a connection that breaks later is made again by itself.
///
/// # Errors
///
/// [`LinkError`]; [`LinkError::TooOld`] unless the folder says that such a broker is put up with.
pub async fn connect(fleet: &FleetFolder, member: Member) -> Result<Client, LinkError> {
    let settings = Settings::load(fleet)?.broker;
    let user = member.name();
    let credentials = accounts::credentials(fleet, member)?;
    let options = ConnectOptions::with_credentials(&credentials);
    let options = options.map_err(|source| LinkError::Credential { user, source })?;
    let options = options
        .name(format!("replicator {user}"))
        .custom_inbox_prefix(member.inbox_prefix())
        .connection_timeout(CONNECT_TIMEOUT)
        .request_timeout(Some(REQUEST_TIMEOUT))
        .ignore_discovered_servers()
        .event_callback(|event| async move { tracing::info!(%event, "broker link") });
    let refused = Refused::default();
    let options = if settings.insecure_loopback {
        options
    } else {
        options
            .tls_first()
            .tls_client_config(tls::client(&settings, refused.clone()).map_err(|why| LinkError::Authority { why })?)
    };
    let connected = options.connect(addresses(&settings)?).await;
    let client = connected.map_err(|source| match refused.get().cloned() {
        Some(source) => LinkError::Certificate { urls: words::listed(&settings.urls), source },
        None => failed(&settings, user, source),
    })?;
    let got = client.server_info().version;
    match (is_too_old(&got), fleet.allows_old_broker()) {
        (true, false) => Err(LinkError::TooOld { got }),
        (true, true) => {
            tracing::warn!(got, "the broker is too old for us, and is put up with");
            Ok(client)
        }
        (false, _) => Ok(client),
    }
}

fn addresses(settings: &Broker) -> Result<Vec<ServerAddr>, LinkError> {
    let address = |url: &String| url.parse().map_err(|source| LinkError::Address { url: url.clone(), source });
    settings.urls.iter().map(address).collect()
}

fn failed(settings: &Broker, user: &'static str, source: async_nats::ConnectError) -> LinkError {
    let urls = words::listed(&settings.urls);
    match source.kind() {
        ConnectErrorKind::AuthorizationViolation | ConnectErrorKind::Authentication => {
            LinkError::Denied { urls, user, source }
        }
        ConnectErrorKind::ServerParse
        | ConnectErrorKind::Dns
        | ConnectErrorKind::TimedOut
        | ConnectErrorKind::Tls
        | ConnectErrorKind::Io
        | ConnectErrorKind::MaxReconnects => LinkError::Unreachable { urls, source },
    }
}

/// Whether a certificate has ended, or has not begun, by this machine's clock.
fn is_outside_its_dates(error: &rustls::Error) -> bool {
    let rustls::Error::InvalidCertificate(error) = error else { return false };
    matches!(
        error,
        CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. }
    )
}

/// Whether the other side answered, and not as our broker: an I/O error hides what TLS said inside.
fn is_of_tls(error: &(dyn Error + 'static)) -> bool {
    let hidden = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
    error.is::<rustls::Error>() || hidden.is_some_and(|inner| is_of_tls(inner)) || error.source().is_some_and(is_of_tls)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_certificate_is_told_from_an_absent_broker() {
        let wrong = rustls::Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer);
        let connect = |error| std::io::Error::other(std::io::Error::other(error));
        assert!(is_of_tls(&connect(Box::<dyn Error + Send + Sync>::from(wrong))));
        assert!(!is_of_tls(&std::io::Error::from(std::io::ErrorKind::ConnectionRefused)));
    }

    #[test]
    fn certificate_that_has_ended_is_told_from_another_brokers() {
        let hint = |error| {
            let source = rustls::Error::InvalidCertificate(error);
            LinkError::Certificate { urls: "tls://broker.example.com:4222".into(), source }.hint()
        };
        assert!(hint(CertificateError::Expired).contains("`replicator broker renew`"));
        assert!(hint(CertificateError::NotValidYet).contains("clock"));
        assert!(hint(CertificateError::UnknownIssuer).starts_with("another broker"));
    }
}
