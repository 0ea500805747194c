//! A broker that cannot be used ends in an error that says where, why, and what to do; nothing is half done.

use anyhow::Result;
use replicator::cli::Failure;
use replicator::keys::accounts::Member;
use replicator::link::{self, LinkError};
use replicator::serve::{self, ServeError, Settings};
use replicator_lab::nats::Broker;
use tokio_util::sync::CancellationToken;

async fn refused(broker: &Broker) -> (LinkError, String) {
    let error = link::connect(&broker.fleet, Member::Controller).await.err().unwrap();
    let hint = error.hint();
    let shown = Failure::error(&error).hint(hint).to_string();
    (error, shown)
}

/// Writes `fleet.toml` anew with `change` made in it.
fn edit(broker: &Broker, change: impl FnOnce(String) -> String) -> Result<()> {
    let path = broker.fleet.settings();
    std::fs::write(&path, change(std::fs::read_to_string(&path)?))?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn broker_under_another_name_is_not_believed() -> Result<()> {
    let broker = Broker::start().await?;
    let (right, wrong) = ("server_name = \"localhost\"", "server_name = \"elsewhere\"");
    edit(&broker, |text| text.replace(right, wrong))?;
    let (error, shown) = refused(&broker).await;
    assert!(matches!(error, LinkError::Certificate { .. }), "{shown}");
    assert!(shown.contains("certificate"), "{shown}");
    edit(&broker, |text| text.replace(wrong, right))?;
    link::connect(&broker.fleet, Member::Controller).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn credential_of_another_fleet_is_refused_by_name() -> Result<()> {
    let (broker, other) = (Broker::start().await?, Broker::start().await?);
    let at = |broker: &Broker| broker.fleet.credentials().join("controller");
    std::fs::copy(at(&other), at(&broker))?;
    let (error, shown) = refused(&broker).await;
    assert!(matches!(error, LinkError::Denied { user: "controller", .. }), "{shown}");
    assert!(shown.contains("`controller`"), "{shown}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn taken_port_ends_serve_at_once() -> Result<()> {
    let broker = Broker::start().await?;
    let taken = std::net::TcpListener::bind("127.0.0.1:0")?;
    let settings = Settings { fleet: broker.fleet.clone(), listen: taken.local_addr()? };
    let ended = Box::pin(serve::serve(&broker.home, settings, |_| {}, CancellationToken::new())).await;
    let error = ended.unwrap_err();
    assert!(matches!(error, ServeError::Listen { .. }), "{error}");
    assert!(error.to_string().contains(&taken.local_addr()?.to_string()) && error.hint().contains("--listen"));
    Ok(())
}
