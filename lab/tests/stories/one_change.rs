//! One change touches one thing, and a client of the proxy never notices.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use replicator_lab::fleet::{Fleet, PROXY, get};
use serde_json::Value;

/// Asks for a page without pause, and counts what did not come with 200.
struct Client {
    stop: Arc<AtomicBool>,
    asked: Arc<AtomicU32>,
    task: tokio::task::JoinHandle<Vec<String>>,
}

impl Client {
    fn start(name: &'static str) -> Self {
        let (stop, asked) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
        let (until, count) = (Arc::clone(&stop), Arc::clone(&asked));
        let task = tokio::spawn(async move {
            let mut failed = Vec::new();
            while !until.load(Ordering::Relaxed) {
                match get(PROXY.parse().unwrap(), name, "/").await {
                    Ok(answer) if answer.status == 200 => {}
                    Ok(answer) => failed.push(format!("status {}", answer.status)),
                    Err(error) => failed.push(format!("{error:#}")),
                }
                count.fetch_add(1, Ordering::Relaxed);
            }
            failed
        });
        Self { stop, asked, task }
    }

    /// Ends it, and demands that it asked and was always answered.
    async fn was_served(self) {
        self.stop.store(true, Ordering::Relaxed);
        let failed = self.task.await.unwrap();
        assert!(failed.is_empty(), "{failed:?}");
        assert!(self.asked.load(Ordering::Relaxed) > 5, "the control: it did ask");
    }
}

fn changed(report: &Value) -> Vec<(String, String)> {
    let results = report["results"].as_array().unwrap_or_else(|| panic!("{report:#}"));
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let touched = results.iter().filter(|result| result["action"] != "none");
    touched.map(|result| (text(&result["resource"]), text(&result["action"]))).collect()
}

#[tokio::test]
async fn one_change_touches_one_thing_and_no_request_fails() {
    let fleet = Fleet::start().await.unwrap();
    let up = fleet.host("up").await.unwrap();
    up.json().unwrap();
    let page = fleet.fetch(fleet.name(), "/").await.unwrap();
    assert_eq!(page.status, 200, "{page:?}");
    let first = fleet.containers().unwrap();
    assert_eq!(first.keys().collect::<Vec<_>>(), ["ada_net", "ada_web", "proxy"]);

    // The same again: a new sequence, and nothing is touched.
    let again = fleet.host("converge").await.unwrap().json().unwrap();
    assert_eq!(changed(&again), []);
    assert_eq!(fleet.containers().unwrap(), first);

    // One secret: its file and the one container that takes it in.
    let client = Client::start(fleet.name());
    fleet.set_secret("webToken", "second-value").await.unwrap();
    let report = fleet.host("converge").await.unwrap().json().unwrap();
    client.was_served().await;
    let touched = changed(&report);
    assert_eq!(touched.len(), 2, "{report:#}");
    assert_eq!(touched[1], ("pod.ada.web".into(), "recreate".into()));
    let because = &report["results"].as_array().unwrap().iter().find(|one| one["resource"] == "pod.ada.web").unwrap()["reasons"]
        [0];
    assert_eq!(because["code"], "input-changed", "{because}");
    assert!(because["subject"].as_str().unwrap().contains("/secrets/"), "the report names the file: {because}");
    let second = fleet.containers().unwrap();
    assert_ne!(second["ada_web"], first["ada_web"]);
    assert_eq!((&second["ada_net"], &second["proxy"]), (&first["ada_net"], &first["proxy"]));

    // A repository more: nothing else is touched, and its route reaches the proxy without a restart of it.
    let client = Client::start(fleet.name());
    fleet
        .edit(
            "      secrets: [ webToken ]\n",
            "      secrets: [ webToken ]\n  - repo: acme/api\n    image: local:replicator-demo/web:2\n    ports:\n      \
             - port: 3001\n        public: true\n        auth: none\n    env:\n      plain:\n        PORT: \"3001\"\n",
        )
        .unwrap();
    let report = fleet.host("converge").await.unwrap().json().unwrap();
    client.was_served().await;
    let third = fleet.containers().unwrap();
    assert!(third.contains_key("ada_api"), "{report:#}");
    assert!(second.iter().all(|(name, id)| third[name] == *id), "{second:?} {third:?}");
    assert_eq!(fleet.fetch("api-3001--ada.lab.localhost", "/").await.unwrap().status, 200);

    // A route less: no container is made again.
    let client = Client::start(fleet.name());
    fleet.edit("    ports:\n      - port: 3001\n        public: true\n        auth: none\n", "").unwrap();
    let report = fleet.host("converge").await.unwrap().json().unwrap();
    client.was_served().await;
    assert_eq!(fleet.containers().unwrap(), third, "{report:#}");
    assert_ne!(fleet.fetch("api-3001--ada.lab.localhost", "/").await.unwrap().status, 200);

    // Down: nothing of ours is left.
    fleet.host("down").await.unwrap().done().unwrap();
    assert!(fleet.containers().unwrap().is_empty());
    let folder = format!("/var/lib/replicator.{}", fleet.host);
    assert!(!std::path::Path::new(&folder).exists());
}
