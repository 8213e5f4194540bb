//! 1,024 callers enqueue message after message, each awaited; a consumer leases and acknowledges.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};

use trunkline::{Queue, Wait};

use crate::{Failure, Figures, Ground, percentile};

const CALLERS: usize = 1024;
const MESSAGES: usize = 1_000_000;
const LEASE: usize = 8192;
const CONSUMERS: usize = 1;

pub async fn run(ground: Ground) -> Result<Figures, Failure> {
    let queue = ground.queue("coalesced").await?;
    let began = Instant::now();
    let next = Arc::new(AtomicUsize::new(0));
    let callers: Vec<_> = (0..CALLERS).map(|_| tokio::spawn(call(queue.clone(), next.clone()))).collect();
    let left = Arc::new(AtomicUsize::new(MESSAGES));
    let consumers: Vec<_> = (0..CONSUMERS).map(|_| tokio::spawn(consume(queue.clone(), left.clone()))).collect();
    let mut latencies = Vec::with_capacity(MESSAGES);
    for caller in callers {
        latencies.extend(caller.await??);
    }
    let enqueued = began.elapsed().as_secs_f64();
    for consumer in consumers {
        consumer.await??;
    }
    let done = began.elapsed().as_secs_f64();
    let rows = queue.stats().await?.rows;
    assert_eq!(rows, 0, "everything is acknowledged");
    let (client, connection) = tokio_postgres::connect(&ground.url, tokio_postgres::NoTls).await?;
    tokio::spawn(connection);
    let inserted = client.query_one("select last_value / 1024 from trunkline.id_coalesced", &[]).await?;
    Ok(vec![
        ("messages a row", MESSAGES as f64 / inserted.get::<_, i64>(0) as f64),
        ("enqueued/s", MESSAGES as f64 / enqueued),
        ("end-to-end/s", MESSAGES as f64 / done),
        ("enqueue p50 us", percentile(&mut latencies, 0.5)),
        ("enqueue p99 us", percentile(&mut latencies, 0.99)),
    ])
}

async fn call(queue: Queue<Vec<u8>>, next: Arc<AtomicUsize>) -> Result<Vec<f64>, Failure> {
    let payload = vec![7; 100];
    let mut latencies = Vec::with_capacity(MESSAGES / CALLERS * 2);
    while next.fetch_add(1, Ordering::Relaxed) < MESSAGES {
        let began = Instant::now();
        queue.enqueue(&payload).await?;
        latencies.push(began.elapsed().as_secs_f64() * 1e6);
    }
    Ok(latencies)
}

/// Acknowledges what it has while it leases the next.
async fn consume(queue: Queue<Vec<u8>>, left: Arc<AtomicUsize>) -> Result<(), Failure> {
    let mut consumer = queue.consumer(Wait::Adaptive);
    let mut acks = tokio::task::JoinSet::new();
    while left.load(Ordering::Relaxed) > 0 {
        let messages = tokio::select! {
            messages = consumer.at_least_once(LEASE) => messages?,
            Some(acked) = acks.join_next() => { acked??; continue }
        };
        let queue = queue.clone();
        let left = left.clone();
        acks.spawn(async move {
            queue.ack(&messages).await?;
            left.fetch_sub(messages.len(), Ordering::Relaxed);
            Ok::<_, Failure>(())
        });
    }
    while let Some(acked) = acks.join_next().await {
        acked??;
    }
    Ok(())
}
