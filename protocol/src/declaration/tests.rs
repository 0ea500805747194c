use super::*;
use crate::wire::declaration::{
    Container, Directory, File, Network, NetworkAttachment, Port, Rollover, file::Body, resource,
};

fn resource(id: &str, body: resource::Kind) -> Resource {
    Resource { id: ResourceId::parse(id).unwrap(), confirms_link: false, body }
}

fn network(id: &str, name: &str) -> Resource {
    resource(id, resource::Kind::Network(Network { name: name.into() }))
}

fn file(id: &str, path: &str) -> Resource {
    let body = Some(Body::Content("x".into()));
    resource(id, resource::Kind::File(File { path: path.into(), body, ..File::default() }))
}

fn container(id: &str, name: &str, edit: impl FnOnce(&mut Container)) -> Resource {
    let mut container = Container {
        name: name.into(),
        image: format!("sha256:{}", "0".repeat(64)),
        rollover: Rollover::StopFirst.into(),
        ..Container::default()
    };
    edit(&mut container);
    resource(id, resource::Kind::Container(container))
}

fn declaration(resources: Vec<Resource>) -> Declaration {
    Declaration {
        fleet: FleetName::parse("lab").unwrap(),
        host: HostId::parse("one").unwrap(),
        uid: HostUid::parse(&"a".repeat(32)).unwrap(),
        position: Position { epoch: 1, sequence: 1 },
        issued_at: 0,
        not_after: None,
        mode: Mode::Converge,
        plan_id: Bytes::new(),
        previous: Bytes::new(),
        spec_revision: String::new(),
        names: vec![],
        carried_ports: vec![],
        resources,
        acknowledged: vec![],
    }
}

fn problems(resources: Vec<Resource>) -> Vec<String> {
    declaration(resources).faults().into_iter().map(|(_, fault)| fault.to_string()).collect()
}

fn joins(name: &str) -> impl FnOnce(&mut Container) {
    let networks = vec![NetworkAttachment { name: name.into(), ..NetworkAttachment::default() }];
    move |container| container.networks = networks
}

fn binds(address: &str, host_port: u32) -> impl FnOnce(&mut Container) {
    let port = Port { host_address: address.into(), host_port, container_port: 80, protocol: 1 };
    move |container| container.ports = vec![port]
}

#[test]
fn declaration_survives_its_message() {
    let good = declaration(vec![network("base.net", "base"), container("base.web", "web", joins("base"))]);
    assert_eq!(Declaration::from_wire(&good.to_wire()).unwrap(), good);
}

#[test]
fn forward_and_missing_references_are_refused() {
    assert_eq!(problems(vec![network("a.net", "base"), container("a.web", "web", joins("base"))]), [""; 0]);
    let forward = problems(vec![container("a.web", "web", joins("base")), network("a.net", "base")]);
    assert_eq!(forward, ["`networks` names the network `base`, which is declared after it"]);
    let missing = problems(vec![container("a.web", "web", joins("base"))]);
    assert_eq!(missing, ["`networks` names the network `base`, which is not declared"]);
    let follows = problems(vec![container("a.web", "web", |c| c.network_of = "net".into())]);
    assert_eq!(follows, ["`network_of` names the container `net`, which is not declared"]);
    let restarts = problems(vec![container("a.web", "web", |c| c.restart_on = vec!["a.file".into()])]);
    assert_eq!(restarts, ["`restart_on` names `a.file`, which is not declared before it"]);
}

#[test]
fn one_path_and_one_name_belong_to_one_resource() {
    assert_eq!(problems(vec![file("a.one", "/etc/x"), file("a.one", "/etc/y")]).len(), 1);
    assert_eq!(problems(vec![file("a.one", "/etc/x"), file("b.one", "/etc/x")]).len(), 1);
    let folder =
        resource("b.one", resource::Kind::Directory(Directory { path: "/etc/x".into(), ..Directory::default() }));
    assert_eq!(problems(vec![file("a.one", "/etc/x"), folder]).len(), 1);
    // A network may carry the same name as the container that joins it.
    assert_eq!(problems(vec![network("a.net", "web"), container("a.web", "web", joins("web"))]), [""; 0]);
}

#[test]
fn ports_that_meet_are_refused_before_anything_is_touched() {
    let both = |one: &str, other: &str| {
        problems(vec![container("a.one", "one", binds(one, 80)), container("a.two", "two", binds(other, 80))])
    };
    assert_eq!(both("127.0.0.1", "127.0.0.2"), [""; 0], "the control");
    assert_eq!(both("", "127.0.0.1"), ["`ports` binds 80, which `a.one` binds already"]);
    assert_eq!(both("127.0.0.1", "127.0.0.1").len(), 1);
    let mut carried = declaration(vec![container("a.one", "one", binds("", 4222))]);
    carried.carried_ports = vec![4222];
    assert_eq!(carried.faults().len(), 1);
}

#[test]
fn higher_level_missing_kind_and_dotted_name_are_refused_whole() {
    let good = declaration(vec![network("a.net", "base")]).to_wire();
    assert!(Declaration::from_wire(&good).is_ok(), "the control");
    let code = |message: &wire::Declaration| Declaration::from_wire(message).unwrap_err().code;
    assert_eq!(code(&wire::Declaration { level: 2, ..good.clone() }), Code::UnsupportedLevel);
    assert_eq!(code(&wire::Declaration { level: 0, ..good.clone() }), Code::UnsupportedLevel);
    assert_eq!(code(&wire::Declaration { mode: 9, ..good.clone() }), Code::InvalidDeclaration);
    let mut bare = good.clone();
    bare.resources[0].kind = None;
    assert_eq!(code(&bare), Code::InvalidDeclaration);
    let mut dotted = good;
    dotted.resources[0].name = "net.work".into();
    assert_eq!(code(&dotted), Code::InvalidDeclaration);
    let one_fault = declaration(vec![container("a.web", "web", joins("base"))]);
    assert_eq!(code(&one_fault.to_wire()), Code::InvalidDeclaration);
}

#[test]
fn all_faults_are_counted_and_the_first_is_named() {
    let two = declaration(vec![network("a.one", "host"), network("a.two", "none")]);
    let refusal = Declaration::from_wire(&two.to_wire()).unwrap_err();
    assert_eq!((&*refusal.fields["faults"], &*refusal.fields["resource"]), ("2", "a.one"));
}

#[test]
fn secret_in_an_environment_file_must_be_agreed_to() {
    let sealed = crate::wire::declaration::Sealed {
        secret: "token".into(),
        generation: 1,
        key_id: vec![1; 32].into(),
        encapsulated_key: vec![1; 32].into(),
        ciphertext: vec![1; 32].into(),
    };
    let secret = File { path: "/etc/app.env".into(), body: Some(Body::Sealed(sealed)), ..File::default() };
    let env = resource("app.env", resource::Kind::File(secret));
    let exposed = |agreed: bool| {
        container("app.server", "app", move |c| {
            c.environment_files = vec!["/etc/app.env".into()];
            c.exposed_environment = if agreed { c.environment_files.clone() } else { vec![] };
        })
    };
    assert_eq!(problems(vec![env.clone(), exposed(true)]), [] as [String; 0], "the control");
    let found = problems(vec![env, exposed(false)]);
    assert!(found.len() == 1 && found[0].contains("`exposed_environment`"), "{found:?}");
}

#[test]
fn what_no_level_offers_is_refused_and_not_passed_over() {
    let names = vec![wire::HostEntry { name: "db".into(), address: "10.0.0.1".into() }];
    let named = Declaration { names, ..declaration(vec![network("base.network", "base")]) };
    let confirming = Resource { confirms_link: true, ..network("base.network", "base") };
    for (refused, field) in [(named, "names"), (declaration(vec![confirming]), "confirms_link")] {
        let refusal = Declaration::from_wire(&refused.to_wire()).unwrap_err();
        assert_eq!(refusal.code, Code::InvalidDeclaration);
        assert!(refusal.fields["fault"].starts_with(&format!("`{field}`")), "{refusal:?}");
    }
}
