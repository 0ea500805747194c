//! A ledger that has grown beyond its budget drops what the collector has, and nothing that is folded from it.

use std::sync::Arc;
use std::time::Duration;

use replicator_host_agent::clock::SystemClock;
use replicator_host_agent::config::Layout;
use replicator_host_agent::ledger::Ledger;
use replicator_lab::fleet::Fleet;
use replicator_lab::wait;
use replicator_protocol::ids::HostUid;
use replicator_protocol::wire::event::DriftFound;
use replicator_protocol::wire::event::event::Body;
use serde_json::Value;

/// Bytes of one file, and of all: the least that may be set.
const LIMITS: &str = "ledger_file = 65536\nledger_budget = 65536\n";
/// Entries of a kibibyte that are more than a file holds.
const MANY: usize = 100;
/// Longest until all is receipted: the collector answers within seconds.
const SOON: Duration = Duration::from_secs(30);

async fn agent(fleet: &Fleet, arguments: &[&str]) -> Value {
    let said = fleet.agent(&[arguments, &["-o", "json"]].concat()).await.unwrap();
    said.json().unwrap()
}

/// Waits until everything is receipted, and returns the status.
async fn receipted(fleet: &Fleet) -> Value {
    let settled = async || {
        let status = fleet.agent(&["status", "-o", "json"]).await?.json()?;
        Ok((status["ledger"]["last"] == status["ledger"]["settled"]).then_some(status))
    };
    wait::until("all is receipted", SOON, settled).await.unwrap()
}

/// Puts entries into the ledger of an agent that does not run: many, so that no one has to wait for as many applies.
fn fill(fleet: &Fleet, uid: &str) {
    let layout = Layout::new(&fleet.agent_root());
    let host = HostUid::parse(uid).unwrap();
    let mut ledger = Ledger::open(&layout.ledger(), &host, Arc::new(SystemClock)).unwrap();
    let drift = DriftFound { resource: "ada.web".into(), what: "x".repeat(1024) };
    ledger.append(None, vec![Body::DriftFound(drift); MANY]).unwrap();
}

#[tokio::test]
async fn ledger_above_its_budget_drops_what_is_receipted_and_forgets_nothing() {
    let fleet = Fleet::start().await.unwrap();
    fleet.host("up").await.unwrap().json().unwrap();
    let uid = receipted(&fleet).await["uid"].as_str().unwrap().to_owned();
    fleet.stop_agent().await.unwrap();
    let settings = fleet.agent_root().join("etc/replicator-host-agent/agent.toml");
    let set = std::fs::read_to_string(&settings).unwrap();
    std::fs::write(&settings, format!("{LIMITS}{set}")).unwrap();
    fill(&fleet, &uid);
    assert_eq!(agent(&fleet, &["ledger", "verify"]).await["first"], 1, "the control");
    fleet.start_agent().await.unwrap();
    fleet.edit("GREETING: hello", "GREETING: again").unwrap();
    fleet.host("converge").await.unwrap().json().unwrap();
    let dropped = async || {
        let verified = fleet.agent(&["ledger", "verify", "-o", "json"]).await?.json()?;
        Ok((verified["first"].as_u64() > Some(1)).then_some(()))
    };
    wait::until("the first file is dropped", SOON, dropped).await.unwrap();
    receipted(&fleet).await;
    fleet.kill_agent().await.unwrap();
    let kept = agent(&fleet, &["ledger", "verify"]).await;
    let first = kept["first"].as_u64().unwrap();
    assert!(first > u64::try_from(MANY).unwrap(), "{kept:#}");
    let status = agent(&fleet, &["status"]).await;
    agent(&fleet, &["ledger", "replay"]).await;
    assert_eq!(agent(&fleet, &["status"]).await, status, "folded again from what is kept");
    let early = fleet.agent(&["status", "--at", "1"]).await.unwrap();
    assert_eq!(early.code, 2, "{early:?}");
    assert!(early.stderr.contains(&format!("it has {first} to ")), "{early:?}");

    fleet.start_agent().await.unwrap();
    receipted(&fleet).await;
    let events = fleet.replicator(&["events", "--host", &fleet.host]).await.unwrap();
    let events = &events.done().unwrap().stdout;
    for kind in ["chain-started", "ledger-rotated", "ledger-dropped"] {
        assert!(events.contains(kind), "the collector has all of it: {kind}\n{events}");
    }
    fleet.host("down").await.unwrap().done().unwrap();
    assert!(fleet.containers().unwrap().is_empty());
}
