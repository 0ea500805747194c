use std::path::Path;

use super::*;
use crate::spec;

const EXAMPLE: &str = include_str!("../../../examples/clanker.yml");
const HOST: &str = include_str!("../../../examples/hosts/this-machine.yml");
const GATEWAY: &str = "gateway: { host: api.demo.localhost, imageTag: \"1\" }\n";

/// Findings of a fleet file beside a host spec.
fn together(fleet: &str, host: &str) -> spec::Findings {
    let Examined { value, mut findings } = examine(Path::new("clanker.yml"), fleet);
    let host = spec::examine(Path::new("hosts/a.yml"), host).value;
    if let (Some(fleet), Some(host)) = (&value, &host) {
        check_with_host(fleet, host, &mut findings);
    }
    findings
}

#[track_caller]
fn refused(old: &str, new: &str, says: &str) {
    assert!(EXAMPLE.contains(old), "the example has no {old:?}");
    let findings = together(&EXAMPLE.replace(old, new), HOST);
    assert!(findings.is_refused() && findings.to_string().contains(says), "{new:?} gave\n{findings}\nand not\n{says}");
}

const SECOND: &str =
    "repos:\n  - repo: acme/api\n    image: local:replicator-demo/web:1\n    ports: [ { port: 3000 } ]\n";

#[test]
fn example_is_accepted() {
    let findings = together(EXAMPLE, HOST);
    assert!(!findings.is_refused(), "{findings}");
    let fleet = examine(Path::new("clanker.yml"), EXAMPLE).value.unwrap();
    let repo = &fleet.repos[0];
    assert_eq!(repo.image.to_string(), "local:replicator-demo/web:1");
    assert_eq!(repo.ports, [Port { port: 3000, public: true, auth: Auth::None }]);
    assert_eq!(repo.env.plain.values().collect::<Vec<_>>(), ["hello"]);
    assert_eq!(repo.env.secrets[0].as_str(), "webToken");
    assert!(repo.enabled);
}

#[test]
fn public_port_needs_a_gateway_or_an_explicit_line() {
    refused("auth: none", "auth: gateway", "makes port 3000 of `acme/web` public, and `this-machine` has no gateway");
    let with = together(&EXAMPLE.replace("auth: none", "auth: gateway"), &format!("{HOST}{GATEWAY}"));
    assert!(!with.is_refused(), "{with}");
    assert!(!together(&EXAMPLE.replace("public: true", "public: false"), HOST).is_refused());
}

#[test]
fn value_beside_a_fault_that_is_of_its_key_or_its_form_is_not_shown() {
    let (plain, secrets) = ("GREETING: hello", "secrets: [ webToken ]");
    for (old, new) in [
        (plain, "my-pass: hunter2"),
        (plain, "- DB_PASSWORD=hunter2"),
        (plain, "DB_PASSWORD: 48151623"),
        (plain, "GREETING: hello\n        GREETING: hunter2"),
        (plain, "GREETING: \"hunter2"),
        (plain, "GREETING: [ hunter2 ]"),
        (secrets, "secrets: hunter2"),
        (secrets, "secrets:\n        webToken: hunter2"),
        (secrets, "secrets: { webToken: hunter2 }"),
        (secrets, "passwrd: hunter2"),
        (secrets, "{ passwrd: hunter2, unknown: hunter2 }"),
        ("repos:", "host: { passwrd: hunter2 }\nrepos:"),
        ("repos:", "passwrd: { of: hunter2 }\nrepos:"),
    ] {
        assert!(EXAMPLE.contains(old), "the example has no {old:?}");
        let findings = together(&EXAMPLE.replace(old, new), HOST);
        let text = findings.to_string();
        assert!(findings.is_refused(), "{new:?}");
        assert!(!text.contains("hunter2") && !text.contains("48151623"), "{new:?} gave\n{text}");
    }
    // The control: a value that is wrong is shown with what is wrong about it.
    refused("port: 3000", "port: 70000", "- port: 70000");
}

#[test]
fn public_port_without_ingress_is_a_warning() {
    let whole = "\
warning: `clanker.yml:14:9` makes port 3000 of `acme/web` public, and `this-machine` has no ingress
  14 |       - port: 3000
     |         ^
hint: it is reached through the proxy on the host itself; nothing is to be done where that is meant";
    assert_eq!(together(EXAMPLE, HOST).to_string(), whole);
}

#[test]
fn repositories_of_one_pod_share_their_ports_and_names() {
    refused("repos:\n", SECOND, "gives port 3000 to `acme/web`, and `acme/api` has it in the same pod");
    let same_name = SECOND.replace("acme/api", "other/Web").replace("3000", "3001");
    refused("repos:\n", &same_name, "names `acme/web`, which is called `web` in a pod as `other/Web` is");
    let twice = SECOND.replace("acme/api", "acme/web").replace("3000", "3001");
    refused("repos:\n", &twice, "gives `acme/web` a second time");
    let disabled = SECOND.replace("    ports", "    enabled: false\n    ports");
    assert!(!together(&EXAMPLE.replace("repos:\n", &disabled), HOST).is_refused());
}

#[test]
fn what_points_elsewhere_must_point_at_something() {
    refused("default: acme/web", "default: acme/api", "makes `acme/api` the default, which is not among `repos`");
    let disabled = EXAMPLE.replace("    image:", "    enabled: false\n    image:");
    assert!(together(&disabled, HOST).to_string().contains("the default, which is not enabled (`pod.default`)"));
    let zone = "hostnames: { zone: other.localhost }\npod:\n";
    refused("pod:\n", zone, "puts public names in `other.localhost`, which is not a zone of `this-machine`");
    assert!(!together(&EXAMPLE.replace("pod:\n", "hostnames: { zone: demo.localhost }\npod:\n"), HOST).is_refused());
}

#[test]
fn gateway_needs_an_enabled_repository() {
    let none = EXAMPLE.replace("    image:", "    enabled: false\n    image:").replace("  default: acme/web", "  {}");
    let findings = together(&none, &format!("{HOST}{GATEWAY}"));
    assert!(findings.to_string().contains("enables no repository, and `this-machine` has a gateway"), "{findings}");
    assert!(!together(&none, HOST).is_refused(), "{}", together(&none, HOST));
}

#[test]
fn pod_belongs_to_a_developer() {
    refused("developers:\n  - slug: ada\n", "", "no developer whose pod they run in");
    refused("  - slug: ada\n", "  - slug: ada\n  - slug: ada\n", "gives `ada` a second time (`developers[1].slug`)");
    let long = format!("  - slug: {}\n", "a".repeat(60));
    refused("  - slug: ada\n", &long, "which is too long (got 70, have 63)");
}

#[test]
fn repository_called_as_what_holds_the_network_is_refused() {
    refused("  - repo: acme/web\n", "  - repo: acme/Net\n", "`net` is what holds the network of a pod");
}

#[test]
fn image_is_pinned() {
    let image = "local:replicator-demo/web:1";
    refused(image, "acme/web:1", "names the image `acme/web` by the tag `1`, which can move (`repos[0].image`)");
    refused(image, "acme/web", "gives `acme/web`, which is no image (`repos[0].image`)");
    refused(&format!("    image: {image}\n"), "", "`clanker.yml:11:5` lacks `repos[0].image`");
    let digest = format!("sha256:{}", "0a".repeat(32));
    for image in [digest.clone(), format!("registry.example/acme/web@{digest}")] {
        assert!(!together(&EXAMPLE.replace("local:replicator-demo/web:1", &image), HOST).is_refused());
    }
}

#[test]
fn environment_is_text_and_names() {
    refused(
        "GREETING: hello",
        "GREETING: 012",
        "gives `012` without quotes, which YAML reads as a number (`repos[0].env.plain.GREETING`)",
    );
    refused("GREETING: hello", "GREETING: on", "which YAML reads as a boolean");
    refused("GREETING: hello", "1X: hello", "has a key in `repos[0].env.plain` that is no name of a variable");
    refused("GREETING: hello", "webToken: hello", "has `webToken` both in `repos[0].env.plain` and as a secret");
    refused("[ webToken ]", "[ webToken, webToken ]", "gives `webToken` a second time");
    for value in ["not a name", "9f86d081884c7d659a2feaa0c55ad015", "hunter-2"] {
        let findings = together(&EXAMPLE.replace("webToken", value), HOST).to_string();
        assert!(findings.contains("gives a value where a name is expected (`repos[0].env.secrets[0]`)"), "{findings}");
        assert!(!findings.contains(value), "{findings}");
    }
    assert!(!together(&EXAMPLE.replace("[ webToken ]", "[ secret:webToken ]"), HOST).is_refused());
}

#[test]
fn requirements_are_held_against_the_capacity() {
    let asks = |memory: &str| {
        EXAMPLE.replace("    env:", &format!("    hostRequirements: {{ cpus: 2, memory: {memory} }}\n    env:"))
    };
    let host = HOST.replace("  existingHost:", "  capacity: { cpus: 4, memoryGb: 16, diskGb: 100 }\n  existingHost:");
    assert!(!together(&asks("16gb"), &host).is_refused());
    let findings = together(&asks("32gb"), &host).to_string();
    assert!(
        findings.contains("requires more memory for `acme/web` than `this-machine` can hold (got 32 GiB, have 16 GiB)"),
        "{findings}"
    );
    let unknown = together(&asks("32gb"), HOST);
    assert!(!unknown.is_refused() && unknown.to_string().contains("nothing is known of what `this-machine` can hold"));
    assert!(together(&asks("4 gigs"), HOST).to_string().contains("which is no size"));
}

#[test]
fn host_is_one_file_of_this_folder() {
    let host = "host: ./hosts/this-machine.yml";
    refused(host, "host: repo:a/b@v1:hosts/c.yml", "names a host spec in another repository, which is not offered");
    refused(host, "hosts: [ a.yml, b.yml ]", "names several hosts, which is not offered by this version");
    refused(host, "host: a.yml\nhosts: [ b.yml ]", "has both `host` and `hosts`");
    refused(host, "hosts: []", "names no host");
    refused(host, "", "lacks `host`");
    assert!(!together(&EXAMPLE.replace(host, "hosts: [ ./hosts/this-machine.yml ]"), HOST).is_refused());
}

#[test]
fn what_this_version_does_not_offer_is_told_apart_from_what_is_unknown() {
    refused("pod:\n", "modules: []\npod:\n", "has `modules`, which is not offered by this version");
    refused("pod:\n", "access: {}\npod:\n", "has `access`, which is not offered by this version");
    refused(
        "    env:\n",
        "    env:\n      git: { tokenFrom: secret:a }\n",
        "has `repos[0].env.git`, which is not offered",
    );
    refused(
        "    image: local:replicator-demo/web:1\n",
        "    workspace: true\n",
        "has `repos[0].workspace`, which is not offered",
    );
    refused(
        "    image: local:replicator-demo/web:1\n",
        "    build: {}\n",
        "has `repos[0].build`, which is not offered",
    );
    refused("    env:\n", "    resources: []\n    env:\n", "has `repos[0].resources`, which is not offered");
    refused("    env:\n", "    envs: {}\n    env:\n", "unknown key `envs`; did you mean `env`?");
    refused("port: 3000", "port: 70000", "gives `70000`, which is not a whole number from 1 to 65535");
    refused("auth: none", "auth: nobody", "gives `nobody`, which is unknown (`repos[0].ports[0].auth`)");
}

#[test]
fn secret_as_a_key_is_never_repeated() {
    let token = format!("ghp_{}", "a1B2".repeat(9));
    for edit in [format!("{token}: no"), format!("{token}: [a]"), format!("{token}: hello")] {
        let text = together(&EXAMPLE.replace("GREETING: hello", &edit), HOST).to_string();
        assert!(text.contains("holds what looks like a GitHub token") && !text.contains("a1B2"), "{text}");
    }
}

#[test]
fn variable_that_no_program_can_be_started_with_is_refused_at_its_place() {
    let with = |bytes: usize| EXAMPLE.replace("GREETING: hello", &format!("GREETING: {}", "x".repeat(bytes)));
    // `GREETING`, `=` and the zero byte count as well.
    let most = 128 * 1024 - "GREETING".len() - 2;
    assert!(!together(&with(most), HOST).is_refused());
    let findings = together(&with(most + 1), HOST).to_string();
    assert!(
        findings.contains("gives a value no program can be started with (`repos[0].env.plain.GREETING`"),
        "{findings}"
    );
    assert!(findings.contains("got 131073 bytes, have 131072)"));
    assert!(findings.contains("`clanker.yml:") && findings.len() < 2000, "the value itself is not repeated");
}
