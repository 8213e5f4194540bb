use std::sync::Arc;

use futures_util::future::try_join_all;
use trunkline::Lease;
use trunkline_contender::{Contender, Failure, Ready, Settings, Tally};

use crate::{
    consume::{Promise, consume},
    open::open,
    payload::{Text, all},
    seed::seed,
};

/// The library with one call per message. Concurrent calls share batches and statements.
pub struct Coalesced<T: Text> {
    queue: trunkline::Queue<T>,
    told: Settings,
}

impl<T: Text> Contender for Coalesced<T> {
    type Handle = Lease;

    async fn install(told: &Settings) -> Result<(Self, Ready), Failure> {
        let (queue, ready) = open(told, "enqueue and ack message by message, coalesced").await?;
        Ok((Self { queue, told: told.clone() }, ready))
    }

    async fn send(&self, _: usize, payloads: Vec<String>) -> Result<(), Failure> {
        let mut payloads = all::<T>(payloads)?;
        match payloads.len() {
            1 => drop(self.queue.enqueue(payloads.remove(0)).await?),
            _ => drop(try_join_all(payloads.iter().map(|payload| self.queue.enqueue(payload))).await?),
        }
        Ok(())
    }

    async fn seed(&self, payloads: Vec<String>) -> Result<(), Failure> {
        seed(&self.queue, &self.told, payloads).await
    }

    async fn consume(self: Arc<Self>, tally: Arc<Tally>) -> Result<(), Failure> {
        consume(self.queue.clone(), Promise::AtLeastOnce, &self.told, &tally).await
    }

    async fn read(&self, _: usize, n: usize) -> Result<Vec<Lease>, Failure> {
        Ok(self.queue.lease(n).await?.iter().map(trunkline::Message::lease).collect())
    }

    async fn delete(&self, _: usize, read: Vec<Lease>) -> Result<(), Failure> {
        try_join_all(read.into_iter().map(|lease| self.queue.ack([lease]))).await?;
        Ok(())
    }

    async fn archive(&self, _: usize, read: Vec<Lease>) -> Result<(), Failure> {
        try_join_all(read.into_iter().map(|lease| self.queue.archive([lease]))).await?;
        Ok(())
    }

    async fn pop(&self, _: usize, n: usize) -> Result<usize, Failure> {
        Ok(self.queue.take(n).await?.len())
    }
}
