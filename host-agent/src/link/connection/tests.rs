use std::io;
use std::path::Path;
use std::sync::Arc;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{oneshot, watch};

use super::*;
use crate::link::{self, Ends};
use crate::testing::membership;

/// Takes a connection as a broker of `version` does, and says no more than a handshake needs.
async fn greet(stream: &mut TcpStream, version: &str) -> io::Result<()> {
    let greeting = format!(
        "INFO {{\"server_id\":\"ANY\",\"version\":\"{version}\",\"proto\":1,\"host\":\"127.0.0.1\",\"port\":4222,\
         \"headers\":true,\"max_payload\":1048576,\"client_id\":1,\"nonce\":\"AAAAAAAAAAA\"}}\r\n"
    );
    stream.write_all(greeting.as_bytes()).await?;
    let (mut heard, mut text) = ([0; 4096], Vec::new());
    while !text.ends_with(b"PING\r\n") {
        match stream.read(&mut heard).await? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => text.extend_from_slice(&heard[..read]),
        }
    }
    stream.write_all(b"PONG\r\n").await
}

/// Until the other side hangs up.
async fn left(mut stream: TcpStream) {
    let mut heard = [0; 4096];
    while stream.read(&mut heard).await.is_ok_and(|read| read > 0) {}
}

/// A broker of `version` for one connection. Returns its address.
async fn broker(version: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await?;
        greet(&mut stream, version).await?;
        left(stream).await;
        io::Result::Ok(())
    });
    format!("nats://{address}")
}

/// What an agent connects to the broker at `url` with; its credential lies in `folder`.
fn settings(folder: &Path, url: String) -> Settings {
    let (jwt, seed) = (folder.join("jwt"), folder.join("seed"));
    std::fs::write(&jwt, "a.b.c").unwrap();
    std::fs::write(&seed, [7; 32]).unwrap();
    let broker = Broker { urls: vec![url], server_name: String::new(), ca: String::new(), insecure_loopback: true };
    Settings { broker, jwt, seed, clock_fault: Arc::new(|_| {}), allow_old_broker: false }
}

/// Whether an agent that puts up with old brokers or not connects to a broker of `version`, or why not.
async fn connects(version: &'static str, allow_old_broker: bool) -> Result<(), String> {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings { allow_old_broker, ..settings(folder.path(), broker(version).await) };
    let Ends { keeper, .. } = link::ends(&membership().uid);
    let (events, _heard) = mpsc::channel(16);
    connect(&keeper, &settings, None, events).await.map(drop).map_err(|error| chain(&error))
}

#[tokio::test]
async fn broker_that_is_too_old_is_refused_with_its_version_and_put_up_with_on_demand() {
    let said = connects("2.9.10", false).await.unwrap_err();
    assert_eq!(said, "the broker is too old (got nats-server 2.9.10, need 2.12 or later)");
    connects("2.9.10", true).await.unwrap();
    connects("2.12.0", false).await.unwrap();
}

#[tokio::test]
async fn broker_that_is_older_at_a_reconnection_is_left_and_refused_from_then_on() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("nats://{}", listener.local_addr().unwrap());
    let (hang_up, hung_up) = oneshot::channel::<()>();
    let (left_in, mut times_left) = watch::channel(0);
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await?;
        greet(&mut stream, "2.12.0").await?;
        let _told = hung_up.await;
        drop(stream);
        while !left_in.is_closed() {
            let (mut stream, _) = listener.accept().await?;
            greet(&mut stream, "2.9.10").await?;
            left(stream).await;
            left_in.send_modify(|times| *times += 1);
        }
        io::Result::Ok(())
    });
    let folder = tempfile::tempdir().unwrap();
    let Ends { mut link, keeper, wakes: _wakes } = link::ends(&membership().uid);
    let keeping = tokio::spawn(keep(keeper, settings(folder.path(), url)));
    let replaced = async {
        link.changed().await;
        assert!(link.is_up(), "the control");
        hang_up.send(()).unwrap();
        link.changed().await;
        assert!(!link.is_up(), "the connection that was made again is not used");
        // Once at the reconnection, and then whenever a new one is tried.
        times_left.wait_for(|times| *times > 1).await.unwrap();
        assert!(!link.is_up());
    };
    tokio::time::timeout(Duration::from_secs(30), replaced).await.unwrap();
    keeping.abort();
}
