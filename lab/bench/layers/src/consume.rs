use std::sync::Arc;

use tokio::task::JoinSet;
use trunkline::{Consumer, Message, Queue};
use trunkline_contender::{Failure, Settings, Tally};

use crate::{open::wait, payload::Text};

/// The number of messages per lease, if the settings leave it to the contender.
const LEASE: usize = 8192;
/// The number of consumers, if the settings leave it to the contender.
const CONSUMERS: usize = 1;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Promise {
    AtLeastOnce,
    AtMostOnce,
}

/// Dequeues and counts messages with the requested number of consumers. Acknowledges the messages
/// if the promise is at least once.
pub async fn consume<T: Text>(
    queue: Queue<T>,
    promise: Promise,
    told: &Settings,
    tally: &Arc<Tally>,
) -> Result<(), Failure> {
    let mut consumers = JoinSet::new();
    let n = if told.consumers == 0 { LEASE } else { told.fetched() };
    let count = told.consumers_or(CONSUMERS);
    // Acknowledges and leases in one transaction only if a single consumer receives single
    // messages. Several consumers instead share statements for leases and statements for
    // acknowledgements.
    let together = count == 1 && n == 1;
    for _ in 0..count {
        let consumer = queue.consumer(wait(told));
        match promise {
            Promise::AtLeastOnce => consumers.spawn(lease(consumer, n, together, tally.clone())),
            Promise::AtMostOnce => consumers.spawn(take(consumer, n, tally.clone())),
        };
    }
    while let Some(ended) = consumers.join_next().await {
        ended??;
    }
    Ok(())
}

/// Acknowledges a batch while it leases the next batch. If nothing else was due, or if `together`,
/// acknowledges the batch in the transaction of the next lease.
async fn lease<T: Text>(mut consumer: Consumer<T>, n: usize, together: bool, tally: Arc<Tally>) -> Result<(), Failure> {
    let (mut acks, mut done) = (JoinSet::new(), Vec::new());
    let over = tally.over();
    tokio::pin!(over);
    loop {
        let next = async {
            if done.is_empty() {
                return consumer.lease(n).await;
            }
            let (messages, lost) = consumer.ack_and_lease(done.drain(..), n).await?;
            assert!(lost.is_empty(), "a lease of the queue's length is not lost: {lost:?}");
            Ok(messages)
        };
        let messages = tokio::select! {
            () = &mut over => break,
            messages = next => messages?,
        };
        // This call is not part of the `select`, because a cancelled lease releases its messages.
        while let Some(acked) = acks.try_join_next() {
            acked??;
        }
        tally.received_many(messages.iter().map(|message| message.payload.bytes()));
        if messages.len() < n || together {
            done.extend(messages.iter().map(Message::lease));
        } else {
            let queue = consumer.queue().clone();
            acks.spawn(async move { queue.ack(&messages).await });
        }
    }
    consumer.queue().ack(done).await?;
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
