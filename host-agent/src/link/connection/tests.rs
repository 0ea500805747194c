use std::sync::Arc;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::*;
use crate::link::{self, Ends};
use crate::testing::membership;

/// A broker that greets as one of `version` does, and says no more than a handshake needs. Returns its address.
async fn broker(version: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await?;
        let greeting = format!(
            "INFO {{\"server_id\":\"ANY\",\"version\":\"{version}\",\"proto\":1,\"host\":\"127.0.0.1\",\"port\":4222,\
             \"headers\":true,\"max_payload\":1048576,\"client_id\":1,\"nonce\":\"AAAAAAAAAAA\"}}\r\n"
        );
        stream.write_all(greeting.as_bytes()).await?;
        let (mut heard, mut text) = ([0; 4096], Vec::new());
        while !text.ends_with(b"PING\r\n") {
            match stream.read(&mut heard).await? {
                0 => return Ok(()),
                read => text.extend_from_slice(&heard[..read]),
            }
        }
        stream.write_all(b"PONG\r\n").await?;
        // Until the other side hangs up.
        let _ended = stream.read(&mut heard).await;
        std::io::Result::Ok(())
    });
    format!("nats://{address}")
}

/// Whether an agent that puts up with old brokers or not connects to a broker of `version`, or why not.
async fn connects(version: &'static str, allow_old_broker: bool) -> Result<(), String> {
    let folder = tempfile::tempdir().unwrap();
    let (jwt, seed) = (folder.path().join("jwt"), folder.path().join("seed"));
    std::fs::write(&jwt, "a.b.c").unwrap();
    std::fs::write(&seed, [7; 32]).unwrap();
    let urls = vec![broker(version).await];
    let broker = Broker { urls, server_name: String::new(), ca: String::new(), insecure_loopback: true };
    let settings = Settings { broker, jwt, seed, clock_fault: Arc::new(|_| {}), allow_old_broker };
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
