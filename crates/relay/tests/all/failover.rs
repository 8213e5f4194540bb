//! A Redis server's host name moves to another server, while connections to the old server stay
//! open.

use std::{
    future::pending,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    time::timeout,
};
use tokio_util::sync::CancellationToken;
use trunkline::{Queue, postgres::Statement};
use trunkline_relay::{Inward, Raw, Relay, sink, source};

use crate::{
    brokers::{Broker, Kind, Setup},
    carried::{arrived, queue},
    stand::until,
};

/// A host name that points to a server. A change affects only new connections.
struct Name {
    addr: SocketAddr,
    stands_for: Arc<Mutex<SocketAddr>>,
    /// Ends the traffic of all connections to the first server. They stay open.
    vanished: CancellationToken,
}

impl Name {
    async fn of(broker: &Broker) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let (addr, first) = (listener.local_addr().expect("bound"), broker.addr());
        let name = Self { addr, stands_for: Arc::new(Mutex::new(first)), vanished: CancellationToken::new() };
        let (stands_for, vanished) = (name.stands_for.clone(), name.vanished.clone());
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let to = *stands_for.lock().expect("not poisoned");
                let silent = if to == first { vanished.clone() } else { CancellationToken::new() };
                tokio::spawn(async move {
                    let Ok(mut server) = TcpStream::connect(to).await else { return };
                    let copied = silent.run_until_cancelled(copy_bidirectional(&mut client, &mut server)).await;
                    if copied.is_none() {
                        pending::<()>().await; // keeps both connections open
                    }
                });
            }
        });
        name
    }

    fn now_stands_for(&self, broker: &Broker) {
        *self.stands_for.lock().expect("not poisoned") = broker.addr();
    }

    /// Moves the name. The first server sends and receives nothing more, and resets no connection.
    fn vanishes_for(&self, broker: &Broker) {
        self.now_stands_for(broker);
        self.vanished.cancel();
    }
}

/// The time in which a relay leaves a server that has vanished.
const LEAVES: Duration = Duration::from_secs(60);

pub async fn say(broker: &Broker, words: &[&str]) {
    let client = redis::Client::open(format!("redis://{}", broker.addr())).expect("an address");
    let mut connection = client.get_multiplexed_async_connection().await.expect("connected");
    let mut command = redis::cmd(words[0]);
    for word in &words[1..] {
        command.arg(*word);
    }
    let _: redis::Value = command.query_async(&mut connection).await.expect("answered");
}

async fn demote(old: &Broker, new: &Broker) {
    say(old, &["REPLICAOF", "127.0.0.1", &new.addr().port().to_string()]).await;
}

/// Returns the bodies of the twenty messages that are enqueued after the old master has failed.
fn after() -> Vec<String> {
    (0..20).map(|number| format!("after {number:02}")).collect()
}

async fn enqueue_after(queue: &Queue<Raw>) {
    for body in after() {
        queue.enqueue(Raw(body.into())).await.expect("enqueued");
    }
}

fn two() -> (Broker, Broker) {
    let setup = Setup { lines: &["replica-serve-stale-data no"], ..Setup::default() };
    (Broker::with(Kind::Redis, &setup), Broker::with(Kind::Redis, &setup))
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Redis: see .ci/brokers"]
async fn messages_reach_the_new_master_over_connections_that_stay_open() {
    let (old, new) = two();
    let name = Name::of(&old).await;
    let queue = queue().await;
    let (sink, route) = sink(&format!("redis://{}/s", name.addr)).await.expect("a sink");
    let (relay, stop) = (Relay::new(queue.clone(), sink).route(route), CancellationToken::new());
    let progress = relay.progress();
    let running = tokio::spawn(relay.run(stop.clone().cancelled_owned()));
    queue.enqueue(Raw("before".into())).await.expect("enqueued");
    until("it is confirmed", async || progress.confirmed() == 1).await;
    demote(&old, &new).await;
    enqueue_after(&queue).await;
    until("it is refused", async || {
        progress
            .last_error()
            .is_some_and(|(_, why)| why.contains("READONLY") || why.contains("ReadOnly") || why.contains("read only"))
    })
    .await;
    name.now_stands_for(&new);
    until("all are confirmed", async || progress.confirmed() == 21).await;
    stop.cancel();
    running.await.expect("no panic").expect("a clean end");
    assert_eq!(arrived(&format!("redis://{}/s", new.addr()), 20).await, after());
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Redis: see .ci/brokers"]
async fn replica_without_master_is_left_for_new_master() {
    let (old, new) = two();
    say(&new, &["XADD", "s", "1-1", "body", "there"]).await;
    let name = Name::of(&old).await;
    let queue = queue().await;
    let source = source(&format!("redis://{}/s", name.addr)).await.expect("a source");
    let (relay, stop) = (Inward::new(source, queue.clone()), CancellationToken::new());
    let progress = relay.progress();
    let running = tokio::spawn(relay.run(stop.clone().cancelled_owned()));
    // Makes the old server a replica of a port on which no server listens.
    say(&old, &["REPLICAOF", "127.0.0.1", "1"]).await;
    until("it is refused", async || {
        progress.last_error().is_some_and(|(_, why)| why.contains("MASTERDOWN") || why.contains("MasterDown"))
    })
    .await;
    name.now_stands_for(&new);
    until("it is there", async || progress.confirmed() == 1).await;
    stop.cancel();
    running.await.expect("no panic").expect("a clean end");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Redis: see .ci/brokers"]
async fn messages_reach_the_new_master_if_the_old_one_vanishes() {
    let (old, new) = two();
    let name = Name::of(&old).await;
    let queue = queue().await;
    let (sink, route) = sink(&format!("redis://{}/s", name.addr)).await.expect("a sink");
    let (relay, stop) = (Relay::new(queue.clone(), sink).route(route), CancellationToken::new());
    let progress = relay.progress();
    let running = tokio::spawn(relay.run(stop.clone().cancelled_owned()));
    queue.enqueue(Raw("before".into())).await.expect("enqueued");
    until("it is confirmed", async || progress.confirmed() == 1).await;
    name.vanishes_for(&new);
    enqueue_after(&queue).await;
    let confirmed = until("all are confirmed", async || progress.confirmed() == 21);
    timeout(LEAVES, confirmed).await.expect("in time");
    stop.cancel();
    running.await.expect("no panic").expect("a clean end");
    assert_eq!(arrived(&format!("redis://{}/s", new.addr()), 20).await, after());
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Redis: see .ci/brokers"]
async fn master_that_vanishes_is_left_for_new_master() {
    let (old, new) = two();
    say(&old, &["XADD", "s", "1-1", "body", "before"]).await;
    say(&new, &["XADD", "s", "2-1", "body", "after"]).await;
    let name = Name::of(&old).await;
    let queue = queue().await;
    let source = source(&format!("redis://{}/s", name.addr)).await.expect("a source");
    let (relay, stop) = (Inward::new(source, queue.clone()), CancellationToken::new());
    let progress = relay.progress();
    let running = tokio::spawn(relay.run(stop.clone().cancelled_owned()));
    until("it is there", async || progress.confirmed() == 1).await;
    name.vanishes_for(&new);
    timeout(LEAVES, until("both are there", async || progress.confirmed() == 2)).await.expect("in time");
    stop.cancel();
    running.await.expect("no panic").expect("a clean end");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Redis: see .ci/brokers"]
async fn relay_keeps_its_position_while_its_server_is_gone() {
    let server = Broker::start(Kind::Redis);
    say(&server, &["XADD", "s", "1-1", "body", "before"]).await;
    let name = Name::of(&server).await;
    let (queue, stop) = (queue().await, CancellationToken::new());
    let (mut progress, mut running) = (Vec::new(), Vec::new());
    for _ in 0..2 {
        let source = source(&format!("redis://{}/s", name.addr)).await.expect("a source");
        let relay = Inward::new(source, queue.clone());
        progress.push(relay.progress());
        running.push(tokio::spawn(relay.run(stop.clone().cancelled_owned())));
    }
    until("it is there", async || progress.iter().any(|one| one.confirmed() == 1)).await;
    let holder = Statement::<(), (i64,)>::new("select holder from trunkline.relay");
    let holder = async || queue.db().run(&holder, ()).await.expect("asked");
    let first = holder().await;
    name.vanished.cancel();
    // A failed read and the next connection together take longer than the hold lasts.
    until("three reads have failed", async || {
        assert_eq!(holder().await, first, "the other relay has claimed the position");
        progress.iter().map(|one| one.again()).sum::<u64>() >= 3
    })
    .await;
    stop.cancel();
    for relay in running {
        relay.await.expect("no panic").expect("a clean end");
    }
}
