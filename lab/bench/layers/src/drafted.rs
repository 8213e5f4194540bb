//! Measures the library on a queue whose messages are drafts: with priorities, or with unique keys.

use std::{
    marker::PhantomData,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use futures_util::future::try_join_all;
use trunkline::{Draft, Lease, Message, Queue, Settings as QueueSettings};
use trunkline_contender::{Contender, Failure, Ready, Settings, Tally};

use crate::{
    consume::{Promise, consume},
    open::open_as,
    payload::{Text, all},
};

pub trait Kind: Send + Sync + 'static {
    const WORDS: &'static str;

    fn settings(settings: QueueSettings) -> QueueSettings;

    /// Returns message number `nr`.
    fn draft<T>(payload: T, nr: u64) -> Draft<T>;
}

/// Drafts that cycle through four priorities.
pub struct Priorities;

impl Kind for Priorities {
    const WORDS: &'static str = "enqueue, lease, ack; four priorities in turn";

    fn settings(settings: QueueSettings) -> QueueSettings {
        settings.priorities(4)
    }

    fn draft<T>(payload: T, nr: u64) -> Draft<T> {
        Draft::new(payload).priority((nr % 4) as u8)
    }
}

/// Drafts that each have a unique key, which is kept for ten minutes.
pub struct Unique;

impl Kind for Unique {
    const WORDS: &'static str = "enqueue, lease, ack; a unique key each, for ten minutes";

    fn settings(settings: QueueSettings) -> QueueSettings {
        settings.uniqueness(true)
    }

    fn draft<T>(payload: T, nr: u64) -> Draft<T> {
        Draft::new(payload).unique(trunkline::Unique::key(format!("message {nr}")).within(Duration::from_secs(600)))
    }
}

pub struct Drafted<T: Text, K> {
    queue: Queue<T>,
    told: Settings,
    next: AtomicU64,
    kind: PhantomData<K>,
}

impl<T: Text, K: Kind> Drafted<T, K> {
    fn of(&self, payload: T) -> Draft<T> {
        K::draft(payload, self.next.fetch_add(1, Ordering::Relaxed))
    }
}

impl<T: Text, K: Kind> Contender for Drafted<T, K> {
    type Handle = Lease;

    async fn install(told: &Settings) -> Result<(Self, Ready), Failure> {
        let (queue, ready) = open_as(told, K::WORDS, &K::settings(QueueSettings::new(T::TYPE))).await?;
        Ok((Self { queue, told: told.clone(), next: AtomicU64::new(0), kind: PhantomData }, ready))
    }

    async fn send(&self, _: usize, payloads: Vec<String>) -> Result<(), Failure> {
        let mut drafts: Vec<Draft<T>> = all::<T>(payloads)?.into_iter().map(|payload| self.of(payload)).collect();
        match (drafts.len(), self.told.batch) {
            (1, _) => drop(self.queue.enqueue(drafts.remove(0)).await?),
            (_, 1) => drop(try_join_all(drafts.iter().map(|draft| self.queue.enqueue(draft))).await?),
            _ => drop(self.queue.enqueue_many(drafts).await?),
        }
        Ok(())
    }

    async fn seed(&self, payloads: Vec<String>) -> Result<(), Failure> {
        self.queue.enqueue_many(all::<T>(payloads)?.into_iter().map(|payload| self.of(payload))).await?;
        Ok(())
    }

    async fn consume(self: Arc<Self>, tally: Arc<Tally>) -> Result<(), Failure> {
        consume(self.queue.clone(), Promise::AtLeastOnce, &self.told, &tally).await
    }

    async fn read(&self, _: usize, n: usize) -> Result<Vec<Lease>, Failure> {
        Ok(self.queue.lease(n).await?.iter().map(Message::lease).collect())
    }

    async fn delete(&self, _: usize, read: Vec<Lease>) -> Result<(), Failure> {
        Ok(self.queue.ack(read).await?)
    }
}
