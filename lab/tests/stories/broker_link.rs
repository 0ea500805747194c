//! The way to the broker: who is believed there, which brokers are not, and a certificate renewed as it runs.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::process::Stdio;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result};
use replicator::home::Home;
use replicator::keys::accounts::Member;
use replicator::keys::broker::{Transport, Wanted, init};
use replicator::keys::renewal::{Renewed, renew};
use replicator::link::{self, LinkError};
use replicator_lab::fleet::binary;
use replicator_lab::nats::{self, Broker};
use replicator_lab::wait;
use tokio::io::{AsyncBufReadExt as _, BufReader};

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap()
}

/// Whether the controller is let in now.
async fn connects(broker: &Broker) -> Result<(), LinkError> {
    Box::pin(link::connect(&broker.fleet, Member::Controller)).await.map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn certificate_is_renewed_without_a_restart() -> Result<()> {
    let broker = Broker::start().await?;
    let kept = link::connect(&broker.fleet, Member::Controller).await?;
    connects(&broker).await?;
    assert!(matches!(renew(&broker.fleet, now())?, Renewed::Told(_)));
    wait::until("the broker has read it", Duration::from_secs(5), async || {
        Ok(std::fs::read_to_string(broker.log())?.contains("Reloaded: tls").then_some(()))
    })
    .await?;
    connects(&broker).await?;
    kept.flush().await?;
    // A host admitted before and one admitted after: accounts are not part of what is reloaded.
    broker.host(&"c".repeat(32).parse()?).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn broker_under_another_authority_is_not_believed() -> Result<()> {
    let (ours, other) = (Broker::start().await?, Broker::start().await?);
    connects(&ours).await?;
    let settings = |broker: &Broker| std::fs::read_to_string(broker.fleet.settings());
    let (mine, theirs) = (settings(&ours)?, settings(&other)?);
    let moved = mine.replace(&ours.listen.port().to_string(), &other.listen.port().to_string());
    std::fs::write(ours.fleet.settings(), moved)?;
    let refused = connects(&ours).await.err().context("the other broker was believed")?;
    assert!(matches!(refused, LinkError::Certificate { .. }), "{refused:?}");
    // With its authority, and a credential it does not know.
    std::fs::write(ours.fleet.settings(), theirs)?;
    let refused = connects(&ours).await.err().context("the other broker took the credential")?;
    assert!(matches!(refused, LinkError::Denied { .. }), "{refused:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn broker_that_is_not_there_is_told_of_with_what_to_start() -> Result<()> {
    let mut broker = Broker::start().await?;
    broker.kill();
    let refused = connects(&broker).await.err().context("connected to nobody")?;
    assert!(matches!(refused, LinkError::Unreachable { .. }));
    assert!(refused.hint().contains("nats-server"), "{}", refused.hint());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn broker_older_than_2_12_is_refused_with_its_version() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let listen = listener.local_addr()?;
    let home = Home::at(folder.path().join("home"))?;
    let fleet = init(&home, &Wanted { fleet: "lab".parse()?, listen, transport: Transport::InsecureLoopback }, now())?;
    // Greets as Debian 12's broker does, and says no more than a handshake needs.
    std::thread::spawn(move || -> std::io::Result<()> {
        let (mut stream, _) = listener.accept()?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        stream.write_all(
            b"INFO {\"server_id\":\"OLD\",\"version\":\"2.9.10\",\"proto\":1,\"host\":\"127.0.0.1\",\"port\":4222,\"headers\":true,\
              \"max_payload\":1048576,\"client_id\":1,\"nonce\":\"AAAAAAAAAAA\"}\r\n",
        )?;
        let mut heard = [0; 4096];
        let mut text = Vec::new();
        while !text.windows(6).any(|six| six == b"PING\r\n") {
            let read = stream.read(&mut heard)?;
            if read == 0 {
                return Ok(());
            }
            text.extend_from_slice(&heard[..read]);
        }
        stream.write_all(b"PONG\r\n")?;
        // Until the other side hangs up, or for as long as a read may take.
        let _ended = stream.read(&mut heard);
        Ok(())
    });
    let refused = link::connect(&fleet, Member::Controller).await.err().context("an old broker was accepted")?;
    assert!(matches!(&refused, LinkError::TooOld { got } if got == "2.9.10"), "{refused:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn old_broker_of_the_distribution_is_refused_and_put_up_with_on_demand() -> Result<()> {
    let Some(program) = nats::old_binary() else {
        eprintln!("SKIPPED: there is no old broker; run `scripts/fetch-old-broker.sh`");
        return Ok(());
    };
    let broker = Broker::start_old(program).await?;
    let run = |more: &'static [&'static str]| {
        let mut command = tokio::process::Command::new(binary("replicator")?);
        command.args(["serve", "--listen", "127.0.0.1:0"]).args(more).env("REPLICATOR_HOME", broker.home.root());
        command.env("NO_COLOR", "1").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        anyhow::Ok(command.kill_on_drop(true).spawn()?)
    };
    let refused = tokio::time::timeout(Duration::from_secs(20), run(&[])?.wait_with_output()).await??;
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{said}");
    assert!(said.contains("the broker is too old (got nats-server 2.") && said.contains("need 2.12"), "{said}");
    assert!(said.contains("\nhint: install a current nats-server"), "{said}");
    // Asked to, it goes on with it, and says so.
    let mut allowed = run(&["--allow-old-broker"])?;
    let mut lines = BufReader::new(allowed.stderr.take().context("no stderr")?).lines();
    let first = tokio::time::timeout(Duration::from_secs(20), lines.next_line()).await??.context("it said nothing")?;
    assert!(first.contains("is put up with") && first.contains("got=\"2."), "{first}");
    Ok(())
}
