//! The load of the demo: callers that wait until each message is stored, and consumers that lease
//! and acknowledge messages.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use indicatif::ProgressBar;
use tokio::{sync::watch, task::JoinSet};
use trunkline::{Lease, Queue, Wait};

use super::{
    stamp::Stamp,
    tally::{Durations, Tally},
};
use crate::{
    error::{Error, Result},
    progress,
};

/// The number of concurrent consumers. While one consumer waits for the server, the other one
/// processes its messages.
const CONSUMERS: usize = 2;
/// The maximum number of messages that a consumer leases at a time.
const LEASED: usize = 8192;
/// The time without an arrival after which the missing messages count as lost if the queue is
/// empty.
const PATIENCE: Duration = Duration::from_secs(1);

pub struct Load {
    queue: Queue<Stamp>,
    messages: u64,
    bytes: usize,
    began: Instant,
    next: AtomicU64,
    enqueued: AtomicU64,
    pub tally: Tally,
    pub calls: Durations,
    pub deliveries: Durations,
    done: watch::Sender<bool>,
}

/// The time that the callers took, and the time that the consumers took.
pub struct Took {
    pub enqueue: Duration,
    pub end_to_end: Duration,
}

impl Load {
    pub fn new(queue: Queue<Stamp>, messages: u64, bytes: usize) -> Arc<Self> {
        Arc::new(Self {
            queue,
            messages,
            bytes,
            began: Instant::now(),
            next: AtomicU64::new(0),
            enqueued: AtomicU64::new(0),
            tally: Tally::new(messages),
            calls: Durations::new(),
            deliveries: Durations::new(),
            done: watch::Sender::new(false),
        })
    }

    /// Enqueues and consumes all messages. Returns early with the first error of either side.
    pub async fn run(self: &Arc<Self>, callers: u64) -> Result<Took> {
        let mut consumers: JoinSet<Result<Duration>> =
            (0..CONSUMERS).map(|_| self.clone().consume()).collect::<JoinSet<_>>();
        let mut enqueuers: JoinSet<Result<()>> = (0..callers.min(self.messages)).map(|_| self.clone().call()).collect();
        let watcher = tokio::spawn(self.clone().watch());
        while let Some(ended) = enqueuers.join_next().await {
            joined(ended)?;
        }
        let enqueue = self.began.elapsed();
        let mut end_to_end = Duration::ZERO;
        while let Some(ended) = consumers.join_next().await {
            end_to_end = end_to_end.max(joined(ended)?);
        }
        joined(watcher.await)?;
        Ok(Took { enqueue, end_to_end })
    }

    /// Returns the number of messages in the queue, which is 0 once all received messages are
    /// acknowledged.
    pub async fn left(&self) -> Result<u64> {
        Ok(self.queue.stats().await?.messages)
    }

    fn micros(&self) -> u64 {
        self.began.elapsed().as_micros() as u64
    }

    /// Runs one caller, which enqueues the next message only after the previous one is stored.
    async fn call(self: Arc<Self>) -> Result<()> {
        let mut calls = self.calls.recorder();
        let mut now = self.micros();
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= self.messages {
                return Ok(());
            }
            self.queue.enqueue(Stamp { number, micros: now, bytes: self.bytes }).await?;
            let after = self.micros();
            calls.add(after - now);
            now = after;
            self.enqueued.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Runs one consumer, which leases the next messages while it acknowledges the previous ones.
    /// Returns when the server has answered the last acknowledgement.
    async fn consume(self: Arc<Self>) -> Result<Duration> {
        let mut consumer = self.queue.consumer(Wait::Adaptive);
        let mut deliveries = self.deliveries.recorder();
        let mut done = self.done.subscribe();
        let mut acks: JoinSet<Result<Duration>> = JoinSet::new();
        let mut last = Duration::ZERO;
        loop {
            let messages = tokio::select! {
                messages = consumer.lease(LEASED) => messages?,
                _ = done.wait_for(|done| *done) => break, // all messages have arrived, or the rest never will arrive
            };
            let now = self.micros();
            self.tally.count(messages.iter().map(|message| message.payload.number));
            for message in &messages {
                deliveries.add(now.saturating_sub(message.payload.micros));
            }
            if let Some(acked) = acks.join_next().await {
                last = joined(acked)?;
            }
            let leases: Vec<Lease> = messages.iter().map(Lease::from).collect();
            let load = self.clone();
            acks.spawn(async move {
                load.queue.ack(leases).await?;
                Ok(load.began.elapsed())
            });
            if self.tally.is_complete() {
                self.done.send_replace(true);
            }
        }
        while let Some(acked) = acks.join_next().await {
            last = last.max(joined(acked)?);
        }
        Ok(last)
    }

    /// Draws the progress, and stops the run if messages are lost.
    async fn watch(self: Arc<Self>) -> Result<()> {
        let bars = progress::bars();
        let [enqueued, received] =
            ["enqueued", "received"].map(|name| bars.add(progress::messages(name, self.messages)));
        let draw = |bar: &ProgressBar, position| bar.set_position(position);
        let mut done = self.done.subscribe();
        let mut seen = (0, Instant::now());
        while tokio::time::timeout(progress::TICK, done.wait_for(|done| *done)).await.is_err() {
            draw(&enqueued, self.enqueued.load(Ordering::Relaxed));
            draw(&received, self.tally.distinct());
            if self.tally.distinct() != seen.0 {
                seen = (self.tally.distinct(), Instant::now());
            }
            let all_are_in = self.enqueued.load(Ordering::Relaxed) == self.messages;
            if all_are_in && seen.1.elapsed() > PATIENCE && self.queue.stats().await?.messages == 0 {
                self.done.send_replace(true);
            }
        }
        bars.clear().map_err(|cause| Error::new(format!("cannot draw: {cause}")))
    }
}

fn joined<T>(ended: Result<Result<T>, tokio::task::JoinError>) -> Result<T> {
    ended.unwrap_or_else(|cause| Err(Error::new(format!("a task of the demo failed: {cause}"))))
}
