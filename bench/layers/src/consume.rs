use std::sync::Arc;

use tokio::task::JoinSet;
use trunkline::{Queue, Wait};
use trunkline_contender::{Failure, Settings, Tally};

use crate::{open::wait, payload::Text};

/// Messages a lease where the contender may choose.
const LEASE: usize = 8192;
/// Consumers where the contender may choose.
const CONSUMERS: usize = 1;

/// Leases, hands over and acknowledges with all the consumers that were told.
pub async fn consume<T: Text>(queue: Queue<T>, told: &Settings, tally: &Arc<Tally>) -> Result<(), Failure> {
    let mut consumers = JoinSet::new();
    let n = if told.consumers == 0 { LEASE } else { told.batch };
    for _ in 0..told.consumers_or(CONSUMERS) {
        consumers.spawn(one(queue.clone(), wait(told), n, tally.clone()));
    }
    while let Some(ended) = consumers.join_next().await {
        ended??;
    }
    Ok(())
}

/// Acknowledges what it has while it leases the next.
async fn one<T: Text>(queue: Queue<T>, wait: Wait, n: usize, tally: Arc<Tally>) -> Result<(), Failure> {
    let mut consumer = queue.consumer(wait);
    let mut acks = JoinSet::new();
    let over = tally.over();
    tokio::pin!(over);
    loop {
        let messages = tokio::select! {
            () = &mut over => break,
            messages = consumer.at_least_once(n) => messages?,
            Some(acked) = acks.join_next() => { acked??; continue }
        };
        tally.received_many(messages.iter().map(|message| message.payload.bytes()));
        let queue = queue.clone();
        acks.spawn(async move { queue.ack(&messages).await });
    }
    while let Some(acked) = acks.join_next().await {
        acked??;
    }
    Ok(())
}
