//! The broker's certificate authority and its server certificate.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use replicator_protocol::ids::FleetName;
use zeroize::Zeroizing;

use crate::home::FleetFolder;

/// How long the authority is valid: hosts pin it, and a host may be away for years.
const AUTHORITY_DAYS: u64 = 3650;
/// How long the server certificate is valid: the most that common clients accept, with a year between renewals.
const SERVER_DAYS: u64 = 397;
/// How far back both begin: a host's clock may be behind.
const BEFORE: Duration = Duration::from_secs(24 * 3600);
const DAY: u64 = 24 * 3600;

/// A certificate with its key, PEM each.
pub(super) struct Pair {
    pub(super) certificate: String,
    pub(super) key: Zeroizing<String>,
}

/// Where the authority's key lies.
pub(super) fn authority_key(fleet: &FleetFolder) -> PathBuf {
    fleet.keys().join("authority.pem")
}

/// Where the server's certificate lies, with its key in the same file: both are replaced by one rename.
pub(super) fn server_file(broker: &Path) -> PathBuf {
    broker.join("tls/server.pem")
}

fn authority_params(fleet: &FleetName) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, format!("Replicator broker authority of {fleet}"));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

fn dated(params: &mut CertificateParams, now: Duration, days: u64) {
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    params.not_before = epoch + now.saturating_sub(BEFORE);
    params.not_after = epoch + now + Duration::from_secs(days * DAY);
}

/// Makes the authority; `now` since the Unix epoch.
///
/// # Errors
///
/// What the library says.
pub(super) fn authority(fleet: &FleetName, now: Duration) -> Result<Pair, rcgen::Error> {
    let key = KeyPair::generate()?;
    let mut params = authority_params(fleet);
    dated(&mut params, now, AUTHORITY_DAYS);
    let certificate = params.self_signed(&key)?;
    Ok(Pair { certificate: certificate.pem(), key: Zeroizing::new(key.serialize_pem()) })
}

/// Makes a server certificate for `names` (host names or addresses), issued by the authority with
/// `authority_key`; returns it with its key, PEM both.
///
/// # Errors
///
/// What the library says: a name that is none, a key that is none.
pub(super) fn server(
    fleet: &FleetName,
    authority_key: &str,
    names: &[String],
    now: Duration,
) -> Result<Zeroizing<String>, rcgen::Error> {
    let issuer = Issuer::new(authority_params(fleet), KeyPair::from_pem(authority_key)?);
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::new(names.to_vec())?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, format!("Replicator broker of {fleet}"));
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    dated(&mut params, now, SERVER_DAYS);
    let certificate = params.signed_by(&key, &issuer)?.pem();
    let key = Zeroizing::new(key.serialize_pem());
    Ok(Zeroizing::new(format!("{certificate}{}", *key)))
}
