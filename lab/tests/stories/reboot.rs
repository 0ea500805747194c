//! After a reboot the host is as declared again, with nobody to ask; what happened meanwhile is told later.

use std::time::Duration;

use replicator_lab::dockerd::{Dockerd, docker};
use replicator_lab::fleet::Fleet;
use replicator_lab::wait;
use serde_json::Value;

/// Times the machine goes down, each time its containers in another order, and after the first the runtime too.
const ROUNDS: usize = 3;
/// Longest until everything serves again: a few starts and checks of health.
const BACK_WITHIN: Duration = Duration::from_secs(60);
/// Longest until everything is reported: the pause before the link is tried again is in it.
const TOLD_WITHIN: Duration = Duration::from_secs(90);

/// Ends every container, some at once and some in their own time, in an order nobody chose.
fn end_containers(fleet: &Fleet) -> Vec<String> {
    let mut containers: Vec<_> = fleet.containers().unwrap().into_iter().collect();
    let mut done = Vec::new();
    while !containers.is_empty() {
        let at = usize::try_from(getrandom::u32().unwrap()).unwrap() % containers.len();
        let (name, id) = containers.swap_remove(at);
        let how = if getrandom::u32().unwrap().is_multiple_of(2) { "kill" } else { "stop" };
        docker(&[how, &id]).unwrap();
        done.push(format!("{how} {name}"));
    }
    done
}

async fn status(fleet: &Fleet) -> Value {
    fleet.agent(&["status", "-o", "json"]).await.unwrap().json().unwrap()
}

/// Whether the agent has looked at everything since entry `number` and found it well.
fn is_well(status: &Value, number: &Value) -> bool {
    let applied = status["last_apply"]["number"].as_u64() > number.as_u64();
    let resources = status["resources"].as_object().unwrap();
    applied && resources.values().all(|one| one["failure"].is_null() && one["drift"].is_null())
}

#[tokio::test]
async fn rebooted_host_is_as_declared_with_no_broker_and_tells_later() {
    let mut dockerd = Dockerd::start().await.unwrap();
    let mut fleet = Fleet::start_here().await.unwrap();
    fleet.host("up").await.unwrap().json().unwrap();
    let before = fleet.containers().unwrap();
    assert_eq!(before.len(), 3);
    fleet.broker.kill();
    fleet.kill_serve();
    for round in 0..ROUNDS {
        let number = status(&fleet).await["ledger"]["last"].clone();
        fleet.kill_agent().await.unwrap();
        let order = end_containers(&fleet);
        assert!(fleet.fetch(fleet.name(), "/").await.is_err(), "the control: nothing is served");
        if round > 0 {
            dockerd.kill().await.unwrap();
        }
        // As the machine does: this lies in memory.
        std::fs::remove_dir_all(fleet.agent_root().join("run")).unwrap();
        fleet.start_agent().await.unwrap();
        if round > 0 {
            // The agent is up first, and has no runtime to ask.
            dockerd.resume().await.unwrap();
        }
        let served = wait::until("the page", BACK_WITHIN, async || {
            Ok(fleet.fetch(fleet.name(), "/").await.ok().filter(|answer| answer.status == 200))
        });
        let served = served.await;
        assert!(served.is_ok(), "round {round}, {order:?}: {:#}", status(&fleet).await);
        let well = wait::until("everything is well", BACK_WITHIN, async || {
            Ok(is_well(&status(&fleet).await, &number).then_some(()))
        });
        let well = well.await;
        assert!(well.is_ok(), "round {round}, {order:?}: {:#}", status(&fleet).await);
        assert_eq!(fleet.containers().unwrap(), before, "round {round}, {order:?}: started again, not made again");
    }
    let alone = status(&fleet).await;
    assert!(alone["ledger"]["unsettled_since"].is_u64(), "it says that nobody heard it: {:#}", alone["ledger"]);

    fleet.broker.resume().await.unwrap();
    fleet.serve().await.unwrap();
    let told = wait::until("everything is told", TOLD_WITHIN, async || {
        let ledger = status(&fleet).await["ledger"].clone();
        Ok((ledger["last"] == ledger["settled"]).then_some(ledger["last"].clone()))
    });
    let last = told.await.unwrap();
    let events = fleet.replicator(&["events", "--host", &fleet.host, "-o", "json"]).await.unwrap();
    let events = events.done().unwrap().stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let numbers: Vec<_> = events.map(|event| event["number"].as_u64().unwrap()).collect();
    let all: Vec<_> = (1..=last.as_u64().unwrap()).collect();
    assert!(numbers.starts_with(&all), "every event is there once, in its order: {numbers:?}");
    let report = fleet.host("converge").await.unwrap().json().unwrap();
    let results = report["results"].as_array().unwrap();
    assert!(results.iter().all(|one| one["outcome"] == "unchanged"), "{report:#}");
    let verified = fleet.agent(&["ledger", "verify"]).await.unwrap();
    verified.done().unwrap();
}
