//! The link to a broker is slow, or goes silent in the middle of a batch. What the broker has
//! confirmed counts, and a batch is not sent again and again.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy},
    net::{TcpListener, TcpStream},
    time::{Instant, sleep_until},
};
use trunkline_relay::{Outcome, Outgoing};

use crate::{
    brokers::{Broker, Kind},
    carried::arrived,
};

/// The number of bytes per second that a slow link carries to the broker.
const SLOW: usize = 64 << 10;

/// Starts a link that carries `rate` bytes per second to the broker, and `most` bytes in total.
/// Then it stays silent. Answers arrive at once.
async fn link(to: SocketAddr, rate: usize, most: usize) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let addr = listener.local_addr().expect("an address");
    let left = Arc::new(AtomicUsize::new(most));
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let left = left.clone();
            tokio::spawn(async move { carry(client, to, rate, &left).await });
        }
    });
    addr
}

async fn carry(client: TcpStream, to: SocketAddr, rate: usize, left: &AtomicUsize) -> std::io::Result<()> {
    let (mut requests, mut back) = client.into_split();
    let (mut answers, mut server) = TcpStream::connect(to).await?.into_split();
    let answering = async { copy(&mut answers, &mut back).await.map(drop) };
    let asking = async {
        let (mut piece, mut free) = (vec![0; 4 << 10], Instant::now());
        loop {
            let room = left.load(Ordering::Relaxed).min(piece.len());
            if room == 0 {
                std::future::pending::<()>().await;
            }
            let read = requests.read(&mut piece[..room]).await?;
            if read == 0 {
                return Ok(());
            }
            left.fetch_sub(read.min(left.load(Ordering::Relaxed)), Ordering::Relaxed);
            free = free.max(Instant::now()) + Duration::from_secs(read as u64) / rate as u32;
            sleep_until(free).await; // the bandwidth of the link
            server.write_all(&piece[..read]).await?;
        }
    };
    tokio::select! {
        ended = answering => ended,
        ended = asking => ended,
    }
}

/// Returns messages of a KiB each.
fn messages(to: &str, numbers: std::ops::Range<usize>) -> Vec<Outgoing> {
    numbers.map(|number| Outgoing::new(format!("q/1/{number}"), to, format!("{number:01024}"))).collect()
}

#[cfg(feature = "rabbitmq")]
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs RabbitMQ: see .ci/brokers"]
async fn batches_to_rabbitmq_arrive_once_over_a_slow_link() {
    let broker = tokio::task::block_in_place(|| Broker::start(Kind::Rabbitmq));
    let stream = crate::far::far(Kind::Rabbitmq, &broker, "orders").await;
    let slow = link(broker.addr(), SLOW * 2 / 3, usize::MAX).await;
    let (sink, _) = trunkline_relay::sink(&stream.address(slow.port())).await.expect("a sink");
    // The second batch gets its first confirmation after the first one's last. Together they take
    // longer than one batch may take.
    let (one, other) = (messages("orders", 0..1000), messages("orders", 1000..2000));
    let began = Instant::now();
    let outcomes = tokio::join!(sink.produce(&one), sink.produce(&other));
    let took = began.elapsed();
    let outcomes = [outcomes.0, outcomes.1].concat();
    let refused = outcomes.iter().find(|outcome| **outcome != Outcome::Confirmed);
    assert_eq!((refused, outcomes.len()), (None, 2000));
    assert!(took > Duration::from_secs(50), "{took:?}: the link is faster than intended");
    assert_eq!(arrived(&stream.address(broker.addr().port()), 2000).await.len(), 2000);
}

#[cfg(feature = "rabbitmq")]
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs RabbitMQ: see .ci/brokers"]
async fn rabbitmqs_confirmations_count_when_the_link_goes_silent() {
    let broker = tokio::task::block_in_place(|| Broker::start(Kind::Rabbitmq));
    let stream = crate::far::far(Kind::Rabbitmq, &broker, "orders").await;
    let silent = link(broker.addr(), SLOW << 8, 100 << 10).await;
    let (sink, _) = trunkline_relay::sink(&stream.address(silent.port())).await.expect("a sink");
    let began = Instant::now();
    let outcomes = sink.produce(&messages("orders", 0..200)).await;
    assert!(began.elapsed() < Duration::from_secs(25), "{:?}", began.elapsed());
    let confirmed = outcomes.iter().filter(|outcome| **outcome == Outcome::Confirmed).count();
    let refused = outcomes.iter().filter(|outcome| matches!(outcome, Outcome::RefusedForNow(_))).count();
    assert!(confirmed > 50 && refused > 50 && confirmed + refused == 200, "{confirmed} and {refused}");
    let bodies = arrived(&stream.address(broker.addr().port()), confirmed).await;
    assert_eq!(bodies.len(), confirmed, "what arrived was confirmed");
}

#[cfg(feature = "redis")]
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Redis: see .ci/brokers"]
async fn batch_to_redis_arrives_once_over_a_slow_link() {
    let broker = tokio::task::block_in_place(|| Broker::start(Kind::Redis));
    let slow = link(broker.addr(), SLOW, usize::MAX).await;
    let (sink, _) = trunkline_relay::sink(&format!("redis://{slow}/s")).await.expect("a sink");
    let outcomes = sink.produce(&messages("s", 0..500)).await;
    let refused = outcomes.iter().find(|outcome| **outcome != Outcome::Confirmed);
    assert_eq!((refused, outcomes.len()), (None, 500));
    assert_eq!(arrived(&format!("redis://{}/s", broker.addr()), 500).await.len(), 500);
}
