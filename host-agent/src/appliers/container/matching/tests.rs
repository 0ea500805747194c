use serde_json::json;

use super::*;

fn seen(value: Value) -> ContainerInspectResponse {
    serde_json::from_value(value).unwrap()
}

/// As the runtime tells of one that its own command line made.
fn standing() -> Value {
    json!({
        "Id": "82f186a269be2b30c517410a0e1770d15d36c86c8244e6b1de914df4c14e7184",
        "Name": "/app",
        "Image": "sha256:1",
        "Config": {
            "Hostname": "82f186a269be", "User": "1000", "Env": ["B=2", "A=1"], "Cmd": null, "Image": "web:1",
            "Entrypoint": ["/run"], "WorkingDir": "", "AttachStdout": true, "Labels": {"of": "somebody"},
            "Healthcheck": {"Test": ["CMD", "/check"], "Interval": 1000},
        },
        "HostConfig": {
            "Binds": ["data:/data", "/srv:/srv:ro"], "NetworkMode": "lan", "ConsoleSize": [20, 80],
            "PortBindings": {"80/tcp": [{"HostIp": "", "HostPort": "8080"}]},
            "RestartPolicy": {"Name": "unless-stopped", "MaximumRetryCount": 0},
            "CapAdd": ["CAP_NET_RAW", "CAP_CHOWN"], "Dns": [], "MemorySwappiness": -1, "OomKillDisable": false,
            "LogConfig": {"Type": "json-file", "Config": {"max-size": "10m"}}, "ShmSize": 67108864,
        },
        "Mounts": [
            {"Type": "bind", "Source": "/srv", "Destination": "/srv", "Mode": "ro", "RW": false,
             "Propagation": "rprivate"},
            {"Type": "volume", "Name": "data", "Source": "/var/lib/1", "Destination": "/data", "Driver": "local",
             "Mode": "z", "RW": true},
        ],
        "NetworkSettings": {"Networks": {"lan": {"Aliases": ["web", "82f186a269be", "app"], "IPAddress": "10.0.0.2"}}},
    })
}

/// The same as it is made from a declaration, and not started.
fn made() -> Value {
    json!({
        "Id": "949a12b45b7e33d2cf1a9c2a1b716922d36c83996a17bcf5bee16398eeb457fb",
        "Name": "/app.next",
        "Image": "sha256:1",
        "Config": {
            "Hostname": "949a12b45b7e", "User": "1000", "Env": ["A=1", "B=2"], "Image": "sha256:1",
            "Entrypoint": ["/run"], "Labels": {"replicator.host": "h"}, "ExposedPorts": {"80/tcp": {}},
            "Healthcheck": {"Test": ["CMD", "/check"], "Interval": 1000, "Retries": 0},
        },
        "HostConfig": {
            "Mounts": [{"Type": "bind", "Source": "/srv", "Target": "/srv", "ReadOnly": true},
                       {"Type": "volume", "Source": "data", "Target": "/data"}],
            "NetworkMode": "lan", "Init": false,
            "PortBindings": {"80/tcp": [{"HostIp": "0.0.0.0", "HostPort": "8080"}]},
            "RestartPolicy": {"Name": "unless-stopped"}, "CapAdd": ["CHOWN", "NET_RAW"],
            "LogConfig": {"Type": "json-file", "Config": {"max-size": "10m"}}, "ShmSize": 67108864,
        },
        "Mounts": [
            {"Type": "volume", "Name": "data", "Source": "/var/lib/1", "Destination": "/data", "Driver": "local",
             "Mode": "z", "RW": true},
            {"Type": "bind", "Source": "/srv", "Destination": "/srv", "RW": false, "Propagation": "rprivate"},
        ],
        "NetworkSettings": {"Networks": {"lan": {"Aliases": ["web"], "IPAMConfig": {}}}},
    })
}

#[test]
fn same_definition_is_known_in_other_words() {
    assert_eq!(first_difference(&seen(standing()), &seen(made())), None);
}

#[test]
fn each_thing_that_differs_is_named() {
    let cases = [
        ("/Image", json!("sha256:2"), "image"),
        ("/Config/Env/0", json!("B=3"), "environment"),
        ("/Config/User", json!("0"), "user"),
        ("/Config/Cmd", json!(["x"]), "command"),
        ("/Config/Entrypoint", json!(["/run", "x"]), "entrypoint"),
        ("/Config/WorkingDir", json!("/srv"), "working_directory"),
        ("/Config/Hostname", json!("web"), "hostname"),
        ("/Config/Healthcheck/Interval", json!(2000), "health"),
        ("/HostConfig/PortBindings/80~1tcp/0/HostPort", json!("8081"), "ports"),
        ("/HostConfig/PortBindings/80~1tcp/0/HostIp", json!("127.0.0.1"), "ports"),
        ("/HostConfig/RestartPolicy/Name", json!("no"), "RestartPolicy"),
        ("/HostConfig/CapAdd/0", json!("CAP_SYS_ADMIN"), "capabilities"),
        ("/HostConfig/Dns", json!(["10.0.0.1"]), "dns"),
        ("/HostConfig/LogConfig/Config", json!({}), "log"),
        ("/HostConfig/ShmSize", json!(1), "shm_size"),
        ("/HostConfig/NetworkMode", json!("host"), "network_of"),
        ("/Mounts/0/RW", json!(true), "mounts"),
        ("/Mounts/0/Source", json!("/etc"), "mounts"),
        ("/Mounts/1/Name", json!("other"), "mounts"),
        ("/NetworkSettings/Networks/lan/Aliases/0", json!("api"), "networks"),
        ("/NetworkSettings/Networks", json!({"lan": {"Aliases": ["web"]}, "wan": {}}), "networks"),
    ];
    for (place, value, word) in cases {
        let mut other = standing();
        *other.pointer_mut(place).unwrap_or(&mut Value::Null) = value.clone();
        if other == standing() {
            // A key that was not there.
            let (parent, key) = place.rsplit_once('/').unwrap();
            other.pointer_mut(parent).unwrap()[key] = value;
        }
        assert_eq!(first_difference(&seen(other), &seen(made())).as_deref(), Some(word), "{place}");
    }
    let mut privileged = standing();
    privileged["HostConfig"]["Privileged"] = json!(true);
    assert_eq!(first_difference(&seen(privileged), &seen(made())).as_deref(), Some("Privileged"));
}

#[test]
fn declared_label_counts_and_one_that_is_somebodys_does_not() {
    let mut wanted = made();
    wanted["Config"]["Labels"]["tier"] = json!("front");
    assert_eq!(first_difference(&seen(standing()), &seen(wanted.clone())).as_deref(), Some("labels"));
    let mut labelled = standing();
    labelled["Config"]["Labels"]["tier"] = json!("front");
    assert_eq!(first_difference(&seen(labelled), &seen(wanted)), None);
}

#[test]
fn volume_that_is_not_mounted_is_told_before_it_would_be_made() {
    assert!(mounts_all(&seen(standing()), &["data".into()]));
    assert!(!mounts_all(&seen(standing()), &["data".into(), "more".into()]));
}
