use std::sync::Mutex;
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, date_time_ymd};

use super::*;

/// 2026-06-01 UTC, in seconds.
const NOW: u64 = 1_780_272_000;

struct Authority(CertifiedIssuer<'static, KeyPair>);

fn authority() -> Authority {
    let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.not_before = date_time_ymd(2020, 1, 1);
    params.not_after = date_time_ymd(2040, 1, 1);
    Authority(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
}

impl Authority {
    fn leaf(&self, name: &str, years: (i32, i32)) -> CertificateDer<'static> {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.not_before = date_time_ymd(years.0, 1, 1);
        params.not_after = date_time_ymd(years.1, 1, 1);
        params.signed_by(&KeyPair::generate().unwrap(), &self.0).unwrap().der().clone()
    }
}

/// Verifies `leaf` as `broker.lab` under `authority`; returns the clock faults told of.
fn verified(authority: &Authority, leaf: &CertificateDer<'_>) -> Result<Vec<i64>, Error> {
    let told = Arc::new(Mutex::new(Vec::new()));
    let listener = told.clone();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let pinned = Pinned::new(
        &authority.0.pem(),
        "broker.lab",
        &provider,
        Arc::new(move |offset| listener.lock().unwrap().push(offset)),
    );
    let address = ServerName::try_from("127.0.0.1").unwrap();
    let now = UnixTime::since_unix_epoch(Duration::from_secs(NOW));
    pinned.unwrap().verify_server_cert(leaf, &[], &address, &[], now)?;
    let told = told.lock().unwrap().clone();
    Ok(told)
}

#[test]
fn expected_name_counts_and_not_the_address() {
    let authority = authority();
    assert_eq!(verified(&authority, &authority.leaf("broker.lab", (2026, 2027))).unwrap(), [0_i64; 0]);
    assert!(verified(&authority, &authority.leaf("other.lab", (2026, 2027))).is_err());
}

#[test]
fn certificate_of_another_authority_is_refused_whatever_its_dates() {
    let pinned = authority();
    for years in [(2026, 2027), (2020, 2021)] {
        assert!(verified(&pinned, &authority().leaf("broker.lab", years)).is_err());
    }
}

#[test]
fn certificate_outside_its_dates_is_accepted_and_told_of() {
    let authority = authority();
    let ahead = verified(&authority, &authority.leaf("broker.lab", (2024, 2025))).unwrap();
    assert!(matches!(ahead[..], [offset] if offset > 0), "this host seems ahead: {ahead:?}");
    let behind = verified(&authority, &authority.leaf("broker.lab", (2030, 2031))).unwrap();
    assert!(matches!(behind[..], [offset] if offset < 0), "this host seems behind: {behind:?}");
}

#[test]
fn expired_certificate_with_another_name_is_refused() {
    let authority = authority();
    assert!(verified(&authority, &authority.leaf("other.lab", (2024, 2025))).is_err());
}

#[test]
fn settings_without_a_certificate_are_refused() {
    let told: ClockFaultSeen = Arc::new(|_| {});
    assert!(matches!(client("", "broker.lab", told.clone()), Err(TlsError::Authority)));
    assert!(matches!(client(&authority().0.pem(), "not a name", told), Err(TlsError::Name)));
}
