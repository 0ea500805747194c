//! `network`: works; is kept while in use; twice is once.

use replicator_host_agent::daemon::Depth;
use replicator_lab::bench::{Bench, code, outcomes};
use replicator_lab::images;
use replicator_protocol::wire::declaration::{Network, NetworkAttachment, resource::Kind};
use replicator_protocol::wire::event::{Action, Outcome, ReasonCode};

fn lan(bench: &Bench) -> (&'static str, Kind) {
    ("m.lan", Kind::Network(Network { name: bench.name("lan") }))
}

fn on_lan(bench: &Bench, image: &str, ip: &str) -> (&'static str, Kind) {
    let network = NetworkAttachment { name: bench.name("lan"), ip: ip.into(), ..NetworkAttachment::default() };
    ("m.app", bench.container("app", image, |c| c.networks = vec![network]))
}

#[tokio::test]
async fn network_is_made_once_and_removed_last() {
    let (mut bench, image) = (Bench::new().unwrap(), images::id(images::WORKLOAD).unwrap());
    let resources = [lan(&bench), on_lan(&bench, &image, "")];
    assert_eq!(outcomes(&bench.apply(&resources).await.unwrap()), [Outcome::Changed, Outcome::Changed]);
    let made = bench.docker.networks(&bench.name("lan")).await.unwrap();
    assert_eq!(outcomes(&bench.apply(&resources).await.unwrap()), [Outcome::Unchanged, Outcome::Unchanged]);
    assert_eq!(bench.docker.networks(&bench.name("lan")).await.unwrap(), made);
    let report = bench.apply(&[]).await.unwrap();
    let order: Vec<_> = report.results.iter().map(|result| result.resource.as_str()).collect();
    assert_eq!((order, outcomes(&report)), (vec!["m.app", "m.lan"], vec![Outcome::Removed, Outcome::Removed]));
    assert!(bench.docker.networks(&bench.name("lan")).await.unwrap().is_empty());
}

#[tokio::test]
async fn network_still_in_use_is_kept_and_the_report_names_what_holds_it() {
    let (mut bench, image) = (Bench::new().unwrap(), images::id(images::WORKLOAD).unwrap());
    let resources = [lan(&bench)];
    bench.apply(&resources).await.unwrap();
    let (stranger, network) = (bench.name("stranger"), bench.name("lan"));
    let label = "replicator.host=of-nobody";
    let run = ["run", "-d", "--label", label, "--name", &stranger, "--network", &network, &image];
    assert!(std::process::Command::new("docker").args(run).status().unwrap().success());
    let report = bench.apply(&[]).await.unwrap();
    assert_eq!(outcomes(&report), [Outcome::Kept]);
    assert!(report.results[0].note.contains(&stranger), "{report:?}");
    let id = bench.seen("stranger").await.unwrap().id;
    bench.docker.remove(&id).await.unwrap();
}

#[tokio::test]
async fn lost_network_is_made_again_and_what_was_on_it_joins_it() {
    let (mut bench, image) = (Bench::new().unwrap(), images::id(images::WORKLOAD).unwrap());
    let resources = [lan(&bench), on_lan(&bench, &image, "")];
    bench.apply(&resources).await.unwrap();
    let app = bench.seen("app").await.unwrap().id;
    let lost = bench.docker.networks(&bench.name("lan")).await.unwrap()[0].id.clone();
    let disconnect = ["network", "disconnect", "-f", &lost, &app];
    assert!(std::process::Command::new("docker").args(disconnect).status().unwrap().success());
    bench.docker.remove_network(&lost).await.unwrap();
    let look = bench.look(Depth::Full).await.unwrap().unwrap();
    assert_eq!(outcomes(&look), [Outcome::Changed, Outcome::Changed], "{look:?}");
    assert_eq!(look.results[0].reasons[0].code(), ReasonCode::Drift);
    assert_eq!(look.results[1].action(), Action::Recreate);
    let made = bench.docker.networks(&bench.name("lan")).await.unwrap()[0].id.clone();
    assert_eq!(bench.seen("app").await.unwrap().networks[&bench.name("lan")], made);
    assert_eq!(bench.look(Depth::Full).await.unwrap(), None);
}

#[tokio::test]
async fn fixed_address_gets_the_subnet_around_it_unless_a_route_of_the_host_lies_there() {
    let (mut bench, image) = (Bench::new().unwrap(), images::id(images::WORKLOAD).unwrap());
    let taken = bench.docker.networks("bridge").await.unwrap()[0].subnets[0].clone();
    let in_taken = format!("{}.77", taken.rsplit_once('.').unwrap().0);
    let report = bench.apply(&[lan(&bench), on_lan(&bench, &image, &in_taken)]).await.unwrap();
    assert_eq!(code(&report, 0), "subnet-taken", "{report:?}");
    let fixed = "10.213.57.9";
    let report = bench.apply(&[lan(&bench), on_lan(&bench, &image, fixed)]).await.unwrap();
    assert_eq!(outcomes(&report), [Outcome::Changed, Outcome::Changed], "{report:?}");
    assert_eq!(bench.seen("app").await.unwrap().addresses[&bench.name("lan")], fixed);
}

#[tokio::test]
async fn two_networks_of_one_name_are_reported_and_left() {
    let mut bench = Bench::new().unwrap();
    let name = bench.name("lan");
    let labels = std::collections::BTreeMap::from([("replicator.lab".to_owned(), bench.uid().to_string())]);
    for _ in 0..2 {
        bench.docker.create_network(&name, &labels, None).await.unwrap();
    }
    let report = bench.apply(&[lan(&bench)]).await.unwrap();
    assert_eq!(code(&report, 0), "duplicate-network");
    let left = bench.docker.networks(&name).await.unwrap();
    assert_eq!(left.len(), 2);
    for network in left {
        bench.docker.remove_network(&network.id).await.unwrap();
    }
}

#[tokio::test]
async fn of_two_networks_of_ours_with_one_name_only_one_stays() {
    let (mut bench, image) = (Bench::new().unwrap(), images::id(images::WORKLOAD).unwrap());
    bench.apply(&[lan(&bench)]).await.unwrap();
    // As a request leaves it that outlived the agent which had sent it.
    let labels = std::collections::BTreeMap::from([("replicator.host".to_owned(), bench.uid().to_string())]);
    bench.docker.create_network(&bench.name("lan"), &labels, None).await.unwrap();
    let look = bench.look(Depth::Full).await.unwrap().unwrap();
    assert_eq!(outcomes(&look), [Outcome::Changed], "{look:?}");
    assert_eq!(bench.docker.networks(&bench.name("lan")).await.unwrap().len(), 1);
    let report = bench.apply(&[lan(&bench), on_lan(&bench, &image, "")]).await.unwrap();
    assert_eq!(outcomes(&report), [Outcome::Unchanged, Outcome::Changed], "{report:?}");
}
