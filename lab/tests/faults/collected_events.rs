//! What hosts reported is the collector's own copy: lost, damaged, removed or of an earlier build, it is said, nothing
//! is written over, and the hosts fill it again.

use std::path::PathBuf;
use std::time::Duration;

use replicator_lab::fleet::Fleet;
use replicator_lab::wait;
use serde_json::Value;

/// Longest until a host has sent again what was lost: it looks for receipts while it has something to say.
const SOON: Duration = Duration::from_secs(40);

/// The one host, as `fleet status` has it, once all it said is stored and receipted.
async fn settled(fleet: &Fleet, what: &str) -> Value {
    let look = async || {
        let agent = fleet.agent(&["status", "--output", "json"]).await?.json()?;
        let (last, settled) = (agent["ledger"]["last"].as_u64(), agent["ledger"]["settled"].as_u64());
        if last != settled {
            return Ok(None);
        }
        let status = fleet.replicator(&["fleet", "status", "-o", "json"]).await?;
        let Ok(status) = status.json() else { return Ok(None) };
        let host = status["hosts"][0].clone();
        Ok((host["stored"].as_u64() == last).then_some(host))
    };
    wait::until(what, SOON, look).await.unwrap()
}

fn database(fleet: &Fleet) -> PathBuf {
    fleet.broker.home.collected_events()
}

/// Removes the store, or puts `text` in its place.
fn lose(fleet: &Fleet, text: Option<&str>) {
    for name in ["events.db", "events.db-wal", "events.db-shm"] {
        let path = database(fleet).with_file_name(name);
        if path.exists() {
            std::fs::remove_file(path).unwrap();
        }
    }
    if let Some(text) = text {
        std::fs::write(database(fleet), text).unwrap();
    }
}

fn serve_said(fleet: &Fleet) -> String {
    std::fs::read_to_string(fleet.file("serve.log")).unwrap()
}

/// Numbers of all events there are, in order.
async fn numbers(fleet: &Fleet) -> Vec<u64> {
    let store = replicator::serve::Store::read_only(&database(fleet)).unwrap();
    store.events_after(0, None, 10_000).unwrap().iter().map(|stored| stored.event.number).collect()
}

#[tokio::test]
async fn store_that_is_lost_over_and_over_is_filled_again_each_time() {
    let mut fleet = Fleet::start().await.unwrap();
    fleet.host("up").await.unwrap().json().unwrap();
    settled(&fleet, "the first report").await;
    for what in ["lost once", "lost again, before the broker forgot what it took"] {
        fleet.kill_serve();
        lose(&fleet, None);
        fleet.serve().await.unwrap();
        fleet.host("converge").await.unwrap().json().unwrap();
        let host = settled(&fleet, what).await;
        let all: Vec<_> = (1..=host["stored"].as_u64().unwrap()).collect();
        assert_eq!(numbers(&fleet).await, all, "{what}: none is missing, none is there twice");
    }
    fleet.host("down").await.unwrap().done().unwrap();
}

#[tokio::test]
async fn store_that_is_damaged_removed_or_of_an_earlier_build_is_mended_and_told() {
    let mut fleet = Fleet::start().await.unwrap();
    fleet.host("up").await.unwrap().json().unwrap();
    settled(&fleet, "the first report").await;

    // Of an earlier build: without what a later one keeps.
    fleet.kill_serve();
    rusqlite::Connection::open(database(&fleet)).unwrap().execute_batch("DROP TABLE streams").unwrap();
    let status = fleet.replicator(&["fleet", "status", "-o", "json"]).await.unwrap().json().unwrap();
    assert_eq!(status["streams"], Value::Array(Vec::new()));
    assert!(status["hosts"][0]["stored"].as_u64() > Some(0), "{status}");

    // No database at all.
    lose(&fleet, Some("this is no database"));
    let said = fleet.replicator(&["fleet", "status"]).await.unwrap();
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.stderr.contains("is damaged") && said.stderr.contains("hint: restore"), "{}", said.stderr);
    fleet.serve().await.unwrap();
    fleet.host("converge").await.unwrap().json().unwrap();
    settled(&fleet, "put aside").await;
    assert!(serve_said(&fleet).contains("a new store has begun"), "{}", serve_said(&fleet));
    let beside = std::fs::read_dir(database(&fleet).parent().unwrap()).unwrap().flatten();
    let aside: Vec<_> = beside.filter(|entry| entry.file_name().to_string_lossy().contains(".damaged-")).collect();
    assert_eq!(std::fs::read_to_string(aside[0].path().join("events.db")).unwrap(), "this is no database");

    // Gone while it is in use.
    let before = numbers(&fleet).await;
    lose(&fleet, None);
    let again = async || Ok(serve_said(&fleet).contains("it was written again whole").then_some(()));
    wait::until("the store is there again", SOON, again).await.unwrap();
    assert_eq!(numbers(&fleet).await, before);
    fleet.host("converge").await.unwrap().json().unwrap();
    settled(&fleet, "written again").await;
    fleet.host("down").await.unwrap().done().unwrap();
}
