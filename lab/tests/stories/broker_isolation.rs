//! A host with its own credential, against the broker configuration we write: it reads, writes, evicts, injects
//! and consumes nothing of another host. Each attack has a control that succeeds.

use std::time::Duration;

use anyhow::Result;
use async_nats::jetstream::{self, stream::DirectGetErrorKind};
use async_nats::{Client, HeaderMap};
use bytes::Bytes;
use futures_util::StreamExt as _;
use replicator::keys::accounts::Member;
use replicator::{link, publisher::streams};
use replicator_lab::nats::{Broker, Host};
use replicator_lab::wait;
use replicator_protocol::ids::HostUid;
use replicator_protocol::subjects;

/// How long an answer that must not come is waited for; those that come take milliseconds.
const QUIET: Duration = Duration::from_millis(400);

struct Bed {
    broker: Broker,
    admin: Client,
    mallory: Host,
    m: HostUid,
    alice: Host,
    a: HostUid,
}

fn uid(digit: &str) -> HostUid {
    HostUid::parse(&digit.repeat(32)).unwrap()
}

async fn bed() -> Result<Bed> {
    let broker = Broker::start().await?;
    let admin = link::connect(&broker.fleet, Member::Admin).await?;
    streams::ensure(&admin, &streams::wanted()).await?;
    let (m, a) = (uid("a"), uid("b"));
    let (mallory, alice) = (broker.host(&m).await?, broker.host(&a).await?);
    Ok(Bed { broker, admin, mallory, m, alice, a })
}

async fn put(admin: &Client, subject: String, payload: &'static str) -> Result<()> {
    jetstream::new(admin.clone()).publish(subject, payload.into()).await?.await?;
    Ok(())
}

/// A direct get as the agent makes it.
async fn get(client: &Client, stream: &str, subject: &str) -> Result<Bytes, DirectGetErrorKind> {
    let stream = jetstream::new(client.clone()).get_stream_no_info(stream).await.unwrap();
    stream.direct_get_last_for_subject(subject).await.map(|message| message.payload).map_err(|error| error.kind())
}

/// Whether a request is answered at all.
async fn answered(client: &Client, subject: &str, payload: &'static str) -> bool {
    let asked = client.request(subject.to_owned(), payload.into());
    matches!(tokio::time::timeout(QUIET, asked).await, Ok(Ok(_)))
}

async fn messages(admin: &Client, stream: &str) -> Result<u64> {
    Ok(jetstream::new(admin.clone()).get_stream(stream).await?.cached_info().state.messages)
}

#[tokio::test(flavor = "multi_thread")]
async fn host_reads_its_own_declaration_and_no_other() -> Result<()> {
    let bed = bed().await?;
    put(&bed.admin, subjects::declaration(&bed.m), "for mallory").await?;
    put(&bed.admin, subjects::declaration(&bed.a), "for alice").await?;
    put(&bed.admin, subjects::keyring(1), "keyring").await?;
    let own = get(&bed.mallory.client, subjects::DECLARATIONS, &subjects::declaration(&bed.m)).await;
    assert_eq!(own.unwrap(), "for mallory", "the control");
    let keyring = get(&bed.mallory.client, subjects::KEYRINGS, &subjects::keyring(1)).await;
    assert_eq!(keyring.unwrap(), "keyring", "the control");
    for subject in [subjects::declaration(&bed.a), "decl.*".into(), "decl.>".into()] {
        let got = get(&bed.mallory.client, subjects::DECLARATIONS, &subject).await;
        assert!(got.is_err(), "{subject}: {got:?}");
    }
    // The bare form names what it wants in its body, where no permission can see it.
    for stream in [subjects::DECLARATIONS, subjects::EVENTS, subjects::RECEIPTS, subjects::KEYRINGS] {
        let bare = format!("$JS.API.DIRECT.GET.{stream}");
        assert!(!answered(&bed.mallory.client, &bare, r#"{"seq":1}"#).await, "{bare}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn host_hears_its_own_wake_up_and_no_other() -> Result<()> {
    let bed = bed().await?;
    let mut own = bed.mallory.client.subscribe(subjects::declaration(&bed.m)).await?;
    let mut foreign = Vec::new();
    for subject in [
        subjects::declaration(&bed.a),
        subjects::events(&bed.a),
        subjects::receipt(&bed.a),
        subjects::heartbeat(&bed.a),
        "decl.*".into(),
        ">".into(),
        "_INBOX.>".into(),
        format!("{}.>", subjects::inbox_prefix(&bed.a)),
    ] {
        foreign.push(bed.mallory.client.subscribe(subject).await?);
    }
    bed.mallory.client.flush().await?;
    put(&bed.admin, subjects::declaration(&bed.a), "for alice").await?;
    put(&bed.admin, subjects::declaration(&bed.m), "for mallory").await?;
    bed.alice.client.publish(subjects::events(&bed.a), "events".into()).await?;
    bed.alice.client.publish(subjects::heartbeat(&bed.a), "beat".into()).await?;
    let _answer = get(&bed.alice.client, subjects::DECLARATIONS, &subjects::declaration(&bed.a)).await;
    let woken = tokio::time::timeout(Duration::from_secs(2), own.next()).await?;
    assert_eq!(woken.unwrap().payload, "for mallory", "the control");
    for mut heard in foreign {
        let heard = tokio::time::timeout(QUIET, heard.next()).await;
        // A refused subscription may end; what must not come is a message.
        assert!(!matches!(heard, Ok(Some(_))), "{heard:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn host_publishes_its_own_events_and_nothing_else() -> Result<()> {
    let bed = bed().await?;
    let context = jetstream::new(bed.mallory.client.clone());
    context.publish(subjects::events(&bed.m), "mine".into()).await?.await?;
    assert_eq!(messages(&bed.admin, subjects::EVENTS).await?, 1, "the control");
    for subject in [
        subjects::events(&bed.a),
        subjects::declaration(&bed.a),
        subjects::declaration(&bed.m),
        subjects::receipt(&bed.a),
        subjects::receipt(&bed.m),
        subjects::heartbeat(&bed.a),
        subjects::keyring(1),
        subjects::keyring(2),
    ] {
        assert!(!answered(&bed.mallory.client, &subject, "forged").await, "{subject}");
    }
    assert_eq!(messages(&bed.admin, subjects::EVENTS).await?, 1);
    for stream in [subjects::DECLARATIONS, subjects::RECEIPTS, subjects::KEYRINGS] {
        assert_eq!(messages(&bed.admin, stream).await?, 0, "{stream}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn reply_to_another_hosts_subject_writes_nothing_there() -> Result<()> {
    let bed = bed().await?;
    put(&bed.admin, subjects::declaration(&bed.m), "for mallory").await?;
    put(&bed.admin, subjects::declaration(&bed.a), "for alice").await?;
    // The control: inside the account of the streams, the same request does write where its reply points.
    let (own, third) = (subjects::declaration(&bed.m), subjects::declaration(&uid("c")));
    let request = subjects::direct_get(subjects::DECLARATIONS, &own);
    bed.admin.publish_with_reply(request, third.clone(), Bytes::new()).await?;
    wait::until("the attack works inside one account", Duration::from_secs(5), async || {
        Ok(get(&bed.admin, subjects::DECLARATIONS, &third).await.ok())
    })
    .await?;
    let targets = [
        subjects::declaration(&bed.a),
        subjects::events(&bed.a),
        subjects::receipt(&bed.a),
        subjects::keyring(1),
        subjects::declaration(&bed.m),
        subjects::receipt(&bed.m),
    ];
    let requests = [
        subjects::direct_get(subjects::DECLARATIONS, &subjects::declaration(&bed.m)),
        subjects::events(&bed.m),
        subjects::heartbeat(&bed.m),
    ];
    // Twelve were enough to evict a declaration where hosts shared an account.
    for target in &targets {
        for request in &requests {
            for _ in 0..12 {
                let client = &bed.mallory.client;
                client.publish_with_reply(request.clone(), target.clone(), Bytes::new()).await?;
            }
        }
    }
    bed.mallory.client.flush().await?;
    // The control: every one of its own events is taken, so every answer was sent somewhere.
    let sent = 12 * u64::try_from(targets.len())?;
    wait::until("the host's own events are stored", Duration::from_secs(20), async || {
        Ok((messages(&bed.admin, subjects::EVENTS).await? >= sent).then_some(()))
    })
    .await?;
    let alice = get(&bed.alice.client, subjects::DECLARATIONS, &subjects::declaration(&bed.a)).await;
    assert_eq!(alice.unwrap(), "for alice");
    assert_eq!(messages(&bed.admin, subjects::DECLARATIONS).await?, 3);
    assert_eq!(messages(&bed.admin, subjects::RECEIPTS).await?, 0);
    assert_eq!(messages(&bed.admin, subjects::KEYRINGS).await?, 0);
    let alices = get(&bed.admin, subjects::EVENTS, &subjects::events(&bed.a)).await;
    assert_eq!(alices.unwrap_err(), DirectGetErrorKind::NotFound);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn squatted_message_id_swallows_no_batch_whose_id_is_its_hash() -> Result<()> {
    let bed = bed().await?;
    let publish = async |host: &Host, uid: &HostUid, id: &str, payload: &'static str| -> Result<bool> {
        let mut headers = HeaderMap::new();
        headers.insert("Nats-Msg-Id", id);
        let context = jetstream::new(host.client.clone());
        let sent = context.publish_with_headers(subjects::events(uid), headers, payload.into()).await?;
        Ok(sent.await?.duplicate)
    };
    assert!(!publish(&bed.mallory, &bed.m, "guess", "squat").await?);
    assert!(publish(&bed.alice, &bed.a, "guess", "guessable").await?, "the control: one window for all hosts");
    // What a host uses is the hash of bytes it has signed, which nobody else has seen.
    let id = replicator_protocol::ids::Digest::of(b"a signed batch").to_string();
    assert!(!publish(&bed.alice, &bed.a, &id, "a signed batch").await?);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn host_makes_no_consumer_and_sees_no_stream() -> Result<()> {
    let bed = bed().await?;
    for subject in [
        "$JS.API.INFO",
        "$JS.API.STREAM.NAMES",
        "$JS.API.STREAM.LIST",
        "$JS.API.STREAM.INFO.EVT",
        "$JS.API.STREAM.INFO.DECL",
        "$JS.API.STREAM.CREATE.MINE",
        "$JS.API.STREAM.PURGE.DECL",
        "$JS.API.STREAM.DELETE.DECL",
        "$JS.API.STREAM.MSG.GET.DECL",
        "$JS.API.CONSUMER.CREATE.EVT",
        "$JS.API.CONSUMER.CREATE.EVT.mine",
        "$JS.API.CONSUMER.DURABLE.CREATE.EVT.mine",
        "$JS.API.CONSUMER.MSG.NEXT.EVT.collector",
        "$JS.API.CONSUMER.LIST.EVT",
        "$SYS.REQ.SERVER.PING",
        "$SYS.REQ.ACCOUNT.PING.CONNZ",
        "$SYS.REQ.CLAIMS.UPDATE",
    ] {
        assert!(!answered(&bed.mallory.client, subject, "{}").await, "{subject}");
    }
    let event = answered(&bed.mallory.client, &subjects::events(&bed.m), "mine").await;
    assert!(event, "the control: a request it may make is answered");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_that_steer_the_stream_do_nothing() -> Result<()> {
    let bed = bed().await?;
    let context = jetstream::new(bed.alice.client.clone());
    context.publish(subjects::events(&bed.a), "alice's".into()).await?.await?;
    let context = jetstream::new(bed.mallory.client.clone());
    for (name, value) in [
        ("Nats-Rollup", "all"),
        ("Nats-Rollup", "sub"),
        ("Nats-TTL", "1s"),
        ("Nats-Schedule", "@at 2030-01-01T00:00:00Z"),
    ] {
        let mut headers = HeaderMap::new();
        headers.insert(name, value);
        let sent = context.publish_with_headers(subjects::events(&bed.m), headers, "steered".into()).await?.await;
        assert!(sent.is_err(), "{name}: {value} was taken: {sent:?}");
    }
    let kept = get(&bed.admin, subjects::EVENTS, &subjects::events(&bed.a)).await;
    assert_eq!(kept.unwrap(), "alice's");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn host_is_admitted_without_a_reload_and_a_stranger_is_not() -> Result<()> {
    let bed = bed().await?;
    let log = std::fs::read_to_string(bed.broker.log())?;
    assert!(!log.contains("Reloaded"), "{log}");
    let late = bed.broker.host(&uid("c")).await?;
    jetstream::new(late.client).publish(subjects::events(&uid("c")), "late".into()).await?.await?;
    // Another host's JWT with a key of one's own; a key of one's own with nothing.
    let own_inbox = subjects::inbox_prefix(&bed.m);
    assert!(bed.broker.connect_as(&bed.alice.jwt, &bed.mallory.seed, &own_inbox).await.is_err());
    assert!(bed.broker.connect_as("", &bed.mallory.seed, &own_inbox).await.is_err());
    assert!(bed.broker.connect_as(&bed.mallory.jwt, &bed.mallory.seed, &own_inbox).await.is_ok(), "the control");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn broker_speaks_nothing_before_tls() -> Result<()> {
    use std::io::Read as _;
    let bed = bed().await?;
    let mut plain = std::net::TcpStream::connect(bed.broker.listen)?;
    plain.set_read_timeout(Some(QUIET))?;
    let mut greeting = [0; 4];
    let read = plain.read(&mut greeting);
    assert!(!matches!(read, Ok(1..)), "a greeting in clear: {greeting:?}");
    Ok(())
}
