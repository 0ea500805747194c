//! What a host reports is receipted only once it is stored, is stored only if the host said it, and a broker
//! that lost everything is filled again with no operator.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, Result};
use async_nats::jetstream::{self, consumer};
use bytes::Bytes;
use ed25519_dalek::SigningKey;
use prost::Message as _;
use replicator::keys::accounts::Member;
use replicator::keys::signing::{self, Signer};
use replicator::keys::{Keyrings, certificates};
use replicator::link;
use replicator::publisher::publish;
use replicator::serve::chain::Head;
use replicator::serve::{self, Settings, Store};
use replicator::state::event::{Blob, Hash};
use replicator::state::{App, Event as Logged, Log};
use replicator_lab::nats::{Broker, Host};
use replicator_lab::wait;
use replicator_protocol::envelope::{Unverified, Verified, sign, verify};
use replicator_protocol::ids::{Digest, HostId, HostUid};
use replicator_protocol::subjects;
use replicator_protocol::wire::enrolment::HostCertificate;
use replicator_protocol::wire::event::event::Body;
use replicator_protocol::wire::event::{Event, EventBatch, Heartbeat, KeyringAccepted, Receipt};
use tokio_util::sync::CancellationToken;

/// Longest wait for one that comes: a few rounds, and the pause after a failed one.
const SOON: Duration = Duration::from_secs(20);

pub(crate) struct Bed {
    pub(crate) broker: Broker,
    host: Host,
    pub(crate) uid: HostUid,
    pub(crate) identity: SigningKey,
    certificate: Bytes,
    pages: SocketAddr,
    stop: CancellationToken,
}

impl Drop for Bed {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

async fn bed() -> Result<Bed> {
    let mut bed = bed_without_serve().await?;
    bed.serve().await?;
    Ok(bed)
}

/// A broker and a host that has an account there; nobody collects.
pub(crate) async fn bed_without_serve() -> Result<Bed> {
    let broker = Broker::start().await?;
    let (identity, uid) = (SigningKey::from_bytes(&[7; 32]), HostUid::parse(&"a".repeat(32))?);
    let certificate = HostCertificate {
        fleet: "lab".into(),
        host: "web-1".into(),
        uid: uid.to_string(),
        identity_key: Bytes::copy_from_slice(identity.verifying_key().as_bytes()),
        ..HostCertificate::default()
    };
    let certificate = sign(&certificate, &[&signing::load(&broker.fleet, Signer::Enrol)?]);
    certificates::keep(&broker.fleet, &uid, &certificate)?;
    let host = broker.host(&uid).await?;
    let (pages, stop) = (broker.listen, CancellationToken::new());
    Ok(Bed { broker, host, uid, identity, certificate, pages, stop })
}

async fn collect(broker: &Broker) -> Result<(SocketAddr, CancellationToken)> {
    let (home, stop) = (broker.home.clone(), CancellationToken::new());
    let settings = Settings { fleet: broker.fleet.clone(), listen: "127.0.0.1:0".parse()? };
    let (tell, told) = tokio::sync::oneshot::channel();
    let stopped = stop.clone();
    tokio::spawn(async move {
        let ready = |at| {
            let _heard = tell.send(at);
        };
        Box::pin(serve::serve(&home, settings, ready, stopped)).await
    });
    Ok((told.await.context("serve did not start")?, stop))
}

/// `count` linked events of one chain, numbers from 1.
pub(crate) fn history(uid: &HostUid, count: u64) -> Vec<Bytes> {
    let mut previous = Digest([0; 32]);
    let mut events = Vec::new();
    for number in 1..=count {
        let event = Event {
            host: uid.to_string(),
            chain: vec![1; 16].into(),
            number,
            previous: previous.0.to_vec().into(),
            body: Some(Body::KeyringAccepted(KeyringAccepted { version: number, hash: Bytes::new() })),
            ..Event::default()
        };
        let bytes = Bytes::from(event.encode_to_vec());
        previous = Digest::of(&bytes);
        events.push(bytes);
    }
    events
}

pub(crate) fn batch(uid: &HostUid, events: &[Bytes]) -> EventBatch {
    EventBatch { host: uid.to_string(), chain: vec![1; 16].into(), events: events.to_vec() }
}

impl Bed {
    /// Starts `serve`, in the place of one that runs, and waits until it serves.
    pub(crate) async fn serve(&mut self) -> Result<()> {
        self.stop.cancel();
        (self.pages, self.stop) = collect(&self.broker).await?;
        Ok(())
    }

    /// Publishes as the agent does, and waits for the broker's acknowledgement.
    pub(crate) async fn say(&self, batch: &EventBatch, key: &SigningKey) -> Result<()> {
        let context = jetstream::new(self.host.client.clone());
        context.publish(subjects::events(&self.uid), sign(batch, &[key])).await?.await?;
        Ok(())
    }

    /// Says that the host is alive, as the agent does.
    pub(crate) async fn beat(&self) -> Result<()> {
        let beat = Heartbeat { host: self.uid.to_string(), ..Heartbeat::default() };
        self.host.client.publish(subjects::heartbeat(&self.uid), sign(&beat, &[&self.identity])).await?;
        Ok(self.host.client.flush().await?)
    }

    /// The host's receipt, believed.
    pub(crate) async fn receipt(&self) -> Result<Option<Receipt>> {
        let stream = jetstream::new(self.host.client.clone()).get_stream_no_info(subjects::RECEIPTS).await?;
        let Ok(held) = stream.direct_get_last_for_subject(subjects::receipt(&self.uid)).await else { return Ok(None) };
        let keyring = Keyrings::load(&self.broker.fleet)?.current;
        let receipt: Verified<Receipt> = verify(&Unverified::new(held.payload), &keyring.at(0))?;
        Ok(Some((*receipt).clone()))
    }

    pub(crate) async fn receipt_for(&self, number: u64) -> Result<Receipt> {
        let look = async || Ok(self.receipt().await?.filter(|receipt| receipt.number == number));
        wait::until("a receipt", SOON, look).await
    }

    fn stored(&self) -> Result<Vec<(HostUid, Head)>> {
        Ok(Store::read_only(&self.broker.home.collected_events())?.heads()?)
    }

    /// A page of `serve`, with its head.
    pub(crate) async fn page(&self, path: &str) -> Result<String> {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let mut stream = tokio::net::TcpStream::connect(self.pages).await?;
        let request = format!("GET {path} HTTP/1.1\r\nhost: lab\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut page = String::new();
        stream.read_to_string(&mut page).await?;
        Ok(page)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn receipt_comes_only_after_the_durable_write() -> Result<()> {
    let bed = bed().await?;
    let history = history(&bed.uid, 5);
    let admin = link::connect(&bed.broker.fleet, Member::Admin).await?;
    let events = jetstream::new(admin).get_stream(subjects::EVENTS).await?;
    let collector = events.get_consumer("collector").await;
    let mut collector: consumer::PullConsumer = collector.map_err(anyhow::Error::from_boxed)?;
    // Another writer holds the store: nothing can be committed, although the broker takes everything.
    let other = rusqlite::Connection::open(bed.broker.home.collected_events())?;
    other.execute_batch("BEGIN IMMEDIATE")?;
    bed.say(&batch(&bed.uid, &history[..3]), &bed.identity).await?;
    // Handed out again: the collector had it, tried to store it, and gave up.
    wait::until("a second try", SOON, async || Ok((collector.info().await?.num_redelivered > 0).then_some(()))).await?;
    assert_eq!(bed.receipt().await?, None);
    other.execute_batch("ROLLBACK")?;
    let receipt = bed.receipt_for(3).await?;
    assert_eq!(receipt.hash, Digest::of(&history[2]).0[..]);
    assert_eq!(bed.stored()?[0].1.number, 3);
    // Sent again whole, and on: what is there is not stored twice.
    bed.say(&batch(&bed.uid, &history), &bed.identity).await?;
    bed.receipt_for(5).await?;
    let events = Store::read_only(&bed.broker.home.collected_events())?.events_after(0, None, 100)?;
    assert_eq!(events.len(), 5);
    let health = bed.page("/healthz").await?;
    assert!(health.starts_with("HTTP/1.1 200") && health.contains("\"healthy\":true"), "{health}");
    let figures = bed.page("/metrics").await?;
    assert!(figures.contains("replicator_events_stored_total 5"), "{figures}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn forged_and_broken_batches_are_neither_stored_nor_receipted() -> Result<()> {
    let bed = bed().await?;
    let history = history(&bed.uid, 4);
    let foreign = HostUid::parse(&"b".repeat(32))?;
    bed.say(&batch(&bed.uid, &history), &SigningKey::from_bytes(&[8; 32])).await?;
    bed.say(&batch(&foreign, &history), &bed.identity).await?;
    bed.say(&batch(&bed.uid, &history[2..]), &bed.identity).await?;
    let codes = async || {
        let faults = Store::read_only(&bed.broker.home.collected_events())?.faults()?;
        let codes: Vec<_> = faults.into_iter().map(|(_, _, code, _)| code).collect();
        Ok((codes.len() == 3).then_some(codes))
    };
    assert_eq!(wait::until("three faults", SOON, codes).await?, ["untrusted-key", "wrong-host", "chain-gap"]);
    assert!(bed.stored()?.is_empty());
    assert_eq!(bed.receipt().await?.map(|receipt| receipt.number), Some(0), "the gap is told, nothing is settled");
    bed.say(&batch(&bed.uid, &history), &bed.identity).await?;
    bed.receipt_for(4).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn rebuilt_broker_is_given_everything_again() -> Result<()> {
    let mut bed = bed().await?;
    let history = history(&bed.uid, 2);
    bed.say(&batch(&bed.uid, &history), &bed.identity).await?;
    bed.receipt_for(2).await?;
    let issued = Bytes::from_static(b"as it was signed");
    issue(&bed, issued.clone()).await?;

    bed.broker.wipe()?;
    bed.broker.resume().await?;
    // With the same credential as before: its account is there again, and so is all it may see.
    let inbox = subjects::inbox_prefix(&bed.uid);
    let connect = async || Ok(bed.broker.connect_as(&bed.host.jwt, &bed.host.seed, &inbox).await.ok());
    bed.host.client = wait::until("the account", SOON, connect).await?;
    bed.receipt_for(2).await?;
    let admin = link::connect(&bed.broker.fleet, Member::Admin).await?;
    let held = async |stream: &str, subject: String| {
        let look = async || Ok(publish::held(&admin, stream, &subject).await?);
        wait::until("what was lost", SOON, look).await
    };
    assert_eq!(held(subjects::DECLARATIONS, subjects::declaration(&bed.uid)).await?, issued);
    let keyrings = Keyrings::load(&bed.broker.fleet)?;
    assert_eq!(held(subjects::KEYRINGS, subjects::keyring(1)).await?, keyrings.envelopes[0]);
    // And it goes on from there.
    let more = self::history(&bed.uid, 3);
    bed.say(&batch(&bed.uid, &more), &bed.identity).await?;
    bed.receipt_for(3).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn collector_that_lost_its_store_asks_for_all_of_it_again() -> Result<()> {
    let mut bed = bed().await?;
    let history = history(&bed.uid, 3);
    bed.say(&batch(&bed.uid, &history), &bed.identity).await?;
    bed.receipt_for(3).await?;
    bed.stop.cancel();
    let look = async || Ok(tokio::net::TcpStream::connect(bed.pages).await.is_err().then_some(()));
    wait::until("the end of serve", SOON, look).await?;
    let database = bed.broker.home.collected_events();
    for name in ["events.db", "events.db-wal", "events.db-shm"] {
        match std::fs::remove_file(database.with_file_name(name)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            Ok(()) | Err(_) => {}
        }
    }
    bed.serve().await?;
    let told = bed.receipt_for(0).await?;
    assert_eq!((&told.chain[..], &told.hash[..]), (&[1; 16][..], &[0; 32][..]));
    // Not the same bytes as before: the broker drops those for two minutes.
    bed.say(&batch(&bed.uid, &history[..2]), &bed.identity).await?;
    bed.say(&batch(&bed.uid, &history[2..]), &bed.identity).await?;
    bed.receipt_for(3).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn later_keyring_is_in_force_and_published_without_a_restart() -> Result<()> {
    let bed = bed().await?;
    let first = Keyrings::load(&bed.broker.fleet)?.envelopes.remove(0);
    let signed = replicator_protocol::wire::envelope::Envelope::decode(first)?;
    let mut second = replicator_protocol::wire::keyring::Keyring::decode(signed.payload)?;
    second.version = 2;
    // It takes the enrolment key's role away: whom that one certified is believed no more.
    let role = i32::from(replicator_protocol::wire::keyring::Role::Enrol);
    second.keys.retain(|key| key.role != role);
    // And it replaces the key of the receipts.
    let collect = SigningKey::from_bytes(&[9; 32]);
    let role = i32::from(replicator_protocol::wire::keyring::Role::Collect);
    for key in second.keys.iter_mut().filter(|key| key.role == role) {
        key.public_key = Bytes::copy_from_slice(collect.verifying_key().as_bytes());
    }
    let second = sign(&second, &[&signing::load(&bed.broker.fleet, Signer::Root)?]);
    let folder = bed.broker.fleet.root().join("keyrings");
    bed.say(&batch(&bed.uid, &history(&bed.uid, 1)), &bed.identity).await?;
    bed.receipt_for(1).await?;

    std::fs::write(signing::path(&bed.broker.fleet, Signer::Collect), collect.to_bytes())?;
    std::fs::create_dir(&folder)?;
    std::fs::write(folder.join("keyring.2"), &second)?;
    let admin = link::connect(&bed.broker.fleet, Member::Admin).await?;
    let held = async || Ok(publish::held(&admin, subjects::KEYRINGS, &subjects::keyring(2)).await?);
    assert_eq!(wait::until("the second keyring", SOON, held).await?, second);
    let believed = async || Ok(bed.receipt().await.ok().flatten());
    assert_eq!(wait::until("a receipt under it", SOON, believed).await?.number, 1);
    bed.say(&batch(&bed.uid, &history(&bed.uid, 2)), &bed.identity).await?;
    let refused = "replicator_messages_refused_total{code=\"untrusted-key\"} 1";
    let told = async || Ok(bed.page("/metrics").await?.contains(refused).then_some(()));
    wait::until("what its host says is refused", SOON, told).await?;
    assert_eq!(bed.stored()?[0].1.number, 1);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn nearly_full_stream_is_told_by_a_running_serve() -> Result<()> {
    let mut bed = bed().await?;
    let full = "replicator_broker_stream_alarm{stream=\"RCPT\"} 1";
    assert!(!bed.page("/metrics").await?.contains(full), "the control: it is empty");
    let admin = link::connect(&bed.broker.fleet, Member::Admin).await?;
    let message = Bytes::from(vec![7; 600 * 1024]);
    for number in 0..80 {
        publish::put(&admin, format!("rcpt.{number}"), &message).await?;
    }
    // A connection made anew is a reason to look; else it does so twice a minute.
    bed.broker.kill();
    bed.broker.resume().await?;
    let told = async || Ok(bed.page("/metrics").await?.contains(full).then_some(()));
    wait::until("the alarm", SOON, told).await?;
    let mut command = tokio::process::Command::new(replicator_lab::fleet::binary("replicator")?);
    command.args(["fleet", "status"]).env("REPLICATOR_HOME", bed.broker.home.root()).env("NO_COLOR", "1");
    let ended = replicator_lab::verb::ended(command).await?;
    assert!(ended.done && ended.said.contains("the broker's stream RCPT is 7"), "{}", ended.said);
    Ok(())
}

/// Issues `envelope` as the controller does its next declaration, without publishing it.
pub(crate) async fn issue(bed: &Bed, envelope: Bytes) -> Result<()> {
    let (app, host) = (App::parse("lab")?, HostId::parse("web-1")?);
    let log = Log::local(&bed.broker.home, &app, &host)?;
    let mut history = log.read().await?;
    if history.entries.is_empty() {
        let fleet = Keyrings::load(&bed.broker.fleet)?.current.fleet().clone();
        let certificate = Blob(bed.certificate.clone());
        for event in [Logged::HostDefined { fleet, uid: bed.uid.clone() }, Logged::HostAdmitted { certificate }] {
            history = log.append(history, event, 0).await?;
        }
    }
    let (position, hash) = (history.state.next_position(), Hash(Digest::of(&envelope)));
    let envelope = Blob(envelope);
    let event = Logged::DeclarationIssued { position, hash, intent_hash: hash, plan_id: hash, envelope };
    log.append(history, event, 0).await?;
    Ok(())
}
