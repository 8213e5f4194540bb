//! A consumer of one server or of several.

use std::time::Duration;

use trunkline::{Consumer, Dequeue, Message, Payload, Queue, shards};

use super::{Of, alone};

pub enum AnyConsumer<T> {
    One(Queue<T>, Box<Consumer<T>>),
    Sharded(shards::Consumer<T>),
}

impl<T: Payload> AnyConsumer<T> {
    /// Waits until something is due.
    pub async fn ready(&mut self) -> trunkline::Result<()> {
        match self {
            Self::One(_, consumer) => consumer.ready().await,
            Self::Sharded(consumer) => consumer.ready().await.map(drop),
        }
    }

    /// Waits for one message, which may arrive inside a notification, and takes it.
    pub async fn receive_direct(&mut self) -> trunkline::Result<Of<Message<T>>> {
        Ok(match self {
            Self::One(_, consumer) => {
                let message = consumer.receive_direct().await?;
                alone(message.id, message)
            }
            Self::Sharded(consumer) => {
                let message = consumer.receive_direct().await?;
                (message.id().into(), message.of)
            }
        })
    }

    /// Takes at most `n` due messages, without waiting.
    pub async fn take(&mut self, n: usize) -> trunkline::Result<Vec<Of<Message<T>>>> {
        Ok(match self {
            Self::One(queue, _) => of_one(queue.take(n).await?),
            Self::Sharded(consumer) => of_several(consumer.take(Dequeue::up_to(n).within(Duration::ZERO)).await?),
        })
    }

    /// Leases at most `n` due messages, without waiting.
    pub async fn lease(&mut self, n: usize) -> trunkline::Result<Vec<Of<Message<T>>>> {
        Ok(match self {
            Self::One(queue, _) => of_one(queue.lease(n).await?),
            Self::Sharded(consumer) => of_several(consumer.lease(Dequeue::up_to(n).within(Duration::ZERO)).await?),
        })
    }
}

fn of_one<T>(messages: Vec<Message<T>>) -> Vec<Of<Message<T>>> {
    messages.into_iter().map(|message| alone(message.id, message)).collect()
}

fn of_several<T>(messages: Vec<shards::Sharded<Message<T>>>) -> Vec<Of<Message<T>>> {
    messages.into_iter().map(|message| (message.id().into(), message.of)).collect()
}
