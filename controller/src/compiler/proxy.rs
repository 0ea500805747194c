//! The `proxy` module: Caddy with one generated configuration, a file for each public name that it looks up at each
//! request, and a probe for every name.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use replicator_protocol::resources::Resource;
use replicator_protocol::wire::declaration::{
    Capabilities, Container, Directory, File, Mount, NetworkAttachment, Port, Probe, Protocol, Rollover, Tmpfs, file,
    mount, resource,
};

use super::error::{CompileError, named};
use super::intent::{Place, Wanted};
use super::{base, caddy};

/// The port inside the container; above 1024, so that no capability is needed.
const PORT: u16 = 8080;
/// Where the folder of the configuration is mounted.
const MOUNTED: &str = "/etc/replicator-proxy";
/// The configuration's name in that folder.
const CONFIG: &str = "caddy.json";
/// The folder of the public names in that folder.
const NAMES: &str = "names";
/// The longest name of a file, in bytes: `NAME_MAX` of Linux.
const FILE_NAME_MAX: usize = 255;

/// The folder is mounted, not what lies in it: a file that is replaced would never be seen inside.
pub(super) fn compile(wanted: &Wanted, places: &[Place]) -> Result<Vec<Resource>, CompileError> {
    let folder = format!("{}/proxy", base::folder(wanted));
    let config = caddy::config(PORT, &format!("{MOUNTED}/{NAMES}"));
    let file = File {
        path: format!("{folder}/{CONFIG}"),
        body: Some(file::Body::Content(config.text)),
        mode: Some(0o644),
        ..File::default()
    };
    let directory = |path| resource::Kind::Directory(Directory { path, mode: Some(0o755), ..Directory::default() });
    let names = format!("{folder}/{NAMES}");
    let mut resources = vec![
        named("proxy", "folder", directory(folder.clone()))?,
        named("proxy", "config", resource::Kind::File(file))?,
        named("proxy", "names", directory(names.clone()))?,
    ];
    for place in places {
        resources.push(name(&names, place)?);
    }
    let mut container = container(wanted, folder);
    container.probes = probes(wanted, places, &config.digest);
    resources.push(named("proxy", "server", resource::Kind::Container(container))?);
    Ok(resources)
}

/// The file of one public name. Everything is in what it is called; what stands in it is for people.
fn name(folder: &str, place: &Place) -> Result<Resource, CompileError> {
    let (called, Place { host, alias, port, .. }) = (caddy::file_of(place), place);
    if called.len() > FILE_NAME_MAX {
        return Err(CompileError::PlaceTooLong { host: host.clone(), got: called.len(), have: FILE_NAME_MAX });
    }
    let how = if place.signed_in { "for those who signed in" } else { "for everyone" };
    let file = File {
        path: format!("{folder}/{called}"),
        body: Some(file::Body::Content(format!("{host} leads to {alias}:{port}, {how}\n"))),
        mode: Some(0o644),
        ..File::default()
    };
    // The names of pods are one label under the zone, with two hyphens in it: no other one of this module has them.
    let label = if place.route.is_some() { host.split('.').next().unwrap_or(host) } else { alias };
    named("proxy", label, resource::Kind::File(file))
}

fn container(wanted: &Wanted, folder: String) -> Container {
    let tmpfs = |target: &str| Mount {
        source: Some(mount::Source::Tmpfs(Tmpfs { size: 16 * 1024 * 1024, mode: Some(0o700) })),
        target: target.into(),
        read_only: false,
    };
    let (address, port) = wanted.listen;
    let config = Mount { source: Some(mount::Source::Bind(folder)), target: MOUNTED.into(), read_only: true };
    Container {
        name: format!("{}_proxy", wanted.name_prefix),
        image: wanted.proxy_image.pinned.clone(),
        command: ["caddy", "run", "--config", &format!("{MOUNTED}/{CONFIG}")].map(String::from).to_vec(),
        environment: BTreeMap::from([
            ("XDG_DATA_HOME".to_owned(), "/data".to_owned()),
            ("XDG_CONFIG_HOME".to_owned(), "/config".to_owned()),
        ]),
        mounts: vec![config, tmpfs("/data"), tmpfs("/config")],
        ports: vec![Port {
            host_address: address.to_string(),
            host_port: port.into(),
            container_port: PORT.into(),
            protocol: Protocol::Tcp.into(),
        }],
        networks: vec![NetworkAttachment { name: base::network(wanted), aliases: vec![], ip: String::new() }],
        capabilities: Some(Capabilities { add: vec![], drop: vec!["ALL".into()] }),
        read_only: true,
        reload_on: vec!["proxy.config".into()],
        reload_signal: "SIGUSR1".into(),
        rollover: Rollover::StopFirst.into(),
        ..Container::default()
    }
}

/// One that demands the digest of the file in force, so that a reload that failed is seen, and one for each
/// public name, which the usual answers of a program satisfy, and a gateway error does not.
fn probes(wanted: &Wanted, places: &[Place], digest: &str) -> Vec<Probe> {
    let (listen, port) = wanted.listen;
    let address = if listen.is_unspecified() { IpAddr::V4(Ipv4Addr::LOCALHOST) } else { listen };
    let probe = |host: &str, path: &str, statuses: Vec<u32>, body: &str| Probe {
        address: address.to_string(),
        port: port.into(),
        host: host.into(),
        path: path.into(),
        statuses,
        body: body.into(),
    };
    let served: Vec<u32> = (200..=208).chain(300..=308).chain(400..=431).chain([451, 500, 501]).collect();
    let config = probe("", caddy::CONFIG_PATH, vec![200], digest);
    let names = places.iter().map(|place| probe(&place.host, "/", served.clone(), ""));
    [config].into_iter().chain(names).collect()
}
