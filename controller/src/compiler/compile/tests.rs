use std::collections::BTreeMap;

use replicator_protocol::change;
use replicator_protocol::ids::{Generation, ResourceId, SecretName};
use replicator_protocol::sealed_box::{Consumer, Recipient, SealingSecretKey};
use replicator_protocol::secret::SecretBytes;
use replicator_protocol::wire::declaration::file::Body;
use replicator_protocol::wire::declaration::{Container, File, mount, resource};

use super::super::intent::{Gateway, HeldSecret, Image, Pod, Repository, Route, User};
use super::super::seal;
use super::*;
use crate::spec::names::RepoName;
use crate::spec::schema::gateway::CREDENTIALS;

fn image(byte: &str) -> Image {
    Image { pinned: format!("sha256:{}", byte.repeat(64)), user: Some(User { owner: 1000, group: 1000 }) }
}

fn secret(name: &str) -> SecretName {
    SecretName::parse(name).unwrap()
}

fn wanted() -> Wanted {
    let held = HeldSecret { generation: Generation(1), length: 10 };
    let names = CREDENTIALS.iter().map(|credential| credential.default).chain(["token"]);
    Wanted {
        fleet: FleetName::parse("demo").unwrap(),
        host: HostId::parse("acme").unwrap(),
        name_prefix: "acme".into(),
        zone: "acme.localhost".into(),
        listen: ([127, 0, 0, 1].into(), 8480),
        proxy_image: image("a"),
        gateway: Some(Gateway {
            host: "api.acme.localhost".into(),
            image: image("b"),
            credentials: CREDENTIALS
                .iter()
                .filter(|credential| credential.required)
                .map(|credential| (credential, secret(credential.default)))
                .collect(),
        }),
        pods: vec![Pod {
            developer: "jane".into(),
            net_image: image("c"),
            repositories: vec![Repository {
                repository: RepoName::parse("acme/Web.App").unwrap(),
                image: image("d"),
                ports: vec![
                    Route { port: 3000, public: true, signed_in: true },
                    Route { port: 3001, public: true, signed_in: false },
                    Route { port: 9000, public: false, signed_in: true },
                ],
                environment: BTreeMap::from([("COLOUR".into(), "blue".into())]),
                secrets: vec![secret("token")],
            }],
        }],
        secrets: names.map(|name| (secret(name), held)).collect(),
    }
}

fn head() -> Head {
    Head { uid: HostUid::parse(&"1".repeat(32)).unwrap(), ..blank(&wanted()).unwrap() }
}

fn container<'c>(compiled: &'c Compiled, id: &str) -> &'c Container {
    let found = compiled.resources.iter().find(|resource| resource.id.to_string() == id);
    let resource::Kind::Container(container) = &found.unwrap_or_else(|| panic!("no {id}")).body else {
        panic!("{id} is no container")
    };
    container
}

fn file<'c>(compiled: &'c Compiled, id: &str) -> &'c File {
    let found = compiled.resources.iter().find(|resource| resource.id.to_string() == id);
    let resource::Kind::File(file) = &found.unwrap_or_else(|| panic!("no {id}")).body else {
        panic!("{id} is no file")
    };
    file
}

#[test]
fn secrets_of_a_program_whose_user_is_unknown_are_refused() {
    let mut unknown = wanted();
    unknown.pods[0].repositories[0].image.user = None;
    assert!(matches!(compile(&unknown), Err(CompileError::User { .. })));
    unknown.pods[0].repositories[0].secrets.clear();
    assert!(compile(&unknown).is_ok(), "without secrets it does not matter");
}

#[test]
fn resources_come_in_the_order_they_are_applied() {
    let compiled = compile(&wanted()).unwrap();
    let ids: Vec<_> = compiled.resources.iter().map(|resource| resource.id.to_string()).collect();
    assert_eq!(
        ids,
        [
            "base.folder",
            "base.secrets",
            "base.network",
            "gateway.server-secrets",
            "gateway.server-app-id",
            "gateway.server-app-key",
            "gateway.server-broker-secret",
            "gateway.server",
            "pod.jane.net",
            "pod.jane.web-app-secrets",
            "pod.jane.web-app-secret-token",
            "pod.jane.web-app",
            "proxy.folder",
            "proxy.config",
            "proxy.names",
            "proxy.gateway",
            "proxy.web-app-3000--jane",
            "proxy.web-app-3001--jane",
            "proxy.server",
        ]
    );
    assert_eq!(compile(&wanted()).unwrap(), compiled, "equal input, equal resources");
}

#[test]
fn secret_reaches_a_container_as_a_file_its_environment_only_names() {
    let compiled = compile(&wanted()).unwrap();
    let web = container(&compiled, "pod.jane.web-app");
    assert_eq!(web.environment["token_FILE"], "/run/secrets/token");
    assert_eq!(web.environment["COLOUR"], "blue");
    let mounted = web.mounts.iter().find(|mount| mount.target == "/run/secrets/token").unwrap();
    let file = file(&compiled, "pod.jane.web-app-secret-token");
    assert_eq!(mounted.source, Some(mount::Source::Bind(file.path.clone())));
    assert_eq!((file.owner.as_str(), file.mode, mounted.read_only), ("1000", Some(0o400), true));
    let gateway = container(&compiled, "gateway.server");
    assert_eq!(gateway.environment["GATEWAY_BROKER_SECRET_FILE"], "/run/secrets/broker-secret");
    assert_eq!(gateway.mounts.len(), 4, "its data, and the required credentials");
}

#[test]
fn repositories_share_the_network_of_their_pod() {
    let compiled = compile(&wanted()).unwrap();
    let (net, web) = (container(&compiled, "pod.jane.net"), container(&compiled, "pod.jane.web-app"));
    assert_eq!(web.network_of, net.name);
    assert_eq!((net.networks[0].name.as_str(), &net.networks[0].aliases[..]), ("acme", &["pod-jane".to_owned()][..]));
    let volumes = web.mounts.iter().filter(|mount| matches!(mount.source, Some(mount::Source::Volume(_))));
    assert_eq!(volumes.count(), 1, "a volume that outlives it");
}

#[test]
fn public_ports_have_names_and_others_have_none() {
    let places = compile(&wanted()).unwrap().places;
    let shown: Vec<_> = places.iter().map(|place| (place.host.as_str(), place.port, place.signed_in)).collect();
    assert_eq!(
        shown,
        [
            ("api.acme.localhost", 8080, false),
            ("web-app-3000--jane.acme.localhost", 3000, true),
            ("web-app-3001--jane.acme.localhost", 3001, false),
        ]
    );
    assert_eq!(places[1].route, Some(("jane".into(), "web-app".into())));
}

#[test]
fn proxy_is_probed_for_its_file_and_for_every_name() {
    let compiled = compile(&wanted()).unwrap();
    let proxy = container(&compiled, "proxy.server");
    assert_eq!(
        (proxy.reload_on.as_slice(), proxy.reload_signal.as_str()),
        (&["proxy.config".to_owned()][..], "SIGUSR1")
    );
    let Some(Body::Content(text)) = &file(&compiled, "proxy.config").body else { panic!("no text") };
    assert_eq!(proxy.probes[0].path, "/.replicator/config");
    assert!(text.contains(&proxy.probes[0].body), "the file answers with what the probe demands");
    let names: Vec<_> = proxy.probes[1..].iter().map(|probe| probe.host.as_str()).collect();
    assert_eq!(names.len(), compiled.places.len());
    assert!(proxy.probes[1..].iter().all(|probe| !probe.statuses.contains(&502) && !probe.statuses.contains(&503)));
}

/// Which resources compile to something else after `edit`, as the agent would compare them.
fn touched(edit: impl FnOnce(&mut Wanted)) -> Vec<String> {
    let mut other = wanted();
    edit(&mut other);
    let (before, after) = (compile(&wanted()).unwrap(), compile(&other).unwrap());
    let before: BTreeMap<_, _> = before.resources.iter().map(|r| (r.id.to_string(), change::fields(r))).collect();
    let now = after.resources.iter().map(|r| (r.id.to_string(), change::fields(r)));
    now.filter(|(id, fields)| before.get(id) != Some(fields)).map(|(id, _)| id).collect()
}

#[test]
fn secret_set_anew_touches_the_one_container_that_reads_it() {
    let next = HeldSecret { generation: Generation(2), length: 10 };
    let set = |w: &mut Wanted| {
        w.secrets.insert(secret("token"), next);
    };
    assert_eq!(touched(set), ["pod.jane.web-app-secret-token"], "and what takes that file in");
}

#[test]
fn route_touches_the_file_of_its_name_and_no_container() {
    let open = |w: &mut Wanted| w.pods[0].repositories[0].ports[0].signed_in = false;
    assert_eq!(touched(open), ["proxy.web-app-3000--jane"]);
}

#[test]
fn public_name_too_long_for_its_file_is_refused() {
    let mut long = wanted();
    long.zone = format!("{}.localhost", "z.".repeat(100));
    let refused = compile(&long).unwrap_err();
    assert!(matches!(&refused, CompileError::PlaceTooLong { got: 266, have: 255, .. }), "{refused}");
}

#[test]
fn repository_that_is_added_touches_nothing_of_the_others() {
    let more = |w: &mut Wanted| {
        let mut other = w.pods[0].repositories[0].clone();
        other.repository = RepoName::parse("acme/api").unwrap();
        w.pods[0].repositories.push(other);
    };
    let added = ["pod.jane.api-secrets", "pod.jane.api-secret-token", "pod.jane.api"];
    assert_eq!(touched(more), [&added[..], &["proxy.api-3000--jane", "proxy.api-3001--jane"]].concat());
}

#[test]
fn without_the_block_there_is_no_gateway() {
    let mut plain = wanted();
    plain.gateway = None;
    let compiled = compile(&plain).unwrap();
    assert!(compiled.resources.iter().all(|resource| resource.id.module.as_str() != "gateway"));
}

#[test]
fn every_missing_secret_is_named_before_anything_is_compiled() {
    let mut bare = wanted();
    bare.secrets.clear();
    let Err(CompileError::Missing(missing)) = compile(&bare) else { panic!("compiled") };
    assert_eq!(missing.0.len(), 4);
    assert_eq!(missing.0[&secret("token")], ["`env.secrets` of `acme/Web.App`"]);
}

#[test]
fn two_repositories_of_one_name_are_a_fault_that_says_which() {
    let mut twice = wanted();
    let mut other = twice.pods[0].repositories[0].clone();
    other.repository = RepoName::parse("other/web-app").unwrap();
    twice.pods[0].repositories.push(other);
    let error = compile(&twice).unwrap_err();
    assert!(error.to_string().contains("`pod.jane.web-app`"), "{error}");
}

#[test]
fn too_large_a_declaration_names_its_largest_resource() {
    let mut large = wanted();
    large.pods[0].repositories[0].environment.insert("BIG".into(), "x".repeat(600 * 1024));
    let Err(CompileError::TooLarge { largest, .. }) = compile(&large) else { panic!("compiled") };
    assert_eq!(largest.to_string(), "pod.jane.web-app");
}

#[test]
fn intent_is_equal_through_sealing_and_another_number() {
    let compiled = compile(&wanted()).unwrap();
    let declaration = compiled.declaration(head());
    let key = SealingSecretKey::derive(&[7; 32]);
    let value = || (Generation(1), SecretBytes::new(b"0123456789".to_vec()));
    let values = || wanted().secrets.into_keys().map(|name| (name, value())).collect::<seal::Values>();
    let sealed = seal::seal(declaration.clone(), key.public(), &values()).unwrap();
    assert_eq!(sealed.faults(), []);
    assert_ne!(sealed, declaration);
    assert_eq!(intent_hash(&sealed), intent_hash(&declaration));
    assert_eq!(sealed.to_wire().encoded_len(), declaration.to_wire().encoded_len(), "sizes are foretold");
    let later = compiled.declaration(Head { position: Position { epoch: 1, sequence: 9 }, issued_at: 5, ..head() });
    assert_eq!(intent_hash(&later), intent_hash(&declaration));
    let mut other = wanted();
    other.secrets.insert(secret("token"), HeldSecret { generation: Generation(2), length: 10 });
    let other = compile(&other).unwrap().declaration(head());
    assert_ne!(intent_hash(&other), intent_hash(&declaration));
    let (to, id) = (
        Recipient { fleet: sealed.fleet.clone(), host: sealed.uid.clone() },
        ResourceId::parse("pod.jane.web-app-secret-token").unwrap(),
    );
    let resources = Compiled { resources: sealed.resources.clone(), places: vec![] };
    let Some(Body::Sealed(web)) = &file(&resources, "pod.jane.web-app-secret-token").body else { panic!("open") };
    let at = Consumer { resource: id, field: "sealed".into() };
    assert_eq!(key.open(&to, &at, web).unwrap().expose(), b"0123456789");
    assert!(seal::seal(other, key.public(), &values()).is_err(), "a secret set since is not sealed in its place");
}
