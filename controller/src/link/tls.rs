//! The broker's certificate, held against the pinned authority and name.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use replicator_protocol::enrolment::Broker;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

/// How long before its end a certificate is told of.
const WARN_BEFORE: Duration = Duration::from_secs(30 * 24 * 3600);

/// Why a certificate was refused first, if one was. Of a name with several addresses the client tells what the last one
/// said, which may be that nobody listens there.
pub(super) type Refused = Arc<OnceLock<rustls::Error>>;

/// TLS 1.3 towards the broker in `settings`, which puts into `refused` why it does not believe a certificate; the error
/// says what of the settings cannot be used.
pub(super) fn client(settings: &Broker, refused: Refused) -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(settings.ca.as_bytes()) {
        let certificate = certificate.map_err(|error| error.to_string())?;
        roots.add(certificate).map_err(|error| error.to_string())?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let inner = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider)).build();
    let inner = inner.map_err(|error| error.to_string())?;
    let name = ServerName::try_from(settings.server_name.clone()).map_err(|error| error.to_string())?;
    let config = ClientConfig::builder_with_provider(provider).with_protocol_versions(&[&rustls::version::TLS13]);
    let config = config.map_err(|error| error.to_string())?;
    Ok(config
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Pinned { inner, name, refused }))
        .with_no_client_auth())
}

/// Checks the broker's certificate against the pinned authority, for the pinned name in place of the address.
#[derive(Debug)]
struct Pinned {
    inner: Arc<WebPkiServerVerifier>,
    name: ServerName<'static>,
    refused: Refused,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _address: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let believed_at = |at| self.inner.verify_server_cert(end_entity, intermediates, &self.name, ocsp_response, at);
        let verified = believed_at(now);
        if let Err(error) = &verified {
            self.refused.get_or_init(|| error.clone());
        } else if believed_at(UnixTime::since_unix_epoch(Duration::from_secs(now.as_secs()) + WARN_BEFORE)).is_err() {
            tracing::warn!(
                "the broker's certificate ends within 30 days, and nothing of this controller reaches the broker then: run \
                 `replicator broker renew`"
            );
        }
        verified
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.inner.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.inner.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}
