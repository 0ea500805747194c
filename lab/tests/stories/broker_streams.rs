//! An administrator who changes a stream, by mistake or not, is found out field by field; a stream that fills up is
//! told of before it is full.

use anyhow::{Context as _, Result};
use async_nats::Client;
use async_nats::jetstream::stream::Config;
use async_nats::jetstream::{self, Context};
use replicator::keys::accounts::Member;
use replicator::link;
use replicator::publisher::publish;
use replicator::publisher::streams::{Fill, ensure, wanted};
use replicator_lab::nats::Broker;
use serde_json::{Value, json};

async fn admin(broker: &Broker) -> Result<Client> {
    let admin = link::connect(&broker.fleet, Member::Admin).await?;
    let made = ensure(&admin, &wanted()).await?.made;
    assert_eq!(made, ["DECL", "EVT", "RCPT", "KEYS"]);
    Ok(admin)
}

async fn told(context: &Context, stream: &str) -> Result<Value> {
    Ok(context.request::<_, _, Value>(format!("STREAM.INFO.{stream}"), &()).await?["config"].clone())
}

/// Changes one field of a stream as an administrator's tool does.
async fn change(context: &Context, stream: &str, field: &str, value: Value) -> Result<()> {
    let mut config = told(context, stream).await?;
    config[field] = value;
    let answer: Value = context.request(format!("STREAM.UPDATE.{stream}"), &config).await?;
    anyhow::ensure!(answer["error"].is_null(), "{field}: {answer}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn stream_in_which_messages_could_be_lost_or_diverted_is_put_right() -> Result<()> {
    let broker = Broker::start().await?;
    let admin = admin(&broker).await?;
    let context = jetstream::new(admin.clone());
    let other = Config { name: "OTHER".into(), subjects: vec!["other".into()], ..Config::default() };
    context.create_stream(other).await?;
    let changes = [
        ("EVT", "max_bytes", json!(1024 * 1024)),
        ("EVT", "max_age", json!(130_000_000_000_u64)),
        ("EVT", "max_msgs", json!(10)),
        ("EVT", "max_msgs_per_subject", json!(1)),
        ("EVT", "discard_new_per_subject", json!(false)),
        ("EVT", "max_consumers", json!(5)),
        ("EVT", "duplicate_window", json!(1_000_000_000_u64)),
        ("EVT", "republish", json!({ "src": "evt.*", "dest": "copy.evt.{{wildcard(1)}}" })),
        ("EVT", "subject_transform", json!({ "src": "evt.*", "dest": "evt.gone" })),
        ("EVT", "sources", json!([{ "name": "OTHER" }])),
        ("EVT", "subjects", json!(["evt.*", "more.*"])),
        ("EVT", "no_ack", json!(true)),
        ("EVT", "description", json!("mine")),
        ("EVT", "metadata", json!({ "owner": "me" })),
        ("DECL", "max_msg_size", json!(10)),
        ("DECL", "allow_direct", json!(false)),
        ("DECL", "discard", json!("new")),
        ("RCPT", "max_msgs_per_subject", json!(8)),
        ("KEYS", "compression", json!("s2")),
    ];
    for (stream, field, value) in changes {
        let before = told(&context, stream).await?;
        change(&context, stream, field, value).await?;
        assert_ne!(told(&context, stream).await?, before, "the control: {field} is changed");
        let ensured = ensure(&admin, &wanted()).await.with_context(|| format!("{stream} {field}"))?;
        let corrected: Vec<_> = ensured.corrected.iter().map(|one| (one.name.as_str(), &one.fields[..])).collect();
        assert_eq!(corrected, [(stream, &[field.to_owned()][..])]);
        assert_eq!(told(&context, stream).await?, before, "{field}");
    }
    assert_eq!(ensure(&admin, &wanted()).await?.corrected, [], "nothing is left");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_put_right_is_named() -> Result<()> {
    let broker = Broker::start().await?;
    let admin = admin(&broker).await?;
    change(&jetstream::new(admin.clone()), "EVT", "sealed", json!(true)).await?;
    let error = ensure(&admin, &wanted()).await.unwrap_err();
    assert!(error.to_string().contains("`EVT`"), "{error}");
    assert!(!error.hint().is_empty());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn stream_at_seventy_percent_of_its_bytes_alarms() -> Result<()> {
    let broker = Broker::start().await?;
    let admin = link::connect(&broker.fleet, Member::Admin).await?;
    let mut small = wanted();
    let room = 1024 * 1024;
    small[0].max_bytes = room;
    let fill = async || -> Result<Fill> {
        ensure(&admin, &small).await?.fills.into_iter().find(|fill| fill.stream == "DECL").context("no DECL")
    };
    assert!(!fill().await?.alarms(), "the control: it is empty");
    let message = vec![7; 300 * 1024].into();
    for host in ["decl.a", "decl.b"] {
        publish::put(&admin, host.into(), &message).await?;
    }
    assert!(!fill().await?.alarms(), "{:?}", fill().await?);
    publish::put(&admin, "decl.c".into(), &message).await?;
    let full = fill().await?;
    assert!(full.alarms() && full.percent() < 100 && full.room == u64::try_from(room)?, "{full:?}");
    Ok(())
}
