use super::*;
use crate::wire::declaration::{Capabilities, HealthCommand, HostEntry, NetworkAttachment};

fn digest() -> String {
    format!("sha256:{}", "ab".repeat(32))
}

fn container() -> Container {
    Container {
        name: "web".into(),
        image: format!("registry.example/acme/web@{}", digest()),
        rollover: Rollover::StopFirst.into(),
        ..Container::default()
    }
}

#[track_caller]
fn refused(field: &str, edit: impl FnOnce(&mut Container)) {
    let mut edited = container();
    assert_eq!(faults(&edited), [], "the control has no fault");
    edit(&mut edited);
    let found = faults(&edited);
    assert!(found.iter().any(|fault| fault.field == field), "no fault of `{field}`: {found:?}");
}

#[test]
fn image_by_tag_is_refused() {
    for name in ["web", "web:1", "acme/web:1@sha256:00", &format!("acme/web:1@{}", digest()), "sha256:AB", "@sha256:"] {
        refused("image", |c| c.image = (*name).into());
    }
    assert_eq!(image(&digest()), Some(Image::Held { digest: &digest() }));
    let with_port = format!("localhost:5000/web@{}", digest());
    assert!(matches!(image(&with_port), Some(Image::Registry { repository: "localhost:5000/web", .. })));
}

#[test]
fn shared_network_stands_alone() {
    refused("ports", |c| {
        c.network_of = "net".into();
        c.ports = vec![Port { host_port: 80, container_port: 80, protocol: 1, ..Port::default() }];
    });
    refused("networks", |c| {
        c.network_of = "net".into();
        c.networks = vec![NetworkAttachment { name: "base".into(), ..NetworkAttachment::default() }];
    });
    refused("hosts", |c| {
        c.network_of = "net".into();
        c.hosts = vec![HostEntry { name: "db".into(), address: "10.0.0.1".into() }];
    });
    refused("dns", |c| {
        c.network_of = "net".into();
        c.dns = vec!["10.0.0.1".into()];
    });
    refused("hostname", |c| {
        c.network_of = "net".into();
        c.hostname = "web".into();
    });
    refused("network_of", |c| c.network_of = "web".into());
}

#[test]
fn names_are_refused_where_addresses_belong() {
    refused("dns[0]", |c| c.dns = vec!["resolver".into()]);
    refused("networks[0].ip", |c| {
        c.networks = vec![NetworkAttachment { name: "base".into(), ip: "ten".into(), ..NetworkAttachment::default() }];
    });
    refused("hosts[0].address", |c| c.hosts = vec![HostEntry { name: "db".into(), address: "db.example".into() }]);
}

#[test]
fn port_out_of_range_or_bound_twice_is_refused() {
    let port = |host_port| Port { host_port, container_port: 80, protocol: 1, ..Port::default() };
    refused("ports[0].host_port", |c| c.ports = vec![port(0)]);
    refused("ports[0].host_port", |c| c.ports = vec![port(65_536)]);
    refused("ports[1].host_port", |c| c.ports = vec![port(80), port(80)]);
    refused("ports[0].protocol", |c| c.ports = vec![Port { protocol: 9, ..port(80) }]);
}

#[test]
fn mount_without_source_or_with_a_crooked_one_is_refused() {
    let mount = |source: Option<Source>| Mount { source, target: "/data".into(), read_only: false };
    refused("mounts[0]", |c| c.mounts = vec![mount(None)]);
    refused("mounts[0].bind", |c| c.mounts = vec![mount(Some(Source::Bind("relative".into())))]);
    refused("mounts[0].volume", |c| c.mounts = vec![mount(Some(Source::Volume("../etc".into())))]);
    refused("mounts[1].target", |c| c.mounts = vec![mount(Some(Source::Volume("a".into()))); 2]);
}

#[test]
fn endless_waits_are_refused() {
    let health = Health {
        test: Some(Test::Command(HealthCommand { arguments: vec!["true".into()] })),
        interval: 1000,
        timeout: 1000,
        retries: 3,
        start_period: 0,
    };
    assert_eq!(faults(&Container { health: Some(health.clone()), ..container() }), [], "the control has no fault");
    refused("health.interval", |c| c.health = Some(Health { interval: 0, ..health.clone() }));
    refused("health.timeout", |c| c.health = Some(Health { timeout: u64::MAX, ..health.clone() }));
    refused("health.retries", |c| c.health = Some(Health { retries: 0, ..health.clone() }));
    refused("health", |c| c.health = Some(Health { test: None, ..health.clone() }));
    refused("stop_timeout", |c| c.stop_timeout = Some(3601));
}

#[test]
fn reload_is_a_signal_and_never_a_command() {
    refused("reload_signal", |c| {
        c.reload_on = vec!["host.routes".into()];
        c.reload_signal = "nginx -s reload".into();
    });
    refused("reload_signal", |c| c.reload_on = vec!["host.routes".into()]);
    refused("reload_on[0]", |c| {
        c.reload_on = vec!["routes".into()];
        c.reload_signal = "SIGUSR1".into();
    });
}

#[test]
fn names_of_a_swap_and_labels_of_the_agent_are_kept() {
    refused("name", |c| c.name = "web.next".into());
    refused("name", |c| c.name = "web.prev".into());
    refused("labels.replicator.identity", |c| {
        c.labels.insert("replicator.identity".into(), "x".into());
    });
}

#[test]
fn secrets_in_the_environment_must_be_agreed_to() {
    refused("exposed_environment[0]", |c| c.exposed_environment = vec!["/etc/app.env".into()]);
}

#[test]
fn capability_is_spelled_in_capitals_so_that_a_policy_knows_it() {
    let add = |names: &[&str]| Capabilities { add: names.iter().map(ToString::to_string).collect(), drop: vec![] };
    let named = Container { capabilities: Some(add(&["NET_ADMIN", "CAP_SYS_ADMIN", "ALL"])), ..container() };
    assert_eq!(faults(&named), [], "the control has no fault");
    for name in ["sys_admin", "all", "cap_SYS_ADMIN", "", "CAP_", "SYS ADMIN"] {
        refused("capabilities.add[0]", |c| c.capabilities = Some(add(&[name])));
    }
    refused("capabilities.drop[0]", |c| c.capabilities = Some(Capabilities { drop: vec!["all".into()], add: vec![] }));
}

#[test]
fn value_that_would_end_in_the_middle_is_refused() {
    refused("environment.A", |c| {
        c.environment.insert("A".into(), "one\0two".into());
    });
}
