//! A plan, read as data, is the report of the apply that follows it: for each edit of spec, fleet file and secrets.

use replicator_lab::fleet::Fleet;
use serde_json::Value;

/// The repository beside the first.
const API: &str = "  - repo: acme/api\n    image: local:replicator-demo/web:1\n    ports:\n      - port: 3001\n        public: true\n        \
                   auth: none\n    env:\n      plain:\n        PORT: \"3001\"\n";
/// The sign-in.
const GATEWAY: &str = "gateway:\n  host: api.lab.localhost\n  imageTag: \"1\"\n";

/// One edit: what it is, how it is made, and every resource something must happen to, with what.
struct Edit {
    what: &'static str,
    make: &'static [Change],
    touches: &'static [&'static str],
}

/// One text or value changed.
enum Change {
    /// Of the fleet file, one text for another; at its end where the first is empty.
    Fleet(&'static str, &'static str),
    /// Of the host spec likewise.
    Spec(&'static str, &'static str),
    /// Of a secret.
    Secret(&'static str, &'static str),
}

use Change::{Fleet as InFleet, Secret, Spec};

/// Each builds on those before it.
const EDITS: &[Edit] = &[
    Edit { what: "nothing", make: &[], touches: &[] },
    Edit {
        what: "a value of the environment",
        make: &[InFleet("GREETING: hello", "GREETING: moin")],
        touches: &["recreate pod.ada.web"],
    },
    Edit {
        what: "a variable added",
        make: &[InFleet("GREETING: moin\n", "GREETING: moin\n        MOOD: good\n")],
        touches: &["recreate pod.ada.web"],
    },
    Edit {
        what: "a variable removed",
        make: &[InFleet("        MOOD: good\n", "")],
        touches: &["recreate pod.ada.web"],
    },
    Edit {
        what: "a secret set anew",
        make: &[Secret("webToken", "second-value")],
        touches: &["change pod.ada.web-secret-webtoken-*", "recreate pod.ada.web"],
    },
    Edit { what: "a secret set to the value it has", make: &[Secret("webToken", "second-value")], touches: &[] },
    Edit {
        what: "a secret added",
        make: &[Secret("other_key", "other-value"), InFleet("[ webToken ]", "[ webToken, other_key ]")],
        touches: &["create pod.ada.web-secret-other-key-*", "recreate pod.ada.web"],
    },
    Edit {
        what: "a secret removed",
        make: &[InFleet("[ webToken, other_key ]", "[ webToken ]")],
        touches: &["recreate pod.ada.web", "remove pod.ada.web-secret-other-key-*"],
    },
    Edit {
        what: "a repository added",
        make: &[InFleet("", API)],
        touches: &["create proxy.api-3001--ada", "create pod.ada.api"],
    },
    Edit {
        what: "a port added that is not public",
        make: &[InFleet("      - port: 3001\n", "      - port: 4000\n      - port: 3001\n")],
        touches: &[],
    },
    Edit {
        what: "a public port that no longer is",
        make: &[InFleet("      - port: 3001\n        public: true\n        auth: none\n", "      - port: 3001\n")],
        touches: &["remove proxy.api-3001--ada"],
    },
    Edit {
        what: "a port that becomes public",
        make: &[InFleet("      - port: 3001\n", "      - port: 3001\n        public: true\n        auth: none\n")],
        touches: &["create proxy.api-3001--ada"],
    },
    Edit {
        what: "the number of a port",
        make: &[InFleet("- port: 3001", "- port: 3002"), InFleet("PORT: \"3001\"", "PORT: \"3002\"")],
        touches: &["create proxy.api-3002--ada", "remove proxy.api-3001--ada", "recreate pod.ada.api"],
    },
    Edit { what: "a port removed", make: &[InFleet("      - port: 4000\n", "")], touches: &[] },
    Edit {
        what: "a repository disabled",
        make: &[InFleet("acme/api\n", "acme/api\n    enabled: false\n")],
        touches: &["remove proxy.api-3002--ada", "remove pod.ada.api"],
    },
    Edit {
        what: "a repository enabled",
        make: &[InFleet("    enabled: false\n", "")],
        touches: &["create proxy.api-3002--ada", "create pod.ada.api"],
    },
    Edit {
        what: "an image",
        make: &[InFleet(
            "acme/api\n    image: local:replicator-demo/web:1",
            "acme/api\n    image: local:replicator-demo/web:2",
        )],
        touches: &["recreate pod.ada.api"],
    },
    Edit {
        what: "the gateway added",
        make: &[
            Secret("gatewayAppId", "one"),
            Secret("gatewayAppPrivateKey", "two"),
            Secret("gatewayBridgeSecret", "three"),
            Spec("", GATEWAY),
        ],
        touches: &[
            "create proxy.gateway",
            "create gateway.server-secrets",
            "create gateway.server-app-id",
            "create gateway.server-app-key",
            "create gateway.server-broker-secret",
            "create gateway.server",
        ],
    },
    Edit {
        what: "two names put behind the gateway",
        make: &[InFleet("        auth: none\n", "        auth: gateway\n")],
        touches: &["recreate proxy.web-3000--ada", "recreate proxy.api-3002--ada"],
    },
    Edit {
        what: "the image of the gateway",
        make: &[Spec("imageTag: \"1\"", "imageTag: \"2\"")],
        touches: &["recreate gateway.server"],
    },
    Edit {
        what: "the name of the gateway",
        make: &[Spec("host: api.lab.localhost", "host: sign-in.lab.localhost")],
        touches: &["recreate proxy.gateway", "recreate gateway.server"],
    },
    Edit {
        what: "two secrets of the gateway, one new to it",
        make: &[Secret("gatewayAppId", "four"), Secret("gatewayConnectKey", "five")],
        touches: &["change gateway.server-app-id", "create gateway.server-connect-key", "recreate gateway.server"],
    },
    Edit {
        what: "the gateway removed, and the names opened",
        make: &[
            Spec("gateway:\n  host: sign-in.lab.localhost\n  imageTag: \"2\"\n", ""),
            InFleet("        auth: gateway\n", "        auth: none\n"),
        ],
        touches: &[
            "recreate proxy.web-3000--ada",
            "recreate proxy.api-3002--ada",
            "remove proxy.gateway",
            "remove gateway.server",
            "remove gateway.server-connect-key",
            "remove gateway.server-broker-secret",
            "remove gateway.server-app-key",
            "remove gateway.server-app-id",
            "remove gateway.server-secrets",
        ],
    },
    Edit {
        what: "the image that holds a pod's network",
        make: &[Spec("replicator-demo/net:1", "replicator-lab/net:2")],
        touches: &["recreate pod.ada.net", "recreate pod.ada.web", "recreate pod.ada.api"],
    },
    Edit {
        what: "the zone of the names",
        make: &[Spec("[ lab.localhost ]", "[ other.localhost ]")],
        touches: &["recreate proxy.web-3000--ada", "recreate proxy.api-3002--ada"],
    },
    Edit {
        what: "a repository removed",
        make: &[InFleet(
            "  - repo: acme/api\n    image: local:replicator-demo/web:2\n    ports:\n      - port: 3002\n        public: true\n        \
             auth: none\n    env:\n      plain:\n        PORT: \"3002\"\n",
            "",
        )],
        touches: &["remove proxy.api-3002--ada", "remove pod.ada.api"],
    },
    Edit {
        what: "a developer added",
        make: &[InFleet("  - slug: ada\n", "  - slug: ada\n  - slug: bob\n")],
        touches: &[
            "create proxy.web-3000--bob",
            "create pod.bob.net",
            "create pod.bob.web-secrets",
            "create pod.bob.web-secret-webtoken-*",
            "create pod.bob.web",
        ],
    },
    Edit {
        what: "a developer renamed",
        make: &[InFleet("  - slug: bob\n", "  - slug: eve\n")],
        touches: &[
            "create proxy.web-3000--eve",
            "remove proxy.web-3000--bob",
            "create pod.eve.net",
            "create pod.eve.web-secrets",
            "create pod.eve.web-secret-webtoken-*",
            "create pod.eve.web",
            "remove pod.bob.web",
            "remove pod.bob.web-secret-webtoken-*",
            "remove pod.bob.web-secrets",
            "remove pod.bob.net",
        ],
    },
];

/// What is planned, or was done: without outcome and note, which only a report has.
fn steps(data: &Value) -> Vec<Value> {
    let all = data.as_array().unwrap_or_else(|| panic!("{data:#}")).iter();
    all.map(|step| {
        let keys = ["resource", "kind", "action", "reasons"];
        keys.iter().map(|key| ((*key).to_owned(), step[key].clone())).collect::<serde_json::Map<_, _>>().into()
    })
    .collect()
}

/// What something is done to, with what; the digest that tells the names of two secrets apart left out.
fn touched(steps: &[Value]) -> Vec<String> {
    let name = |resource: &str| match resource.rsplit_once('-') {
        Some((stem, _)) if resource.contains("-secret-") => format!("{stem}-*"),
        Some(_) | None => resource.to_owned(),
    };
    let some = steps.iter().filter(|step| step["action"] != "none");
    let word =
        |step: &Value| format!("{} {}", step["action"].as_str().unwrap(), name(step["resource"].as_str().unwrap()));
    let mut words: Vec<_> = some.map(word).collect();
    words.sort();
    words
}

async fn make(fleet: &Fleet, change: &Change) {
    let (file, from, to) = match change {
        InFleet(from, to) => (fleet.file("clanker.yml"), from, to),
        Spec(from, to) => (fleet.file(&format!("hosts/{}.yml", fleet.host)), from, to),
        Secret(name, value) => return fleet.set_secret(name, value).await.unwrap(),
    };
    let before = std::fs::read_to_string(&file).unwrap();
    assert!(before.contains(from), "`{from}` does not stand in:\n{before}");
    let after = if from.is_empty() { format!("{before}{to}") } else { before.replace(from, to) };
    std::fs::write(file, after).unwrap();
}

/// What was planned is what was done, and all of it was done.
fn same(what: &str, plan: &Value, report: &Value) -> Vec<Value> {
    let (planned, done) = (steps(&plan["steps"]), steps(&report["results"]));
    assert_eq!(planned, done, "{what}: the plan is not the report");
    for result in report["results"].as_array().unwrap() {
        let expected = match result["action"].as_str().unwrap() {
            "none" => "unchanged",
            "remove" => "removed",
            _ => "changed",
        };
        assert_eq!(result["outcome"], expected, "{what}: {result:#}");
    }
    assert_eq!(plan["sequence"], report["sequence"], "{what}");
    planned
}

#[tokio::test]
async fn plan_as_data_equals_the_report_for_every_edit() {
    let fleet = Fleet::start().await.unwrap();
    let plan = fleet.plan().await.unwrap();
    let report = fleet.host("up").await.unwrap().json().unwrap();
    let all = same("everything", &plan, &report);
    assert_eq!(touched(&all).len(), all.len(), "the control: at first everything is made");
    assert!(EDITS.len() > 20, "the list got short");
    for Edit { what, make: changes, touches } in EDITS {
        for change in *changes {
            make(&fleet, change).await;
        }
        let plan = fleet.plan().await.unwrap_or_else(|error| panic!("{what}: {error:#}"));
        let said = fleet.host("converge").await.unwrap();
        let report = said.json().unwrap_or_else(|error| panic!("{what}: {error:#}"));
        let planned = same(what, &plan, &report);
        let mut touches = touches.to_vec();
        touches.sort_unstable();
        assert_eq!(touched(&planned), touches, "{what}");
    }
    fleet.host("down").await.unwrap().done().unwrap();
    assert!(fleet.containers().unwrap().is_empty());
}
