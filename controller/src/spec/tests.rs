use std::path::Path;

use super::*;

const EXAMPLE: &str = include_str!("../../../examples/hosts/this-machine.yml");

fn examined(text: &str) -> Examined<HostSpec> {
    examine(Path::new("hosts/a.yml"), text)
}

#[test]
fn example_is_accepted_without_a_warning() {
    let Examined { value, report } = examined(EXAMPLE);
    assert!(report.findings().is_empty(), "{report}");
    let spec = value.unwrap();
    assert_eq!(spec.id.as_str(), "this-machine");
    assert_eq!(spec.state.app.as_str(), "replicator-demo");
    assert_eq!(spec.image.net_image.unwrap().to_string(), "local:replicator-demo/net:1");
}
