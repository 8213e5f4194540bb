use std::{convert::Infallible, sync::Arc};

use trunkline::Lease;
use trunkline_contender::{Contender, Failure, Ready, Settings, Tally};

use crate::{
    open::{open, wait},
    payload::{Text, all},
};

/// Jobs: messages are sent as in `coalesced`, and a worker calls a function that does nothing for each.
pub struct Worker<T: Text> {
    queue: trunkline::Queue<T>,
    told: Settings,
}

impl<T: Text> Contender for Worker<T> {
    type Handle = Lease;

    async fn install(told: &Settings) -> Result<(Self, Ready), Failure> {
        let (queue, ready) = open(told, "enqueue job by job, coalesced; a worker").await?;
        Ok((Self { queue, told: told.clone() }, ready))
    }

    async fn send(&self, _: usize, payloads: Vec<String>) -> Result<(), Failure> {
        let payloads = all::<T>(payloads)?;
        match &payloads[..] {
            [payload] => drop(self.queue.enqueue(payload).await?),
            many => drop(self.queue.enqueue_many(many).await?),
        }
        Ok(())
    }

    async fn consume(self: Arc<Self>, tally: Arc<Tally>) -> Result<(), Failure> {
        let counted = tally.clone();
        let worker = trunkline::Worker::new(self.queue.clone(), move |job| {
            counted.received_many([job.payload.bytes()]);
            async { Ok::<(), Infallible>(()) }
        });
        let worker = match self.told.consumers {
            0 => worker,
            consumers => worker.concurrency(consumers),
        };
        worker.wait(wait(&self.told)).run(tally.over()).await?;
        Ok(())
    }
}
