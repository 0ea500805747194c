//! An agent whose ledger is damaged begins a new one, and still knows what on the machine is its own.

use std::path::{Path, PathBuf};
use std::time::Duration;

use replicator_lab::fleet::Fleet;
use replicator_lab::wait;
use rusqlite::Connection;

/// Longest until the agent has looked at everything after its start.
const SOON: Duration = Duration::from_secs(30);

fn database(fleet: &Fleet) -> PathBuf {
    fleet.agent_root().join("var/lib/replicator-host-agent/ledger/ledger.db")
}

/// One entry is not what was written.
fn alter(database: &Path) {
    let connection = Connection::open(database).unwrap();
    let alter = "DROP TRIGGER events_are_never_changed; UPDATE events SET payload = x'00' WHERE number = 3";
    connection.execute_batch(alter).unwrap();
}

/// Nothing can be read any more.
fn overwrite(database: &Path) {
    for beside in ["-wal", "-shm"] {
        let _absent = std::fs::remove_file(format!("{}{beside}", database.display()));
    }
    std::fs::write(database, "no database".repeat(10_000)).unwrap();
}

/// The host goes down after its ledger was damaged in this way, and nothing of it is left.
async fn goes_down_after(damage: fn(&Path)) {
    let fleet = Fleet::start().await.unwrap();
    fleet.host("up").await.unwrap().json().unwrap();
    let folder = PathBuf::from(format!("/var/lib/replicator.{}", fleet.host));
    assert!(folder.exists(), "the control");
    let containers = fleet.containers().unwrap();
    fleet.kill_agent().await.unwrap();
    damage(&database(&fleet));
    fleet.start_agent().await.unwrap();
    let applied = async || {
        let status = fleet.agent(&["status", "-o", "json"]).await?.json()?;
        Ok((status["last_apply"]["complete"] == true).then_some(()))
    };
    wait::until("all was looked at", SOON, applied).await.unwrap();
    let events = fleet.agent(&["ledger", "show"]).await.unwrap();
    assert!(events.done().unwrap().stdout.contains("ledger-set-aside"), "{events:?}");
    assert!(database(&fleet).parent().unwrap().with_file_name("ledger.damaged-1").exists());
    assert_eq!(fleet.containers().unwrap(), containers, "none was made again");
    fleet.host("down").await.unwrap().done().unwrap();
    assert!(fleet.containers().unwrap().is_empty());
    assert!(!folder.exists(), "a file or folder was left: {:?}", std::fs::read_dir(&folder).map(Iterator::count));
    let originals = fleet.agent_root().join("var/lib/replicator-host-agent/originals");
    assert!(!originals.exists(), "nothing was taken for found");
}

#[tokio::test]
async fn host_goes_down_whole_after_an_entry_of_its_ledger_was_altered() {
    goes_down_after(alter).await;
}

#[tokio::test]
async fn host_goes_down_whole_after_its_ledger_was_overwritten() {
    goes_down_after(overwrite).await;
}
