use std::{sync::Arc, time::Duration};

use trunkline::{Lease, Wait};
use trunkline_contender::{Contender, Failure, Ready, Settings, Tally};

use crate::{
    consume::{Promise, consume},
    ledger::record,
    open::open,
    payload::{Text, all},
    seed::seed,
};

/// The library with one statement per call. Consumers lease and acknowledge, or they take if `TAKE`
/// is set.
pub struct Queue<T: Text, const TAKE: bool = false> {
    queue: trunkline::Queue<T>,
    told: Settings,
}

impl<T: Text, const TAKE: bool> Contender for Queue<T, TAKE> {
    type Handle = Lease;

    async fn install(told: &Settings) -> Result<(Self, Ready), Failure> {
        let (queue, ready) = open(told, if TAKE { "enqueue_many, take" } else { "enqueue_many, lease, ack" }).await?;
        Ok((Self { queue, told: told.clone() }, ready))
    }

    async fn send(&self, _: usize, payloads: Vec<String>) -> Result<(), Failure> {
        self.queue.enqueue_many(&all::<T>(payloads)?).await?;
        Ok(())
    }

    async fn seed(&self, payloads: Vec<String>) -> Result<(), Failure> {
        seed(&self.queue, &self.told, payloads).await
    }

    async fn consume(self: Arc<Self>, tally: Arc<Tally>) -> Result<(), Failure> {
        consume(self.queue.clone(), if TAKE { Promise::AtMostOnce } else { Promise::AtLeastOnce }, &self.told, &tally)
            .await
    }

    async fn read(&self, _: usize, n: usize) -> Result<Vec<Lease>, Failure> {
        Ok(self.queue.lease(n).await?.iter().map(trunkline::Message::lease).collect())
    }

    async fn delete(&self, _: usize, read: Vec<Lease>) -> Result<(), Failure> {
        Ok(self.queue.ack(read).await?)
    }

    async fn archive(&self, _: usize, read: Vec<Lease>) -> Result<(), Failure> {
        Ok(self.queue.archive(read).await?)
    }

    async fn pop(&self, _: usize, n: usize) -> Result<usize, Failure> {
        Ok(self.queue.take(n).await?.len())
    }

    async fn read_with_poll(&self, _: usize, n: usize, patience: Duration) -> Result<Vec<Lease>, Failure> {
        let mut consumer = self.queue.consumer(Wait::Adaptive);
        let messages = match tokio::time::timeout(patience, consumer.lease(n)).await {
            Ok(messages) => messages?,
            Err(_) => Vec::new(),
        };
        Ok(messages.iter().map(trunkline::Message::lease).collect())
    }

    async fn record(self: Arc<Self>, tally: Arc<Tally>) -> Result<(), Failure> {
        record(self.queue.clone(), &self.told, &tally).await
    }
}
