//! Measures a queue whose messages have keys, with workers that keep the order of each key.

use std::{convert::Infallible, sync::Arc};

use tokio::task::JoinSet;
use trunkline::{Db, Draft, Queue, Settings as QueueSettings, postgres::Statement};
use trunkline_contender::{Contender, Failure, Ready, Settings, Tally};

use crate::{
    open::{open_as, wait},
    payload::{Text, all},
};

/// The number of the queue's partitions, as the guide recommends.
const LANES: u32 = 64;

/// Selects the partitions of keys, in the order of the keys.
static LANES_OF: Statement<(Vec<String>, i32), Vec<(i16,)>> = Statement::new(
    "select trunkline.lane_of(k.key, $2) from unnest($1::text[]) with ordinality k(key, nr) order by k.nr",
);

/// Sends messages one by one, coalesced, to `WORKERS` workers. Each worker has its own connections
/// and partitions.
pub struct Keyed<T: Text, const WORKERS: usize> {
    queue: Queue<T>,
    told: Settings,
}

impl<T: Text, const WORKERS: usize> Contender for Keyed<T, WORKERS> {
    type Handle = ();

    async fn install(told: &Settings) -> Result<(Self, Ready), Failure> {
        let how = format!("enqueue, coalesced; {WORKERS} worker(s), {LANES} lanes");
        let (queue, ready) = open_as(told, &how, &QueueSettings::new(T::TYPE).partitions(LANES)).await?;
        Ok((Self { queue, told: told.clone() }, ready))
    }

    /// Fails, because every message needs a key.
    async fn send(&self, _: usize, _: Vec<String>) -> Result<(), Failure> {
        Err("each message has a key: say how many there are by BENCH_KEYS".into())
    }

    async fn send_keyed(&self, _: usize, key: String, payload: String) -> Result<(), Failure> {
        self.queue.enqueue(Draft::new(T::of(payload)?).key(key)).await?;
        Ok(())
    }

    async fn seed_keyed(&self, key: String, payloads: Vec<String>) -> Result<(), Failure> {
        self.queue
            .enqueue_many(all::<T>(payloads)?.into_iter().map(|payload| Draft::new(payload).key(key.clone())))
            .await?;
        Ok(())
    }

    async fn lanes(&self, keys: Vec<String>) -> Result<Vec<i16>, Failure> {
        let lanes = self.queue.db().run(&LANES_OF, (keys, LANES as i32)).await?;
        Ok(lanes.into_iter().map(|(lane,)| lane).collect())
    }

    async fn consume(self: Arc<Self>, tally: Arc<Tally>) -> Result<(), Failure> {
        let mut workers = JoinSet::new();
        for worker in 0..WORKERS {
            let queue = match worker {
                0 => self.queue.clone(),
                _ => Db::connect(&self.told.url).await?.queue::<T>("bench").await?,
            };
            let (told, tally) = (self.told.clone(), tally.clone());
            workers.spawn(async move {
                let counted = tally.clone();
                let worker = trunkline::Worker::new(queue, move |message: trunkline::Message<T>| {
                    counted.received(message.payload.bytes());
                    async { Ok::<(), Infallible>(()) }
                });
                let worker = match told.consumers {
                    0 => worker,
                    consumers => worker.concurrency(consumers),
                };
                worker.wait(wait(&told)).run(tally.over()).await
            });
        }
        while let Some(ended) = workers.join_next().await {
            ended??;
        }
        Ok(())
    }
}
