//! Direct delivery over several servers: a notification contains the message.

use std::{ops::ControlFlow, time::Instant};

use futures_util::{
    FutureExt,
    future::{BoxFuture, join_all, select_all},
};
use tokio::time::timeout;

use crate::{
    error::Result,
    queue::message::{
        Message,
        draft::{Draft, IntoDraft},
        payload::Payload,
        unique::Enqueued,
    },
    shards::{
        consumer::{Consumer, SILENCE, Seat},
        enqueue::Tries,
        id::Sharded,
        queue::Queue,
        routing::Routing,
        verbs::named,
    },
};

impl<T: Payload> Queue<T> {
    /// Delivers a message directly to one consumer that waits in [`Consumer::receive_direct`],
    /// inside the notification that wakes it, like
    /// [`Queue::send_direct`](crate::Queue::send_direct) on a single server. [`Queue::routing`]
    /// chooses the shard. If no consumer waits on that shard, the message is enqueued on it.
    ///
    /// # Errors
    /// The errors of [`Queue::enqueue`]. Shards that are down are skipped in the same way.
    pub async fn send_direct(&self, message: impl IntoDraft<T> + Send + Sync) -> Result<Sharded<Enqueued>> {
        let mut tries = Tries::of(self);
        if let Some(unique) = message.unique() {
            tries.routing = Routing::by_key(&*unique.key);
        }
        loop {
            let member = tries.next().await?;
            let waiting = member.shard.health.begin(Instant::now());
            let outcome = member.queue.send_direct(Draft::<()>::lent(&message)).await;
            drop(waiting);
            if let ControlFlow::Break(outcome) = tries.tried(&member, outcome) {
                return outcome;
            }
        }
    }
}

impl<T: Payload> Consumer<T> {
    /// Waits for one message of any shard, delivered at most once. While it waits, the consumer
    /// also accepts messages that [`Queue::send_direct`] delivers inside a notification, like
    /// [`Consumer::receive_direct`](crate::Consumer::receive_direct) on a single server. Once the
    /// consumer has a message, it leaves the wait lists of the other shards. This takes one round
    /// trip to each of them, at the same time. If one of them has already sent a message, the next
    /// call returns it.
    ///
    /// # Errors
    /// The errors of [`Queue::take`](crate::Queue::take), with the name of the shard. If every
    /// shard is down, the call waits for up to half a minute.
    pub async fn receive_direct(&mut self) -> Result<Sharded<Message<T>>> {
        loop {
            if let Some(Sharded { shard, of: offer }) = self.handed.take() {
                // Continues after an unreadable message, whose attempt has failed.
                match named(shard, offer.accept(Ok))?.pop() {
                    Some(of) => return Ok(Sharded { shard, of }),
                    None => continue,
                }
            }
            self.sit();
            let set = self.queue.shared.shards.0.clone();
            let changed = set.changed.notified();
            let awake = self.awake();
            if awake.is_empty() {
                // Waits until a shard is up, even if no message is due on it.
                self.until_due(None).await?;
                continue;
            }
            let Self { seats, members, .. } = self;
            let waits = seats.iter_mut().enumerate().filter(|(at, _)| awake.contains(at)).map(|(at, seat)| {
                let wait: BoxFuture<'_, _> = async move { (at, seat.consumer.offer_receive_direct().await) }.boxed();
                wait
            });
            let (at, outcome) = tokio::select! {
                (first, ..) = select_all(waits) => first,
                () = changed => continue,
                _ = members.changed() => continue,
            };
            let shard = self.seats[at].shard.clone();
            match outcome {
                Ok(of) => {
                    // If this call is dropped, the message is kept for the next call; if the
                    // consumer is dropped too, the message is put back.
                    self.handed = Some(Sharded { shard: shard.id, of });
                    self.next = at + 1;
                    self.withdraw(at).await;
                }
                Err(error) if error.is_closed() => shard.lost(&error),
                Err(error) => return named(shard.id, Err(error)),
            }
        }
    }

    /// Leaves the wait lists of all shards, as
    /// [`Consumer::close_direct`](crate::Consumer::close_direct) does on a single server.
    #[doc(hidden)]
    pub async fn close_direct(&mut self) {
        self.handed = None; // puts the message back
        join_all(self.seats.iter_mut().map(|seat| seat.consumer.close_direct())).await;
    }

    /// Leaves the wait lists of the other shards, so that their messages go to other consumers.
    async fn withdraw(&mut self, but: usize) {
        let others = self.seats.iter_mut().enumerate().filter(|(at, seat)| *at != but && !seat.shard.is_unreachable());
        let withdrawals = others.map(|(_, Seat { shard, consumer, .. })| async move {
            match timeout(SILENCE, consumer.withdraw()).await {
                Ok(Err(error)) if error.is_closed() => shard.lost(&error),
                // Leaves any other error to the next call, which reports it.
                _ => {}
            }
        });
        join_all(withdrawals).await;
    }
}
