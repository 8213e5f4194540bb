//! Runs the published schema and statements of hasql-queue 1.2.0.2. hasql-queue is a Haskell
//! library; this peer measures its SQL rather than its client.

mod session;

use std::{
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::task::JoinSet;
use trunkline_contender::{Contender, Failure, NO_MEASURE, Ready, Settings, Tally, Wait};

use crate::session::{Mode, Session};

fn main() -> ExitCode {
    trunkline_contender::run::<HasqlQueue>(NO_MEASURE)
}

struct HasqlQueue {
    /// One connection per producer, as in hasql-queue's benchmark.
    producers: Vec<Session>,
    /// One connection per consumer, as in that benchmark.
    consumers: Vec<Session>,
    batch: usize,
    /// The number of messages to seed.
    backlog: usize,
    /// The number of messages that were already sent.
    seeded: AtomicUsize,
}

impl Contender for HasqlQueue {
    /// hasql-queue has no leases: a dequeue deletes its messages in the same transaction.
    type Handle = ();

    async fn install(settings: &Settings) -> Result<(Self, Ready), Failure> {
        let mode = match settings.wait {
            Wait::Best | Wait::Poll => Mode::High,
            Wait::Notify => Mode::Low,
        };
        session::migrate(&settings.url).await?;
        if settings.case == "ledger" {
            session::make_ledger(&settings.url).await?;
        }
        // The author's fastest published figures used these numbers of consumers.
        let consumers = settings.consumers_or(if mode == Mode::High { 3 } else { 4 });
        // The author's benchmark dequeues batches. This peer takes 100 messages at a time, unless
        // the settings request otherwise.
        let batch = if settings.consumers == 0 { settings.batch.max(100) } else { settings.fetched() };
        let queue = Self {
            producers: sessions(&settings.url, mode, settings.producers).await?,
            consumers: sessions(&settings.url, mode, consumers).await?,
            batch,
            backlog: settings.backlog,
            seeded: AtomicUsize::new(0),
        };
        for consumer in &queue.consumers {
            consumer.listen().await?;
        }
        let api = match mode {
            Mode::High => "High.ExactlyOnce: dequeued in one statement, again at once when empty",
            Mode::Low => "Low.AtLeastOnce: dequeued in a transaction, waits for a notification",
        };
        Ok((
            queue,
            Ready {
                version: "the SQL of hasql-queue 1.2.0.2, tokio-postgres 0.7".into(),
                settings: format!("{api}, {consumers} consumers of {batch}, value jsonb"),
            },
        ))
    }

    async fn send(&self, caller: usize, payloads: Vec<String>) -> Result<(), Failure> {
        self.producers[caller].enqueue(payloads).await
    }

    /// Seeds in the same way as hasql-queue's benchmark: sends without notifications, then runs
    /// `vacuum full analyze`.
    async fn seed(&self, payloads: Vec<String>) -> Result<(), Failure> {
        let count = payloads.len();
        let turn = self.seeded.load(Ordering::Relaxed) / count;
        self.producers[turn % self.producers.len()].insert(payloads).await?;
        if self.seeded.fetch_add(count, Ordering::Relaxed) + count == self.backlog {
            self.producers[0].vacuum().await?;
        }
        Ok(())
    }

    async fn consume(self: Arc<Self>, tally: Arc<Tally>) -> Result<(), Failure> {
        let mut consuming = JoinSet::new();
        for consumer in 0..self.consumers.len() {
            let (queue, tally) = (self.clone(), tally.clone());
            consuming.spawn(async move { queue.consumers[consumer].consume(queue.batch, &tally).await });
        }
        while let Some(ended) = consuming.join_next().await {
            ended??;
        }
        Ok(())
    }

    /// Moves elements from the queue to a final table in one transaction. This is the purpose of
    /// hasql-queue.
    async fn record(self: Arc<Self>, tally: Arc<Tally>) -> Result<(), Failure> {
        let mut recording = JoinSet::new();
        for consumer in 0..self.consumers.len() {
            let (queue, tally) = (self.clone(), tally.clone());
            recording.spawn(async move {
                while !tally.is_over() {
                    queue.consumers[consumer].record(queue.batch, &tally).await?;
                }
                Ok::<_, Failure>(())
            });
        }
        while let Some(ended) = recording.join_next().await {
            ended??;
        }
        Ok(())
    }

    async fn pop(&self, caller: usize, n: usize) -> Result<usize, Failure> {
        Ok(self.producers[caller].dequeue(n).await?.len())
    }
}

async fn sessions(url: &str, mode: Mode, count: usize) -> Result<Vec<Session>, Failure> {
    let mut sessions = Vec::with_capacity(count);
    for _ in 0..count {
        sessions.push(Session::connect(url, mode).await?);
    }
    Ok(sessions)
}
