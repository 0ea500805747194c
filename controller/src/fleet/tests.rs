use std::path::Path;

use super::*;
use crate::spec;

const EXAMPLE: &str = include_str!("../../../examples/clanker.yml");
const HOST: &str = include_str!("../../../examples/hosts/this-machine.yml");

/// Findings of a fleet file beside a host spec.
fn together(fleet: &str, host: &str) -> crate::spec::Report {
    let Examined { value, mut report } = examine(Path::new("clanker.yml"), fleet);
    let host = spec::examine(Path::new("hosts/a.yml"), host).value;
    if let (Some(fleet), Some(host)) = (&value, &host) {
        check_with_host(fleet, host, &mut report);
    }
    report
}

#[test]
fn example_is_accepted() {
    let report = together(EXAMPLE, HOST);
    assert!(!report.is_refused(), "{report}");
    let fleet = examine(Path::new("clanker.yml"), EXAMPLE).value.unwrap();
    assert_eq!(fleet.repos[0].image.to_string(), "local:replicator-demo/web:1");
    assert_eq!(fleet.repos[0].ports, [Port { port: 3000, public: true, auth: Auth::None }]);
}
