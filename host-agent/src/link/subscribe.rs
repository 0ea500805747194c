//! Being woken: a message on one of the host's two subjects says that there is something to fetch.

use async_nats::{Client, Event, Subscriber};
use futures_util::StreamExt as _;
use replicator_protocol::subjects;
use tokio::sync::mpsc;

use super::{Keeper, Wake};

/// Passes wake-ups on until the connection has ended for good or nobody listens.
///
/// What the message says does not count: the host fetches what the broker has stored. Ends as well where a connection
/// that was made again leads to a broker that is not to be used, by `serves`.
pub(super) async fn forward_wakes(
    keeper: &Keeper,
    client: &Client,
    mut events: mpsc::Receiver<Event>,
    serves: impl Fn() -> bool,
) {
    let subscribed = futures_util::future::join(
        client.subscribe(subjects::declaration(&keeper.host)),
        client.subscribe(subjects::EVERY_KEYRING),
    )
    .await;
    let (Ok(mut declarations), Ok(mut keyrings)) = subscribed else {
        tracing::warn!("could not listen for wake-ups");
        return;
    };
    keeper.wake(Wake::Connected);
    loop {
        tokio::select! {
            message = next(&mut declarations) => match message {
                Some(()) => keeper.wake(Wake::Declaration),
                None => return,
            },
            message = next(&mut keyrings) => match message {
                Some(()) => keeper.wake(Wake::Keyring),
                None => return,
            },
            event = events.recv() => match event {
                Some(Event::Connected) if !serves() => return,
                Some(Event::Connected) => {
                    keeper.client.send_modify(|_same| {});
                    keeper.wake(Wake::Connected);
                }
                Some(Event::Closed) | None => return,
                Some(event @ (Event::Disconnected | Event::LameDuckMode | Event::Draining)) => {
                    tracing::info!(%event, "link");
                }
                Some(event @ (Event::SlowConsumer(_) | Event::ServerError(_))) => tracing::warn!(%event, "link"),
                // One for every failed attempt to reconnect: that the connection is gone has been said.
                Some(event @ Event::ClientError(_)) => tracing::debug!(%event, "link"),
            },
            () = keeper.client.closed() => return,
        }
    }
}

async fn next(subscriber: &mut Subscriber) -> Option<()> {
    subscriber.next().await.map(|_| ())
}
