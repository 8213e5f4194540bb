use std::sync::Arc;

use tokio::task::JoinSet;
use trunkline::{Consumer, Queue};
use trunkline_contender::{Failure, Settings, Tally};

use crate::{open::wait, payload::Text};

/// Messages a lease where the contender may choose.
const LEASE: usize = 8192;
/// Consumers where the contender may choose.
const CONSUMERS: usize = 1;

/// What consumers promise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Promise {
    AtLeastOnce,
    AtMostOnce,
}

/// Dequeues, hands over and, where that was promised, acknowledges, with all the consumers that were told.
pub async fn consume<T: Text>(
    queue: Queue<T>,
    promise: Promise,
    told: &Settings,
    tally: &Arc<Tally>,
) -> Result<(), Failure> {
    let mut consumers = JoinSet::new();
    let n = if told.consumers == 0 { LEASE } else { told.fetched() };
    for _ in 0..told.consumers_or(CONSUMERS) {
        let consumer = queue.consumer(wait(told));
        match promise {
            Promise::AtLeastOnce => consumers.spawn(lease(consumer, n, tally.clone())),
            Promise::AtMostOnce => consumers.spawn(take(consumer, n, tally.clone())),
        };
    }
    while let Some(ended) = consumers.join_next().await {
        ended??;
    }
    Ok(())
}

/// Acknowledges what it has while it leases the next.
async fn lease<T: Text>(mut consumer: Consumer<T>, n: usize, tally: Arc<Tally>) -> Result<(), Failure> {
    let mut acks = JoinSet::new();
    let over = tally.over();
    tokio::pin!(over);
    loop {
        let messages = tokio::select! {
            () = &mut over => break,
            messages = consumer.lease(n) => messages?,
        };
        // Not in the select: a lease that is dropped is given back.
        while let Some(acked) = acks.try_join_next() {
            acked??;
        }
        tally.received_many(messages.iter().map(|message| message.payload.bytes()));
        let queue = consumer.queue().clone();
        acks.spawn(async move { queue.ack(&messages).await });
    }
    while let Some(acked) = acks.join_next().await {
        acked??;
    }
    Ok(())
}

async fn take<T: Text>(mut consumer: Consumer<T>, n: usize, tally: Arc<Tally>) -> Result<(), Failure> {
    let over = tally.over();
    tokio::pin!(over);
    loop {
        let messages = tokio::select! {
            () = &mut over => return Ok(()),
            messages = consumer.take(n) => messages?,
        };
        tally.received_many(messages.iter().map(|message| message.payload.bytes()));
    }
}
