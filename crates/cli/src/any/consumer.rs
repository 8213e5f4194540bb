//! A consumer of a queue on one server or on several.

use std::time::Duration;

use trunkline::{Consumer, Dequeue, Message, Payload, shards};

use super::{Of, alone};

pub enum AnyConsumer<T> {
    One(Box<Consumer<T>>),
    Sharded(Box<shards::Consumer<T>>),
}

impl<T: Payload> AnyConsumer<T> {
    pub async fn ready(&mut self) -> trunkline::Result<()> {
        match self {
            Self::One(consumer) => consumer.ready().await,
            Self::Sharded(consumer) => consumer.ready().await.map(drop),
        }
    }

    /// Waits for one message, which may arrive inside a notification, and takes it.
    pub async fn receive_direct(&mut self) -> trunkline::Result<Of<Message<T>>> {
        Ok(match self {
            Self::One(consumer) => {
                let message = consumer.receive_direct().await?;
                alone(message.id, message)
            }
            Self::Sharded(consumer) => {
                let message = consumer.receive_direct().await?;
                (message.id().into(), message.of)
            }
        })
    }

    /// Stops waiting for direct messages. Returns once those that have arrived are enqueued.
    pub async fn close_direct(&mut self) {
        match self {
            Self::One(consumer) => consumer.close_direct().await,
            Self::Sharded(consumer) => consumer.close_direct().await,
        }
    }

    /// Takes at most `n` due messages, without waiting.
    pub async fn take(&mut self, n: usize) -> trunkline::Result<Vec<Of<Message<T>>>> {
        Ok(match self {
            Self::One(consumer) => of_one(consumer.take(now(n)).await?),
            Self::Sharded(consumer) => of_several(consumer.take(now(n)).await?),
        })
    }

    /// Leases at most `n` due messages for the time `lease`, without waiting.
    pub async fn lease(&mut self, n: usize, lease: Duration) -> trunkline::Result<Vec<Of<Message<T>>>> {
        let request = now(n).lease_for(lease);
        Ok(match self {
            Self::One(consumer) => of_one(consumer.lease(request).await?),
            Self::Sharded(consumer) => of_several(consumer.lease(request).await?),
        })
    }
}

/// Returns a request that does not wait. So the consumer notices when messages arrive without a
/// pause, and then stops listening for notifications.
fn now(n: usize) -> Dequeue {
    Dequeue::up_to(n).within(Duration::ZERO)
}

fn of_one<T>(messages: Vec<Message<T>>) -> Vec<Of<Message<T>>> {
    messages.into_iter().map(|message| alone(message.id, message)).collect()
}

fn of_several<T>(messages: Vec<shards::Sharded<Message<T>>>) -> Vec<Of<Message<T>>> {
    messages.into_iter().map(|message| (message.id().into(), message.of)).collect()
}
