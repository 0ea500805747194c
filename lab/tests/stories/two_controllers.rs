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

use super::collector::{bed_without_serve, issue};

fn position(sequence: u64) -> Position {
    Position { epoch: 1, sequence }
}

fn declaration(broker: &Broker, uid: &HostUid, sequence: u64) -> Result<Bytes> {
    declaration_by(broker, uid, sequence, "")
}

/// `by` tells two of one number apart.
fn declaration_by(broker: &Broker, uid: &HostUid, sequence: u64, by: &str) -> Result<Bytes> {
    let head = Head {
        fleet: FleetName::parse("lab")?,
        host: HostId::parse("web-1")?,
        uid: uid.clone(),
        position: position(sequence),
        issued_at: 0,
        plan_id: Digest([0; 32]),
        previous: None,
        spec_revision: by.into(),
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

#[tokio::test(flavor = "multi_thread")]
async fn serve_of_a_controller_with_another_log_leaves_a_later_declaration_where_it_is() -> Result<()> {
    let mut bed = bed_without_serve().await?;
    let publisher = Publisher::connect(&bed.broker.fleet).await?;
    let admin = link::connect(&bed.broker.fleet, Member::Admin).await?;
    let (uid, subject) = (bed.uid.clone(), subjects::declaration(&bed.uid));
    let held = async || publish::held(&admin, subjects::DECLARATIONS, &subject).await;
    issue(&bed, declaration(&bed.broker, &uid, 1)?).await?;
    // The other's of the same number, and the other's later one. `serve` compares once before it is there.
    for sequence in [1, 2] {
        let others = declaration_by(&bed.broker, &uid, sequence, "another log")?;
        assert!(publisher.publish_declaration(&uid, position(sequence), &others).await?.fresh);
        bed.serve().await?;
        assert_eq!(held().await?, Some(others));
        let figures = bed.page("/metrics").await?;
        assert!(figures.contains("replicator_declarations_overtaken 1"), "{figures}");
    }
    // The control: what is later than the other's is published.
    let later = declaration(&bed.broker, &uid, 3)?;
    issue(&bed, declaration(&bed.broker, &uid, 2)?).await?;
    issue(&bed, later.clone()).await?;
    bed.serve().await?;
    assert_eq!(held().await?, Some(later));
    assert!(bed.page("/metrics").await?.contains("replicator_declarations_overtaken 0"));
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
