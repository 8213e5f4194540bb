//! Messages inside their notifications, over several servers.

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
        verbs::named,
    },
};

impl<T: Payload> Queue<T> {
    /// Hands a message to one consumer that waits for it with [`Consumer::receive_direct`],
    /// inside the notification that wakes it, on the shard that [`Queue::spread`] says: as
    /// [`Queue::send_direct`](crate::Queue::send_direct). Where no consumer waits on that shard, it is
    /// enqueued there.
    ///
    /// # Errors
    /// As those of [`Queue::enqueue`], which passes over shards that are away as this does.
    pub async fn send_direct(&self, message: impl IntoDraft<T> + Send + Sync) -> Result<Sharded<Enqueued>> {
        let mut tries = Tries::of(self);
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
    /// Waits for one message of any shard, at most once, and while it waits takes what
    /// [`Queue::send_direct`] hands it inside a notification: as
    /// [`Consumer::receive_direct`](crate::Consumer::receive_direct), on every shard that is there. When
    /// it has one it leaves the lists of those that wait on the others, which is a round trip to
    /// each, at the same time; what is on its way to it by then is what its next call returns.
    ///
    /// # Errors
    /// As those of [`Queue::take`](crate::Queue::take), with the shard's name. Where no shard is
    /// there it waits for one, up to half a minute.
    pub async fn receive_direct(&mut self) -> Result<Sharded<Message<T>>> {
        loop {
            if let Some(message) = self.handed.take() {
                return Ok(message);
            }
            self.sit();
            let set = self.queue.shared.shards.0.clone();
            let changed = set.changed.notified();
            let awake = self.awake();
            if awake.is_empty() {
                // Until one is back; whether something is due there does not matter.
                self.until_due(None).await?;
                continue;
            }
            let Self { seats, members, .. } = self;
            let waits = seats.iter_mut().enumerate().filter(|(at, _)| awake.contains(at)).map(|(at, seat)| {
                let wait: BoxFuture<'_, _> = async move { (at, seat.consumer.receive_direct().await) }.boxed();
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
                    // Kept for the next call, should this one be dropped.
                    self.handed = Some(Sharded { shard: shard.id, of });
                    self.next = at + 1;
                    self.withdraw(at).await;
                }
                Err(error) if error.is_closed() => shard.lost(&error),
                Err(error) => return named(shard.id, Err(error)),
            }
        }
    }

    /// Waits nowhere any more, so that what is handed over goes to others.
    async fn withdraw(&mut self, but: usize) {
        let others = self.seats.iter_mut().enumerate().filter(|(at, seat)| *at != but && !seat.shard.is_down());
        let withdrawals = others.map(|(_, Seat { shard, consumer })| async move {
            match timeout(SILENCE, consumer.withdraw()).await {
                Ok(Err(error)) if error.is_closed() => shard.lost(&error),
                // Whatever else it is, the next call finds it.
                _ => {}
            }
        });
        join_all(withdrawals).await;
    }
}
