//! What somebody changed in the proxy by hand is put right on disk and in the proxy.

use std::fs;
use std::time::Duration;

use replicator_lab::dockerd::docker;
use replicator_lab::fleet::Fleet;
use replicator_lab::wait;

#[tokio::test]
async fn configuration_changed_and_loaded_by_hand_is_mended_and_loaded_again() {
    let fleet = Fleet::start().await.unwrap();
    fleet.host("up").await.unwrap().json().unwrap();
    let path = format!("/var/lib/replicator.{}/proxy/caddy.json", fleet.host);
    let good = fs::read_to_string(&path).unwrap();
    let before = fleet.containers().unwrap();
    // Everything but the digest it answers stands as it stood: the probe would be satisfied.
    let bad = good.replace("no such name on this host", "changed by hand");
    assert_ne!(bad, good);
    fs::write(&path, bad).unwrap();
    docker(&["kill", "--signal", "USR1", &before["proxy"]]).unwrap();
    let says = async |text: &str| {
        let says = wait::until("the proxy says otherwise", Duration::from_secs(20), async || {
            let page = fleet.fetch("nobody.lab.localhost", "/").await?;
            Ok(page.body.contains(text).then_some(()))
        });
        says.await.unwrap();
    };
    says("changed by hand").await;

    let report = fleet.host("converge").await.unwrap().json().unwrap();
    let results = report["results"].as_array().unwrap();
    let of = |name: &str| results.iter().find(|result| result["resource"] == name).unwrap();
    assert_eq!((&of("proxy.config")["action"], &of("proxy.config")["outcome"]), (&"change".into(), &"changed".into()));
    let server = of("proxy.server");
    assert_eq!((&server["action"], &server["outcome"]), (&"reload".into(), &"changed".into()), "{server:#}");
    assert!(server["reasons"].to_string().contains("proxy.config"), "{server:#}");
    assert_eq!(fs::read_to_string(&path).unwrap(), good);
    says("no such name on this host").await;
    assert_eq!(fleet.containers().unwrap(), before, "and it is the same one");
    fleet.host("down").await.unwrap().done().unwrap();
}
