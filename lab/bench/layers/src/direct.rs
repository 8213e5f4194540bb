use std::sync::Arc;

use futures_util::future::try_join_all;
use tokio::task::JoinSet;
use trunkline_contender::{Contender, Failure, Ready, Settings, Tally};

use crate::{
    open::{open, wait},
    payload::{Text, all},
};

/// Sends each message inside the notification that wakes the waiting consumer.
pub struct HandOver<T: Text> {
    queue: trunkline::Queue<T>,
    told: Settings,
}

impl<T: Text> Contender for HandOver<T> {
    type Handle = ();

    async fn install(told: &Settings) -> Result<(Self, Ready), Failure> {
        let (queue, ready) = open(told, "send_direct, receive_direct: at most once").await?;
        Ok((Self { queue, told: told.clone() }, ready))
    }

    async fn send(&self, _: usize, payloads: Vec<String>) -> Result<(), Failure> {
        try_join_all(all::<T>(payloads)?.iter().map(|payload| self.queue.send_direct(payload))).await?;
        Ok(())
    }

    async fn seed(&self, payloads: Vec<String>) -> Result<(), Failure> {
        self.queue.enqueue_many(&all::<T>(payloads)?).await?;
        Ok(())
    }

    async fn consume(self: Arc<Self>, tally: Arc<Tally>) -> Result<(), Failure> {
        let mut consumers = JoinSet::new();
        for _ in 0..self.told.consumers_or(1) {
            let (mut consumer, tally) = (self.queue.consumer(wait(&self.told)), tally.clone());
            consumers.spawn(async move {
                let over = tally.over();
                tokio::pin!(over);
                loop {
                    tokio::select! {
                        () = &mut over => return Ok::<_, Failure>(()),
                        message = consumer.receive_direct() => tally.received(message?.payload.bytes()),
                    }
                }
            });
        }
        while let Some(ended) = consumers.join_next().await {
            ended??;
        }
        Ok(())
    }
}
