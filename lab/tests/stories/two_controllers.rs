//! Two controllers for one host: of two declarations the later one stays at the broker, whoever is slower.

use anyhow::Result;
use bytes::Bytes;
use replicator::bootstrap::BootstrapError;
use replicator::compiler::{Compiled, Head};
use replicator::keys::accounts::Member;
use replicator::keys::signing::{self, Signer};
use replicator::link;
use replicator::publisher::{PublishError, Publisher, publish};
use replicator_lab::nats::Broker;
use replicator_protocol::envelope::sign;
use replicator_protocol::ids::{Digest, FleetName, HostId, HostUid, Position};
use replicator_protocol::subjects;

fn position(sequence: u64) -> Position {
    Position { epoch: 1, sequence }
}

fn declaration(broker: &Broker, uid: &HostUid, sequence: u64) -> Result<Bytes> {
    let head = Head {
        fleet: FleetName::parse("lab")?,
        host: HostId::parse("web-1")?,
        uid: uid.clone(),
        position: position(sequence),
        issued_at: 0,
        plan_id: Digest([0; 32]),
        previous: None,
        spec_revision: String::new(),
    };
    let key = signing::load(&broker.fleet, Signer::Declare)?;
    Ok(sign(&Compiled::nothing().declaration(head).to_wire(), &[&key]))
}

#[tokio::test(flavor = "multi_thread")]
async fn slower_controller_never_takes_the_place_of_a_later_declaration() -> Result<()> {
    let broker = Broker::start().await?;
    let uid = HostUid::parse(&"a".repeat(32))?;
    let publisher = Publisher::connect(&broker.fleet).await?;
    let (first, second) = (declaration(&broker, &uid, 1)?, declaration(&broker, &uid, 2)?);
    assert!(publisher.publish_declaration(&uid, position(2), &second).await?.fresh);
    let overtaken = publisher.publish_declaration(&uid, position(1), &first).await.unwrap_err();
    assert!(matches!(overtaken, PublishError::Overtaken { have, .. } if have == position(2)), "{overtaken}");
    assert!(!publisher.publish_declaration(&uid, position(2), &second).await?.fresh, "twice is once");

    // Published between the look and the publication: the broker itself refuses.
    let admin = link::connect(&broker.fleet, Member::Admin).await?;
    let subject = subjects::declaration(&uid);
    let (looked_at, held) = publish::held_at(&admin, subjects::DECLARATIONS, &subject).await?.unwrap();
    assert_eq!(held, second);
    let third = declaration(&broker, &uid, 3)?;
    assert!(publisher.publish_declaration(&uid, position(3), &third).await?.fresh);
    assert!(!publish::put_after(&admin, subject.clone(), &second, looked_at).await?);
    assert_eq!(publish::held(&admin, subjects::DECLARATIONS, &subject).await?, Some(third));

    // What nobody of this fleet signed is no declaration, and is in nobody's way.
    publish::put(&admin, subject.clone(), &Bytes::from_static(b"planted")).await?;
    assert!(publisher.publish_declaration(&uid, position(4), &declaration(&broker, &uid, 4)?).await?.fresh);
    Ok(())
}

#[test]
fn who_was_first_and_when_is_told() -> Result<()> {
    let host = HostId::parse("web-1")?;
    let overtaken = |by| BootstrapError::Overtaken { host: host.clone(), got: 4, have: 5, by }.to_string();
    assert_eq!(
        overtaken(Some(("ada@desk".into(), 1_700_000_000_000))),
        "declaration 4 of `web-1` was not published: declaration 5 lies at the broker, issued by ada@desk, \
         2023-11-14T22:13:20Z"
    );
    assert!(overtaken(None).ends_with("issued by a controller with another log"));
    Ok(())
}
