use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use tokio::sync::watch;
use trunkline_contender::{Contender, Failure, Ready, Settings, Tally};

use crate::{
    open::{open, wait},
    payload::{Text, all},
};

/// Jobs: messages are sent as in `coalesced`, and a worker calls a function that does nothing for each.
pub struct Worker<T: Text> {
    queue: trunkline::Queue<T>,
    told: Settings,
    sent: AtomicU64,
    /// Jobs that were called, where callers wait for theirs.
    called: watch::Receiver<u64>,
}

impl<T: Text> Contender for Worker<T> {
    type Handle = ();

    async fn install(told: &Settings) -> Result<(Self, Ready), Failure> {
        let (queue, ready) = open(told, "enqueue job by job, coalesced; a worker").await?;
        let (count, called) = watch::channel(0);
        if told.case.starts_with("full-cycle") {
            let worker = trunkline::Worker::new(queue.clone(), move |_| {
                count.send_modify(|count| *count += 1);
                async { Ok::<(), Infallible>(()) }
            });
            tokio::spawn(worker.wait(wait(told)).run(std::future::pending()));
        }
        Ok((Self { queue, told: told.clone(), sent: AtomicU64::new(0), called }, ready))
    }

    async fn send(&self, _: usize, payloads: Vec<String>) -> Result<(), Failure> {
        let payloads = all::<T>(payloads)?;
        match &payloads[..] {
            [payload] => drop(self.queue.enqueue(payload).await?),
            many => drop(self.queue.enqueue_many(many).await?),
        }
        self.sent.fetch_add(payloads.len() as u64, Ordering::Relaxed);
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

    /// Waits until all was called that had been sent: the caller's own jobs, and perhaps some of others.
    async fn read(&self, _: usize, n: usize) -> Result<Vec<()>, Failure> {
        let sent = self.sent.load(Ordering::Relaxed);
        self.called.clone().wait_for(|called| *called >= sent).await?;
        Ok(vec![(); n])
    }

    /// The worker acknowledges by itself.
    async fn delete(&self, _: usize, _: Vec<()>) -> Result<(), Failure> {
        Ok(())
    }
}
