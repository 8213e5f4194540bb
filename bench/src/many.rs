//! `enqueue_many` of 1,000 by two producers; leased and acknowledged by one consumer.

use std::time::Instant;

use trunkline::{Queue, Wait};

use crate::{Failure, Figures, Ground};

const PRODUCERS: usize = 4;
const CALLS: usize = 500;
const BATCH: usize = 1000;

pub async fn run(ground: Ground) -> Result<Figures, Failure> {
    let queue = ground.queue("many").await?;
    let began = Instant::now();
    let producers: Vec<_> = (0..PRODUCERS).map(|_| tokio::spawn(produce(queue.clone()))).collect();
    let consumer = tokio::spawn(consume(queue.clone()));
    for producer in producers {
        producer.await??;
    }
    let enqueued = began.elapsed().as_secs_f64();
    consumer.await??;
    let messages = (PRODUCERS * CALLS * BATCH) as f64;
    Ok(vec![("enqueued/s", messages / enqueued), ("end-to-end/s", messages / began.elapsed().as_secs_f64())])
}

async fn produce(queue: Queue<Vec<u8>>) -> Result<(), Failure> {
    let payloads = vec![vec![7_u8; 100]; BATCH];
    for _ in 0..CALLS {
        queue.enqueue_many(&payloads).await?;
    }
    Ok(())
}

async fn consume(queue: Queue<Vec<u8>>) -> Result<(), Failure> {
    let mut consumer = queue.consumer(Wait::Adaptive);
    let mut left = PRODUCERS * CALLS * BATCH;
    let mut acks = tokio::task::JoinSet::new();
    while left > 0 {
        let messages = consumer.at_least_once(8 * BATCH).await?;
        left -= messages.len();
        let queue = queue.clone();
        acks.spawn(async move { queue.ack(&messages).await });
        while let Some(acked) = acks.try_join_next() {
            acked??;
        }
    }
    while let Some(acked) = acks.join_next().await {
        acked??;
    }
    Ok(())
}
