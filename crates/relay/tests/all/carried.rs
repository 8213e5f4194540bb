//! Carries a few messages through a relay to an address. Lists the messages that the broker refused
//! for good, with its reasons.

use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use trunkline::{Db, Draft, Queue, Settings};
use trunkline_relay::{Raw, Relay, sink, source};

use crate::stand::{DEADLINE, until};

pub async fn queue() -> Queue<Raw> {
    let db = Db::connect(&trunkline_embedded::test_database().expect("a database")).await.expect("connected");
    db.migrate().await.expect("migrated");
    db.create_queue("q", &Settings::of::<String>().max_attempts(1)).await.expect("created");
    db.queue("q").await.expect("opened")
}

/// Carries messages, each to the destination in `{metadata.to}`, until the queue is empty. Returns
/// the bodies and reasons of the dead letters, in order.
pub async fn carry(address: &str, messages: &[(&str, &str)]) -> Vec<(String, String)> {
    let queue = queue().await;
    let drafts = messages.iter().map(|(to, body)| Draft::new(Raw((*body).to_owned().into())).with("to", *to));
    queue.enqueue_many(drafts).await.expect("enqueued");
    let (sink, route) = sink(address).await.expect("a sink");
    let stop = CancellationToken::new();
    let relay = Relay::new(queue.clone(), sink).route(route).shutdown_after(Duration::from_secs(1));
    let running = tokio::spawn(relay.run(stop.clone().cancelled_owned()));
    until("the queue is empty", async || queue.stats().await.is_ok_and(|stats| stats.messages == 0)).await;
    stop.cancel();
    running.await.expect("no panic").expect("a clean end");
    let dead = queue.dead_letters(0, 10_000).await.expect("listed");
    let text = |raw: &Raw| String::from_utf8_lossy(&raw.0).into_owned();
    let mut dead: Vec<_> = dead.iter().map(|letter| (text(&letter.payload), letter.error.clone())).collect();
    dead.sort();
    dead
}

/// Returns the bodies at an address in order, once there are `most`.
pub async fn arrived(address: &str, most: usize) -> Vec<String> {
    let mut source = source(address).await.expect("a source");
    let (mut all, mut after, end) = (Vec::new(), None::<String>, Instant::now() + DEADLINE);
    loop {
        let read = source.read(after.as_deref(), 1000).await.expect("read");
        let Some(last) = read.last() else {
            if all.len() >= most || Instant::now() > end {
                break;
            }
            continue;
        };
        after = Some(last.position.clone());
        all.extend(read.iter().map(|message| String::from_utf8_lossy(&message.body).into_owned()));
    }
    all.sort();
    all
}
