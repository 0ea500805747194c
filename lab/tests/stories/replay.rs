//! Every folded answer may be thrown away: folded again from the events, it is the same.

use std::path::Path;
use std::time::Duration;

use replicator_lab::dockerd::docker;
use replicator_lab::fleet::Fleet;
use replicator_lab::wait;
use rusqlite::types::Value as Cell;
use rusqlite::{Connection, OpenFlags};
use serde_json::Value;

/// Longest until a stopped container is found and started, and until all is receipted.
const SOON: Duration = Duration::from_secs(30);

/// Every row of every table, with the table's name before it.
fn rows(database: &Path) -> Vec<(String, Vec<Cell>)> {
    let connection = Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    let mut names = connection.prepare("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").unwrap();
    let names: Vec<String> = names.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    let mut all = Vec::new();
    for name in names {
        let mut table = connection.prepare(&format!("SELECT * FROM {name} ORDER BY 1")).unwrap();
        let width = table.column_count();
        let cells = table.query_map([], |row| (0..width).map(|at| row.get(at)).collect::<Result<Vec<Cell>, _>>());
        all.extend(cells.unwrap().map(|row| (name.clone(), row.unwrap())));
    }
    all
}

/// Removes a database with what SQLite keeps beside it.
fn delete(database: &Path) {
    for suffix in ["", "-wal", "-shm", "-journal"] {
        let mut path = database.as_os_str().to_owned();
        path.push(suffix);
        let _absent = std::fs::remove_file(path);
    }
    assert!(!database.exists());
}

/// Everything the two command lines say about what happened.
async fn answers(fleet: &Fleet) -> Vec<(String, String)> {
    let mut said = Vec::new();
    for form in ["human", "json"] {
        said.push((
            form.to_owned(),
            fleet.agent(&["status", "-o", form]).await.unwrap().done().unwrap().stdout.clone(),
        ));
        for arguments in [["events"].as_slice(), &["fleet", "status"]] {
            let arguments = [arguments, &["-o", form]].concat();
            let answer = fleet.replicator(&arguments).await.unwrap().done().unwrap().stdout.clone();
            said.push((arguments.join(" "), answer));
        }
    }
    let last = said.iter().find(|(form, _)| form == "json").unwrap();
    let last = serde_json::from_str::<Value>(&last.1).unwrap()["ledger"]["last"].as_u64().unwrap();
    assert!(last > 20, "there is something to fold: {last}");
    for number in (1..=last).map(|number| number.to_string()) {
        let answer = fleet.agent(&["status", "--at", &number, "-o", "json"]).await.unwrap();
        said.push((number, answer.done().unwrap().stdout.clone()));
    }
    said
}

/// Folds what happened so far, so that in the end all was folded a piece at a time.
async fn fold(fleet: &Fleet) {
    fleet.agent(&["status"]).await.unwrap().done().unwrap();
    fleet.replicator(&["fleet", "status"]).await.unwrap().done().unwrap();
}

/// A host that lived: an image that fails, a secret changed, a container stopped by hand, a kill.
async fn lived(fleet: &Fleet) {
    fleet.host("up").await.unwrap().json().unwrap();
    fold(fleet).await;
    fleet.set_secret("webToken", "second-value").await.unwrap();
    let report = fleet.host("converge").await.unwrap().json().unwrap();
    assert!(report["results"].as_array().unwrap().iter().any(|one| one["action"] == "recreate"), "{report:#}");
    fold(fleet).await;
    fleet.edit("GREETING: hello", "LAB_MODE: exit").unwrap();
    let failed = fleet.host("converge").await.unwrap();
    assert_eq!(failed.code, 1, "{failed:?}");
    fold(fleet).await;
    fleet.edit("LAB_MODE: exit", "GREETING: again").unwrap();
    fleet.host("converge").await.unwrap().json().unwrap();
    let web = fleet.containers().unwrap()["ada_web"].clone();
    docker(&["kill", &web]).unwrap();
    let running = ["inspect", "--format", "{{.State.Running}}", &web];
    let mended = async || Ok((docker(&running)?.trim() == "true").then_some(()));
    wait::until("what was stopped runs again", SOON, mended).await.unwrap();
    fold(fleet).await;
    fleet.kill_agent().await.unwrap();
    docker(&["kill", &web]).unwrap();
    fleet.start_agent().await.unwrap();
    let settled = async || {
        let status = fleet.agent(&["status", "-o", "json"]).await?.json()?;
        let started = status["last_apply"]["trigger"] == "start";
        Ok((started && status["ledger"]["last"] == status["ledger"]["settled"]).then_some(()))
    };
    wait::until("all is receipted", SOON, settled).await.unwrap();
    fold(fleet).await;
}

#[tokio::test]
async fn deleted_projections_are_folded_again_to_the_same_answers() {
    let mut fleet = Fleet::start().await.unwrap();
    lived(&fleet).await;
    fleet.stop_agent().await.unwrap();
    fleet.kill_serve();

    let agents = fleet.agent_root().join("var/lib/replicator-host-agent/projections.db");
    let controllers = fleet.broker.home.projections();
    let said = answers(&fleet).await;
    let tables = (rows(&agents), rows(&controllers));
    for word in ["\"failed\"", "\"recreate\"", "start"] {
        assert!(said.iter().any(|(_, text)| text.contains(word)), "the control: `{word}` happened");
    }
    assert!(tables.0.len() > 5 && tables.1.len() > 1, "the control: something was folded");

    let replayed = fleet.agent(&["ledger", "replay", "-o", "json"]).await.unwrap().json().unwrap();
    assert_eq!(rows(&agents), tables.0, "replayed from the first entry: {replayed:#}");
    delete(&agents);
    delete(&controllers);
    let again = answers(&fleet).await;
    for (before, after) in said.iter().zip(&again) {
        assert_eq!(before, after);
    }
    assert_eq!(said.len(), again.len());
    assert_eq!(rows(&agents), tables.0);
    assert_eq!(rows(&controllers), tables.1);
}
