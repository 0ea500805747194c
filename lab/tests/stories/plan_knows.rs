//! What a plan starts from: everything the host has said, whoever was there to hear it; and it writes nothing.

use std::path::Path;
use std::time::Duration;

use replicator_lab::dockerd::docker;
use replicator_lab::fleet::Fleet;
use replicator_lab::wait;
use serde_json::Value;

/// Longest until an agent that starts has applied, or one that runs has mended.
const SOON: Duration = Duration::from_secs(30);

/// What is to be done, with what.
fn steps(plan: &Value) -> Vec<String> {
    let some = plan["steps"].as_array().unwrap().iter().filter(|step| step["action"] != "none");
    some.map(|step| format!("{} {}", step["action"].as_str().unwrap(), step["resource"].as_str().unwrap())).collect()
}

/// The plan, once it starts from a report that comes after event `after` of the host, on that declaration.
async fn plan_after(fleet: &Fleet, (sequence, after): (u64, u64)) -> Value {
    let plan = async || {
        let plan = fleet.plan().await?;
        let as_of = (plan["as_of"]["sequence"].as_u64(), plan["as_of"]["event"].as_u64());
        Ok((as_of.0 == Some(sequence) && as_of.1 > Some(after)).then_some(plan))
    };
    wait::until("the host said more", SOON, plan).await.unwrap()
}

fn event(plan: &Value) -> u64 {
    plan["as_of"]["event"].as_u64().unwrap()
}

/// Every file of the controller's state, with its length.
fn state(folder: &Path) -> Vec<(String, u64)> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        if entry.path().is_dir() {
            all.extend(state(&entry.path()));
        } else {
            all.push((entry.path().display().to_string(), entry.metadata().unwrap().len()));
        }
    }
    all.sort();
    all
}

#[tokio::test]
async fn plan_starts_from_what_was_applied_after_nobody_waited_any_more() {
    let mut fleet = Fleet::start().await.unwrap();
    fleet.host("up").await.unwrap().json().unwrap();
    let log = fleet.broker.home.state();

    fleet.stop_agent().await.unwrap();
    fleet.edit("GREETING: hello", "GREETING: moin").unwrap();
    let late = fleet.host_within("converge", 1).await.unwrap();
    assert!(late.code == 1 && late.stderr.contains("no report on declaration 2"), "{late:?}");
    let before = state(&log);
    assert_eq!(steps(&fleet.plan().await.unwrap()), ["recreate pod.ada.web"], "the control: it is not applied yet");
    // By the broker alone: nobody collects.
    fleet.kill_serve();
    fleet.start_agent().await.unwrap();
    let plan = plan_after(&fleet, (2, 0)).await;
    assert!(steps(&plan).is_empty(), "{plan:#}");
    assert_eq!(plan["unheard"], serde_json::json!([]));

    // Mended by itself: by the collector's store alone, and the broker gone.
    fleet.serve().await.unwrap();
    docker(&["rm", "-f", &fleet.containers().unwrap()["ada_web"]]).unwrap();
    let plan = plan_after(&fleet, (2, event(&plan))).await;
    assert!(steps(&plan).is_empty(), "{plan:#}");
    let settled = async || {
        let status = fleet.agent(&["status", "-o", "json"]).await?.json()?;
        Ok((status["ledger"]["last"] == status["ledger"]["settled"]).then_some(()))
    };
    wait::until("all is collected", SOON, settled).await.unwrap();
    fleet.broker.kill();
    let offline = fleet.plan().await.unwrap();
    assert_eq!((event(&offline), steps(&offline)), (event(&plan), vec![]), "{offline:#}");
    assert!(offline["unheard"][0].as_str().unwrap().contains("cannot reach the broker"), "{offline:#}");
    let said = fleet.replicator(&["plan", "--distribution", &fleet.distribution()]).await.unwrap();
    let said = said.done().unwrap();
    assert!(said.stderr.contains("reported since may be missing: cannot reach the broker"), "{}", said.stderr);
    assert!(said.stdout.contains("\nAs of the report on declaration 2, "), "{}", said.stdout);
    assert_eq!(state(&log), before, "no plan wrote anything");

    // What is issued then is the plan, and the log tells what it started from.
    fleet.broker.resume().await.unwrap();
    let plan = fleet.plan().await.unwrap();
    let report = fleet.host("converge").await.unwrap().json().unwrap();
    assert!(report["results"].as_array().unwrap().iter().all(|one| one["action"] == "none"), "{report:#}");
    assert_eq!(plan["plan_id"], fleet.issued().await.unwrap().plan_id.to_string(), "nothing moved between the two");
    let entries = state(&log).len() - before.len();
    // Two reports that were nobody's to wait for or changed nothing, then issued, published and seen.
    assert!((4..=5).contains(&entries), "{entries}");
}
