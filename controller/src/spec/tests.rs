use std::path::Path;

use proptest::prelude::*;

use super::*;

const EXAMPLE: &str = include_str!("../../../examples/hosts/this-machine.yml");

fn examined(text: &str) -> Examined<HostSpec> {
    examine(Path::new("hosts/a.yml"), text)
}

/// The example with `new` in place of `old`, and what is found in it.
fn edited(old: &str, new: &str) -> String {
    assert!(EXAMPLE.contains(old), "the example has no {old:?}");
    examined(&EXAMPLE.replace(old, new)).findings.to_string()
}

#[track_caller]
fn refused(old: &str, new: &str, says: &str) {
    let text = edited(old, new);
    assert!(text.contains("error: ") && text.contains(says), "{new:?} gave\n{text}\nand not\n{says}");
}

const GATEWAY: &str = "image:\n  netImage: local:replicator-demo/net:1\n";

fn gateway(lines: &str) -> String {
    format!("gateway:\n  host: api.demo.localhost\n  image: local:replicator-demo/gateway\n  imageTag: \"1\"\n{lines}")
}

#[test]
fn example_is_accepted_without_a_warning() {
    let Examined { value, findings } = examined(EXAMPLE);
    assert!(findings.all().is_empty(), "{findings}");
    let spec = value.unwrap();
    assert_eq!(spec.id.as_str(), "this-machine");
    assert_eq!(spec.state.app.as_str(), "replicator-demo");
    assert_eq!(spec.image.net_image.unwrap().to_string(), "local:replicator-demo/net:1");
}

#[test]
fn gateway_fills_in_the_names_of_its_credentials() {
    let text = EXAMPLE.replace(GATEWAY, &gateway("  appFrom: { appId: secret:ourApp }\n"));
    let Examined { value, findings } = examined(&text);
    assert!(findings.all().is_empty(), "{findings}");
    let gateway = value.unwrap().gateway.unwrap();
    assert_eq!(gateway.image_ref().unwrap().to_string(), "local:replicator-demo/gateway:1");
    let needed: Vec<_> =
        gateway.credentials.iter().filter(|one| one.is_needed()).map(|one| one.secret.as_str()).collect();
    assert_eq!(needed, ["ourApp", "gatewayAppPrivateKey", "gatewayBridgeSecret"]);
    assert_eq!(gateway.credentials.len(), schema::gateway::CREDENTIALS.len());
}

#[test]
fn all_faults_are_shown_at_once_each_with_its_line() {
    let text = "\
id: Acme
namePrefx: demo
compute: { provider: existing-host, existingHost: { address: local } }
ingress:
  provider: none
  tokenFrom: hunter2
dns: { provider: manual, zones: [ no ] }
secrets: { provider: replicator }
state: { provider: replicator, replicator: { backend: local } }
";
    let whole = "\
error: `hosts/a.yml:1:1` lacks `namePrefix`
  1 | id: Acme
    | ^
hint: write `namePrefix: acme` there

error: `hosts/a.yml:1:5` gives `Acme`, which is no host id (`id`)
  1 | id: Acme
    |     ^^^^
hint: write 1 to 63 of `a-z`, `0-9` and `-`, not at either end

error: `hosts/a.yml:2:1` has an unknown key `namePrefx`; did you mean `namePrefix`?
  2 | namePrefx: …
    | ^^^^^^^^^
hint: the keys of the file are `id`, `namePrefix`, `compute`, `ingress`, `dns`, `access`, `secrets`, `state`, `image`, `gateway`

warning: `hosts/a.yml:6:3` has `ingress.tokenFrom`, which has no effect with `ingress.provider: none`
  6 |   tokenFrom: …
    |   ^^^^^^^^^
hint: remove it, or keep it for a later version

error: `hosts/a.yml:6:14` gives a value where a name is expected (`ingress.tokenFrom`)
  6 |   tokenFrom: …
    |              ^
hint: store it with `replicator secrets set cloudflareApiKey`, then write `secret:cloudflareApiKey`; if the file was ever pushed, revoke it where it was issued

error: `hosts/a.yml:7:35` gives `no` without quotes, which YAML reads as a boolean (`dns.zones[0]`)
  7 | dns: { provider: manual, zones: [ no ] }
    |                                   ^^
hint: write `- \"no\"`";
    assert_eq!(examined(text).findings.to_string(), whole);
}

#[test]
fn missing_blocks_are_each_named() {
    let text = examined("id: a\n").findings.to_string();
    for key in ["namePrefix", "compute", "ingress", "dns", "secrets", "state"] {
        assert!(text.contains(&format!("lacks `{key}`")), "{text}");
    }
    refused("    address: local\n", "    sshUser: root\n", "`hosts/a.yml:7:3` lacks `compute.existingHost.address`");
    refused("  existingHost:\n    address: local\n", "", "lacks `compute.existingHost`");
}

#[test]
fn objects_are_closed_at_every_level() {
    refused(
        "    address: local\n",
        "    address: local\n    adress: x\n",
        "unknown key `adress`; did you mean `address`?",
    );
    refused("    backend: local", "    backnd: local", "unknown key `backnd`; did you mean `backend`?");
    refused("  netImage:", "  netimage:", "unknown key `netimage`; did you mean `netImage`?");
    refused("  zones: [", "  zone: [", "unknown key `zone`; did you mean `zones`?");
}

#[test]
fn wrong_value_hides_no_fault_beside_it() {
    let host = "  provider: existing-host\n  existingHost:\n";
    for provider in ["  provider: hetzner\n", "  provider: [ a ]\n", ""] {
        let new = format!("{provider}  existingHost:\n    adress: x\n");
        refused(host, &new, "unknown key `adress`; did you mean `address`?");
    }
    refused("    address: local", "    - local", "write a mapping with keys of `address`, `sshUser`");
    let lines = gateway("  appFrom: somewhere\n  connectKeyFrom: [ key ]\n");
    refused(GATEWAY, &lines, "gives a value where a name is expected (`gateway.connectKeyFrom`)");
}

#[test]
fn what_this_version_does_not_offer_is_told_apart_from_what_is_unknown() {
    for (old, new, says) in [
        (
            "provider: existing-host",
            "provider: hetzner",
            "gives `hetzner`, which is not offered by this version (`compute.provider`)",
        ),
        ("address: local", "address: vm.acme.example", "gives an address other than `local`, which is not offered"),
        (
            "provider: none  ",
            "provider: direct",
            "gives `direct`, which is not offered by this version (`ingress.provider`)",
        ),
        ("provider: none  ", "provider: cloudflare-tunnel", "not offered by this version (`ingress.provider`)"),
        ("provider: manual", "provider: route53", "not offered by this version (`dns.provider`)"),
        ("  provider: manual ", "  #", "lacks `dns.provider`, and its default `cloudflare` is not offered"),
        ("    backend: local\n", "", "lacks `state.replicator.backend`, and its default `cloudflare` is not offered"),
        ("backend: local", "backend: aws", "not offered by this version (`state.replicator.backend`)"),
        (
            "secrets:\n  provider: replicator",
            "secrets:\n  provider: factory-secrets",
            "not offered by this version (`secrets.provider`)",
        ),
        ("image:\n", "resources: {}\nimage:\n", "has `resources`, which is not offered by this version"),
        ("image:\n", "providers: {}\nimage:\n", "has `providers`, which is not offered by this version"),
        (
            "image:\n",
            "image:\n  pull: { tokenFrom: secret:a }\n",
            "has `image.pull`, which is not offered by this version",
        ),
        ("image:\n", "access: { provider: tailscale }\nimage:\n", "not offered by this version (`access.provider`)"),
        (GATEWAY, &gateway("  app: { serve: host }\n"), "not offered by this version (`gateway.app.serve`)"),
        (GATEWAY, &gateway("  admit: all\n"), "not offered by this version (`gateway.admit`)"),
        (GATEWAY, &gateway("  admit: { owners: [ a ] }\n"), "narrows `gateway.admit`, which is not offered"),
        (GATEWAY, &gateway("  githubOrg: acme\n"), "has `gateway.githubOrg`, which is not offered by this version"),
        (GATEWAY, &gateway("  tokenTtlDays: 30\n"), "has `gateway.tokenTtlDays`, which is not offered by this version"),
    ] {
        refused(old, new, says);
    }
}

#[test]
fn earlier_key_is_refused_with_its_name_of_today() {
    refused("image:\n", "clankbase: {}\nimage:\n", "has `clankbase`, which is called `gateway` today");
}

#[test]
fn spec_that_thinks_it_is_two_things_is_refused() {
    refused(
        "  existingHost:",
        "  hetzner: {}\n  existingHost:",
        "has a block `compute.hetzner` beside `provider: existing-host`",
    );
    refused(
        "  provider: none",
        "  tls: {}\n  provider: none",
        "has `ingress.tls`, which belongs to `ingress.provider: direct`",
    );
    refused(
        "  zones: [",
        "  records: api\n  zones: [",
        "has `dns.records`, which belongs to `dns.provider: cloudflare`",
    );
    refused("  zones: [", "  route53: {}\n  zones: [", "which belongs to `dns.provider: route53`");
    refused(
        "    backend: local",
        "    backend: local\n    accountId: a",
        "has `state.replicator.accountId`, which belongs to `backend: cloudflare`",
    );
    refused(
        "    backend: local",
        "    backend: local\n    region: a",
        "has `state.replicator.region`, which belongs to `backend: aws`",
    );
    let access = "access: { provider: ssh-direct, tailscale: {} }\nimage:\n";
    refused("image:\n", access, "has a block `access.tailscale` beside `provider: ssh-direct`");
}

#[test]
fn port_22_is_opened_by_an_explicit_line_only() {
    let says = "nothing opens port 22 (`access.provider`)";
    refused("image:\n", "access: { provider: ssh-direct }\nimage:\n", says);
    let with = |firewall: &str| {
        let text = EXAMPLE.replace("image:\n", "access: { provider: ssh-direct }\nimage:\n");
        examined(&text.replace("  existingHost:", &format!("  firewall: {firewall}\n  existingHost:")))
            .findings
            .to_string()
    };
    assert!(with("{ ssh: false }").contains(says));
    assert_eq!(with("{ ssh: true }"), "");
    assert!(with("{ ssh: yes }").contains("gives `yes`, which is neither `true` nor `false` (`compute.firewall.ssh`)"));
}

#[test]
fn gateway_stands_one_label_under_a_zone_and_not_at_the_app() {
    for (host, says) in [
        ("api.other.localhost", "`api.other.localhost`, which is not one label under a zone of `dns.zones`"),
        ("a.api.demo.localhost", "is not one label under a zone"),
        ("app.demo.localhost", "puts the gateway at `app.demo.localhost`, the name of the web app"),
    ] {
        refused(GATEWAY, &gateway("").replace("api.demo.localhost", host), says);
    }
}

#[test]
fn values_of_another_form_are_refused() {
    for (old, new, says) in [
        ("id: this-machine", "id: 12", "gives `12` without quotes, which YAML reads as a number (`id`)"),
        ("id: this-machine", "id: [a]", "gives a list where text is expected (`id`)"),
        ("id: this-machine", "id:", "gives nothing where text is expected (`id`)"),
        ("namePrefix: demo", "namePrefix: De_mo", "gives `De_mo`, which is no slug (`namePrefix`)"),
        ("app: replicator-demo", "app: Demo", "which is no name of a state (`state.replicator.app`)"),
        ("[ demo.localhost ]", "[ Demo ]", "gives `Demo`, which is no zone (`dns.zones[0]`)"),
        ("[ demo.localhost ]", "[]", "gives no zone (`dns.zones`)"),
        ("[ demo.localhost ]", "demo.localhost", "gives text where a list is expected (`dns.zones`)"),
        ("[ demo.localhost ]", "[ a.b, a.b ]", "gives `a.b` a second time (`dns.zones[1]`)"),
        ("local:replicator-demo/net:1", "Net", "gives `Net`, which is no image (`image.netImage`)"),
        (
            "  existingHost:",
            "  capacity: { cpus: 0, memoryGb: 1, diskGb: 1 }\n  existingHost:",
            "not a whole number from 1 to",
        ),
        ("  existingHost:", "  capacity: { cpus: \"4\", memoryGb: 1, diskGb: 1 }\n  existingHost:", "without quotes"),
        ("  existingHost:", "  capacity: { cpus: 4 }\n  existingHost:", "lacks `compute.capacity.memoryGb`"),
        (
            "    address: local",
            "    address: local\n    sshUser: Root",
            "gives `Root`, which is no login (`compute.existingHost.sshUser`)",
        ),
        (
            GATEWAY,
            &gateway("").replace("\"1\"", "1.10"),
            "gives `1.10` without quotes, which YAML reads as a number (`gateway.imageTag`)",
        ),
        (GATEWAY, &gateway("").replace("demo/gateway", "demo/gateway:1"), "is no image repository (`gateway.image`)"),
    ] {
        refused(old, new, says);
    }
}

#[test]
fn literal_where_a_name_belongs_is_refused_and_never_repeated() {
    let planted = [
        "hunter2",
        "secret:not a name",
        "secret:9f86d081884c7d659a2feaa0c55ad015",
        "\"secret:\"",
        "\"hunter2\"",
        "[hunter2]",
    ];
    for value in planted {
        for (old, new) in [
            (GATEWAY, gateway(&format!("  brokerSecretFrom: {value}\n"))),
            (GATEWAY, gateway(&format!("  appFrom: {{ appId: {value} }}\n"))),
            ("  existingHost:", format!("  sshKeyFrom: {{ privateKey: {value} }}\n  existingHost:")),
            // A block nobody reads is looked through as well.
            ("  existingHost:", format!("  hetzner: {{ tokenFrom: {value} }}\n  existingHost:")),
            ("image:\n", format!("resources:\n  r2: [ {{ credentialsFrom: {{ accessKeyId: {value} }} }} ]\nimage:\n")),
        ] {
            let text = edited(old, &new);
            assert!(text.contains("gives a value where a name is expected"), "{text}");
            assert!(!text.contains("hunter2") && !text.contains("9f86d0") && !text.contains("not a name"), "{text}");
        }
    }
}

#[test]
fn address_of_a_database_may_stand_in_clear() {
    let with = |url: &str| {
        let block = format!("resources:\n  upstash: [ {{ existing: {{ restUrlFrom: \"{url}\" }} }} ]\nimage:\n");
        edited("image:\n", &block)
    };
    assert!(!with("https://db.example").contains("where a name is expected"));
    assert!(with("https://user@db.example").contains("where a name is expected"));
}

#[test]
fn keys_without_effect_are_warnings() {
    for (old, new) in [
        ("  existingHost:", "  sshKeyFrom: { privateKey: secret:a, publicKey: secret:b }\n  existingHost:".to_owned()),
        ("  provider: none", "  accountId: abc\n  provider: none".to_owned()),
        ("  zones: [", "  tokenFrom: secret:a\n  zones: [".to_owned()),
        (GATEWAY, gateway("  appOrigin: https://app.demo.localhost\n")),
    ] {
        let examined = examined(&EXAMPLE.replace(old, &new));
        assert!(!examined.findings.is_refused() && examined.value.is_some(), "{}", examined.findings);
        assert!(examined.findings.to_string().contains("warning: "), "{}", examined.findings);
    }
}

proptest! {
    /// Whatever is done to a file, it is read or refused, and every finding can be shown.
    #[test]
    fn prop_any_edit_of_a_file_is_read_or_refused(at in 0..EXAMPLE.len(), cut in 0..40_usize, new in "[ -~\\n\t{}\\[\\]:&*!|>'\"#é]{0,12}") {
        let from = (0..=at).rev().find(|at| EXAMPLE.is_char_boundary(*at)).unwrap_or(0);
        let to = (from + cut..=EXAMPLE.len()).find(|at| EXAMPLE.is_char_boundary(*at)).unwrap_or(EXAMPLE.len());
        let text = [&EXAMPLE[..from], &new, &EXAMPLE[to..]].concat();
        let Examined { value, findings } = examined(&text);
        prop_assert!(value.is_some() || findings.is_refused(), "{text}");
        prop_assert_eq!(findings.to_string().is_empty(), findings.all().is_empty());
    }
}

#[test]
fn file_that_never_ends_is_too_large() {
    let refused = load(Path::new("/dev/zero")).unwrap_err();
    assert!(matches!(refused, LoadError::Refused { .. }) && refused.to_string().contains("too large"), "{refused}");
}
