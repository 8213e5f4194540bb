//! A Redis stream is deleted and begins again with lower ids. The relay ends with an error, or
//! continues if its address accepts gaps.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use trunkline::Queue;
use trunkline_relay::{Error, Inward, Raw, Source, source};

use crate::{
    brokers::{Broker, Kind, Setup},
    carried::queue,
    failover::say,
    stand::{DEADLINE, until},
};

async fn relay(broker: &Broker, options: &str, queue: &Queue<Raw>) -> Inward {
    let address = format!("redis://{}/s{options}", broker.addr());
    Inward::new(source(&address).await.expect("a source"), queue.clone()).name("one")
}

async fn add(broker: &Broker, id: &str) {
    say(broker, &["XADD", "s", id, "body", "x"]).await;
}

/// Reads after a position until the source fails. Returns the error.
async fn failure(source: &mut dyn Source, after: &str) -> Error {
    let reads = async {
        loop {
            match source.read(Some(after), 10).await {
                Ok(entries) => assert!(entries.is_empty()),
                Err(error) => return error,
            }
        }
    };
    timeout(DEADLINE, reads).await.expect("in time")
}

/// Returns the number of bytes that the broker has sent to all clients.
async fn bytes_sent(broker: &Broker) -> u64 {
    let client = redis::Client::open(format!("redis://{}", broker.addr())).expect("an address");
    let mut connection = client.get_multiplexed_async_connection().await.expect("connected");
    let stats: String = redis::cmd("INFO").arg("stats").query_async(&mut connection).await.expect("answered");
    let bytes = stats.lines().find_map(|line| line.strip_prefix("total_net_output_bytes:"));
    bytes.expect("it is counted").parse().expect("a number")
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Redis: see .ci/brokers"]
async fn stream_that_begins_again_with_lower_ids_ends_the_relay_aloud() {
    let (broker, queue) = (Broker::start(Kind::Redis), queue().await);
    add(&broker, "1000-7").await;
    let running = relay(&broker, "", &queue).await;
    let progress = running.progress();
    let running = tokio::spawn(running.run(std::future::pending()));
    until("the first one is there", async || progress.confirmed() == 1).await;
    say(&broker, &["DEL", "s"]).await;
    add(&broker, "5-1").await;
    let error =
        timeout(DEADLINE, running).await.expect("in time").expect("no panic").expect_err("it is another stream");
    let is_told = |error: &trunkline_relay::Error| {
        let said = error.to_string();
        error.is_gap() && said.contains("ends at 5-1, before 1000-7") && said.contains("accept-gap=true")
    };
    assert!(is_told(&error), "{error}");
    let started = relay(&broker, "", &queue).await;
    let error = timeout(DEADLINE, Box::pin(started.run(std::future::pending())))
        .await
        .expect("in time")
        .expect_err("it is still another stream");
    assert!(is_told(&error), "{error}");

    let (accepts, stop) = (relay(&broker, "?accept-gap=true", &queue).await, CancellationToken::new());
    let progress = accepts.progress();
    let running = tokio::spawn(accepts.run(stop.clone().cancelled_owned()));
    let number = AtomicU64::new(1);
    until("it goes on", async || {
        add(&broker, &format!("6-{}", number.fetch_add(1, Ordering::Relaxed))).await;
        progress.confirmed() > 0
    })
    .await;
    stop.cancel();
    running.await.expect("no panic").expect("a clean end");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Redis: see .ci/brokers"]
async fn removed_entries_or_a_missing_stream_are_no_gap() {
    let broker = Broker::start(Kind::Redis);
    add(&broker, "1000-7").await;
    let mut source = source(&format!("redis://{}/s", broker.addr())).await.expect("a source");
    assert_eq!(source.read(None, 10).await.expect("read").len(), 1);
    for remove in [&["XTRIM", "s", "MAXLEN", "0"][..], &["DEL", "s"]] {
        say(&broker, remove).await;
        // Each read waits for a second, and a gap is reported after some seven of them.
        for _ in 0..8 {
            assert!(source.read(Some("1000-7"), 10).await.expect("no gap").is_empty());
        }
    }
    add(&broker, "1000-8").await;
    assert_eq!(source.read(Some("1000-7"), 10).await.expect("read").len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Redis: see .ci/brokers"]
async fn last_id_is_asked_for_without_the_large_entries() {
    // Has the rights that docs/relay.md names.
    let users = ["user relay on >relay %R~s +xread +xinfo|stream +eval_ro"];
    let broker = Broker::with(Kind::Redis, &Setup { lines: &users, ..Setup::default() });
    say(&broker, &["XADD", "s", "5-1", "body", &"x".repeat(1 << 20)]).await;
    let mut source = source(&format!("redis://relay:relay@{}/s", broker.addr())).await.expect("a source");
    let before = bytes_sent(&broker).await;
    let error = failure(&mut *source, "1000-7").await;
    assert!(error.is_gap() && error.to_string().contains("ends at 5-1"), "{error}");
    let sent = bytes_sent(&broker).await - before;
    assert!(sent < 64 << 10, "{sent} bytes");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Redis: see .ci/brokers"]
async fn gap_is_reported_without_the_right_to_scripts() {
    let users = ["user relay on >relay ~s +@all -@scripting"];
    let broker = Broker::with(Kind::Redis, &Setup { lines: &users, ..Setup::default() });
    add(&broker, "5-1").await;
    let mut source = source(&format!("redis://relay:relay@{}/s", broker.addr())).await.expect("a source");
    let error = failure(&mut *source, "1000-7").await;
    assert!(error.is_gap() && error.to_string().contains("ends at 5-1"), "{error}");
}
