use std::sync::Arc;

use futures_util::future::try_join_all;
use trunkline::{Db, Lease, Settings as Queue, shards};
use trunkline_contender::{Contender, Failure, Ready, Settings, Tally};

use crate::{
    open::wait,
    payload::{Text, all},
};

/// The number of messages per lease, if the contender may choose it.
const LEASE: usize = 8192;

/// The library with one call per message, on the servers that `BENCH_STRIPES` lists, one per line.
/// With `JOBS`, each row contains one message.
pub struct OnShards<T: Text, const JOBS: bool = false, const ROUND_ROBIN: bool = false> {
    queue: shards::Queue<T>,
    told: Settings,
}

impl<T: Text, const JOBS: bool, const ROUND_ROBIN: bool> Contender for OnShards<T, JOBS, ROUND_ROBIN> {
    type Handle = shards::Sharded<Lease>;

    async fn install(told: &Settings) -> Result<(Self, Ready), Failure> {
        let urls = std::env::var("BENCH_STRIPES").unwrap_or_else(|_| told.url.clone());
        let settings = Queue::new(T::TYPE).max_batch(if JOBS { 1 } else { 1024 });
        for url in urls.lines() {
            let db = Db::connect(url).await?;
            db.migrate().await?;
            db.create_queue("bench", &settings).await?;
        }
        let queue = shards::Set::connect(urls.lines()).await?.queue("bench").await?;
        let spread = if ROUND_ROBIN { shards::Routing::RoundRobin } else { shards::Routing::default() };
        let queue = queue.routing(spread);
        let version = concat!("Trunkline ", env!("CARGO_PKG_VERSION")).to_owned();
        let rows = if JOBS { "a row a message" } else { "coalesced" };
        let settings = format!("enqueue, {spread:?}, {rows}; a queue of {}, {:?}", T::TYPE, wait(told));
        Ok((Self { queue, told: told.clone() }, Ready { version, settings }))
    }

    async fn send(&self, _: usize, payloads: Vec<String>) -> Result<(), Failure> {
        let mut payloads = all::<T>(payloads)?;
        match payloads.len() {
            1 => drop(self.queue.enqueue(payloads.remove(0)).await?),
            _ => drop(try_join_all(payloads.iter().map(|payload| self.queue.enqueue(payload))).await?),
        }
        Ok(())
    }

    async fn consume(self: Arc<Self>, tally: Arc<Tally>) -> Result<(), Failure> {
        let mut consumer = self.queue.consumer(wait(&self.told));
        let over = tally.over();
        tokio::pin!(over);
        loop {
            let messages = tokio::select! {
                () = &mut over => return Ok(()),
                messages = consumer.lease(LEASE) => messages?,
            };
            tally.received_many(messages.iter().map(|message| message.of.payload.bytes()));
            self.queue.ack(&messages).await?;
        }
    }

    async fn read(&self, _: usize, n: usize) -> Result<Vec<shards::Sharded<Lease>>, Failure> {
        let leased = self.queue.consumer(wait(&self.told)).lease(n).await?;
        Ok(leased.iter().map(shards::Sharded::lease).collect())
    }

    async fn delete(&self, _: usize, read: Vec<shards::Sharded<Lease>>) -> Result<(), Failure> {
        Ok(self.queue.ack(read).await?)
    }
}
