//! TLS 1.3 to a broker under one pinned authority, with one expected name.
//!
//! A certificate outside its dates by this host's clock, and sound otherwise, is accepted and told of: a host
//! whose clock is wrong has to be reachable to be mended, and the pinned authority says who it speaks to.

use std::fmt;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

/// A chain has at most leaf, intermediate and authority: no more dates than theirs can be wrong.
const DATES_MAX: usize = 3;

/// The settings do not make a TLS client.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The authority is no certificate.
    #[error("`broker.ca` holds no PEM certificate")]
    Authority,
    /// The name is none.
    #[error("`broker.server_name` is no name a certificate can carry")]
    Name,
    /// The library refused.
    #[error("could not set up TLS")]
    Setup(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Told when a broker's certificate is outside its dates: how far this host's clock is from the nearest date on
/// which it would be valid, in milliseconds; negative where this host is behind.
pub type ClockFaultSeen = Arc<dyn Fn(i64) + Send + Sync>;

/// A client that speaks TLS 1.3, to the bearer of `name` under the authority `ca` (PEM), and to no one else.
pub(super) fn client(ca: &str, name: &str, told: ClockFaultSeen) -> Result<ClientConfig, TlsError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = Pinned::new(ca, name, &provider, told)?;
    let setup = |error: Error| TlsError::Setup(error.into());
    Ok(ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(setup)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth())
}

struct Pinned {
    within_dates: Arc<WebPkiServerVerifier>,
    name: ServerName<'static>,
    told: ClockFaultSeen,
}

impl fmt::Debug for Pinned {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Pinned").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Pinned {
    fn new(ca: &str, name: &str, provider: &Arc<CryptoProvider>, told: ClockFaultSeen) -> Result<Self, TlsError> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(ca.as_bytes()) {
            let certificate = certificate.map_err(|_| TlsError::Authority)?;
            roots.add(certificate).map_err(|_| TlsError::Authority)?;
        }
        if roots.is_empty() {
            return Err(TlsError::Authority);
        }
        let within_dates = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone())
            .build()
            .map_err(|error| TlsError::Setup(error.into()))?;
        let name = ServerName::try_from(name.to_owned()).map_err(|_| TlsError::Name)?;
        Ok(Self { within_dates, name, told })
    }
}

/// The nearest date on which the certificate behind `error` is valid; `None` where its dates are not the matter.
fn nearest_valid(error: &Error) -> Option<UnixTime> {
    let Error::InvalidCertificate(error) = error else { return None };
    if let CertificateError::ExpiredContext { not_after, .. } = error {
        Some(*not_after)
    } else if let CertificateError::NotValidYetContext { not_before, .. } = error {
        Some(*not_before)
    } else {
        None
    }
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        // Whatever the address says: the expected name is the one in the settings.
        _address: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let mut at = now;
        for _ in 0..=DATES_MAX {
            match self.within_dates.verify_server_cert(leaf, intermediates, &self.name, ocsp, at) {
                Ok(verified) => {
                    if at != now {
                        (self.told)(milliseconds(now).saturating_sub(milliseconds(at)));
                    }
                    return Ok(verified);
                }
                Err(error) => match nearest_valid(&error) {
                    Some(date) if date != at => at = date,
                    Some(_) | None => return Err(error),
                },
            }
        }
        Err(Error::InvalidCertificate(CertificateError::Expired))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.within_dates.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.within_dates.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.within_dates.supported_verify_schemes()
    }
}

fn milliseconds(time: UnixTime) -> i64 {
    i64::try_from(time.as_secs()).unwrap_or(i64::MAX).saturating_mul(1000)
}

#[cfg(test)]
mod tests;
