//! A pod whose network is lost by somebody's hand serves again soon, and the host says meanwhile that it does not.

use std::time::Duration;

use replicator_lab::dockerd::docker;
use replicator_lab::fleet::Fleet;
use replicator_lab::wait;
use serde_json::Value;

/// Longest until the agent has noticed: the runtime tells it.
const NOTICED_WITHIN: Duration = Duration::from_secs(10);
/// Longest until the page is there again: two containers that end by force, and their start.
const SERVED_WITHIN: Duration = Duration::from_secs(40);

async fn resources(fleet: &Fleet) -> Value {
    fleet.agent(&["status", "-o", "json"]).await.unwrap().json().unwrap()["resources"].clone()
}

/// How often the ledger has that the page's container lost its network.
async fn told(fleet: &Fleet) -> usize {
    let said = fleet.agent(&["ledger", "show", "-o", "json"]).await.unwrap();
    let entries = said.done().unwrap().stdout.lines();
    entries.filter(|line| line.contains("pod.ada.web: network")).count()
}

/// Does `act` to the container that holds the pod's network, and awaits that this is told, that the page is served
/// again, and that nothing is told to be amiss any longer.
async fn lost_and_mended(fleet: &Fleet, act: &[&str]) {
    let mut command = act.to_vec();
    let net = format!("{}_ada_net", fleet.host);
    command.push(&net);
    let before = told(fleet).await;
    docker(&command).unwrap();
    // What is told, and not what is so now: it may be mended before anybody asks.
    let more = wait::until("it is told", NOTICED_WITHIN, async || Ok((told(fleet).await > before).then_some(())));
    assert!(more.await.is_ok(), "{act:?}: {:#}", resources(fleet).await);
    let served = wait::until("the page", SERVED_WITHIN, async || {
        let page = fleet.fetch(fleet.name(), "/").await.ok();
        Ok(page.filter(|page| page.status == 200).map(drop))
    });
    assert!(served.await.is_ok(), "{act:?}: {:#}", resources(fleet).await);
    let well = wait::until("everything is well", SERVED_WITHIN, async || {
        let all = resources(fleet).await;
        let amiss = |one: &Value| !one["failure"].is_null() || !one["drift"].is_null();
        Ok((!all.as_object().unwrap().values().any(amiss)).then_some(()))
    });
    assert!(well.await.is_ok(), "{act:?}: {:#}", resources(fleet).await);
}

#[tokio::test]
async fn pod_whose_network_was_lost_by_hand_is_mended_soon_and_the_host_says_so() {
    let fleet = Fleet::start().await.unwrap();
    fleet.host("up").await.unwrap().json().unwrap();
    let before = fleet.containers().unwrap();
    for act in [["restart", "-t", "0"].as_slice(), &["kill"]] {
        lost_and_mended(&fleet, act).await;
        assert_eq!(fleet.containers().unwrap(), before, "{act:?}: started again, not made again");
    }
    lost_and_mended(&fleet, &["rm", "-f"]).await;
    let after = fleet.containers().unwrap();
    assert_eq!(after["proxy"], before["proxy"]);
    assert!(["ada_net", "ada_web"].iter().all(|name| after[*name] != before[*name]), "{after:?}");
}
