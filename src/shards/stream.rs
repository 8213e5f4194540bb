//! A consumer of all shards as a stream: one stream for each shard, polled in rotation.

use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use futures_util::{
    FutureExt,
    future::BoxFuture,
    stream::{FusedStream, Stream},
};
use tokio::sync::watch;

use crate::{
    error::Result,
    queue::{
        consumer::Messages as ShardMessages,
        message::{Message, payload::Payload},
        wait::Wait,
    },
    shards::{
        consumer::Consumer,
        id::{Id, Sharded},
        queue::{Members, Queue},
        shard::Shard,
        verbs::named,
    },
};

impl<T: Payload> Consumer<T> {
    /// Returns a [`Stream`] of leased messages of all shards, delivered at least once. It polls one
    /// stream per shard in rotation, each like [`Consumer::messages`](crate::Consumer::messages).
    ///
    /// - `prefetch` is divided equally among all shards, and the part of each shard is at least one
    ///   message.
    /// - A shard that is down is skipped until it is up again. A shard that joins is polled too,
    ///   and a shard that leaves is no longer polled. Servers that are down cause an error only if
    ///   all servers are down.
    ///
    /// ```
    /// use futures_util::StreamExt; // or `StreamExt` of `futures` or `tokio_stream`
    /// # use trunkline::{Wait, shards};
    /// # async fn example(mails: shards::Queue<String>) -> trunkline::Result<()> {
    /// let mut stream = mails.consumer(Wait::default()).messages(100);
    /// while let Some(mail) = stream.next().await {
    ///     let mail = mail?;
    ///     println!("{}: {}", mail.shard, mail.payload);
    ///     mails.ack([&mail]).await?;
    /// }
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn messages(self, prefetch: usize) -> Messages<T> {
        let changes = changes(self.members.clone());
        let mut messages =
            Messages { queue: self.queue, wait: self.wait, prefetch, parts: Vec::new(), changes, next: 0 };
        messages.sit();
        messages
    }
}

/// A stream of leased messages of all shards: see [`Consumer::messages`].
pub struct Messages<T> {
    queue: Queue<T>,
    wait: Wait,
    prefetch: usize,
    parts: Vec<ShardStream<T>>,
    changes: Changes<T>,
    /// The index of the part with which the next poll begins.
    next: usize,
}

struct ShardStream<T> {
    shard: Arc<Shard>,
    messages: ShardMessages<T>,
}

/// A future that becomes ready when shards join or leave.
type Changes<T> = BoxFuture<'static, watch::Receiver<Members<T>>>;

fn changes<T: Payload>(mut members: watch::Receiver<Members<T>>) -> Changes<T> {
    async move {
        if members.changed().await.is_err() {
            std::future::pending::<()>().await; // never reached while the queue holds the sender
        }
        members
    }
    .boxed()
}

impl<T> fmt::Debug for Messages<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { queue, prefetch, .. } = self;
        out.debug_struct("Messages").field("queue", queue).field("prefetch", prefetch).finish_non_exhaustive()
    }
}

impl<T: Payload> Messages<T> {
    /// Adds a part for each shard that has joined, and removes the parts of shards that have left.
    fn sit(&mut self) {
        self.queue.shared.tend();
        let members = self.queue.members();
        self.parts.retain(|part| members.iter().any(|member| Arc::ptr_eq(&member.shard, &part.shard)));
        let prefetch = (self.prefetch / members.len().max(1)).max(1);
        self.parts.iter().for_each(|part| part.messages.lease_ahead(prefetch));
        for member in members.iter() {
            if !self.parts.iter().any(|part| Arc::ptr_eq(&part.shard, &member.shard)) {
                let messages = member.queue.consumer(self.wait).messages(prefetch);
                self.parts.push(ShardStream { shard: member.shard.clone(), messages });
            }
        }
    }
}

impl<T: Payload> Stream for Messages<T> {
    type Item = Result<Sharded<Message<T>>>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        while let Poll::Ready(members) = this.changes.poll_unpin(context) {
            this.changes = changes(members);
            this.sit();
        }
        let count = this.parts.len();
        let awake: Vec<Id> = this
            .parts
            .iter()
            .map(|part| &part.shard)
            .filter(|shard| !shard.is_unreachable())
            .map(|shard| shard.id)
            .collect();
        for at in (0..count).map(|at| (this.next + at) % count) {
            let ShardStream { shard, messages } = &mut this.parts[at];
            // Continues with items that are ready. The next item may be the rest of a lease, or an
            // error that does not matter while other shards are up.
            while let Poll::Ready(Some(item)) = Pin::new(&mut *messages).poll_next(context) {
                match item {
                    Ok(of) => {
                        let shard = shard.id;
                        this.next = at + 1;
                        return Poll::Ready(Some(Ok(Sharded { shard, of })));
                    }
                    Err(error) if error.is_closed() => {
                        shard.lost(&error);
                        if awake.iter().all(|other| *other == shard.id) {
                            return Poll::Ready(Some(named(shard.id, Err(error))));
                        }
                        // Polls once more, so that the part can lease again after a pause and wake
                        // the task when it has a message.
                    }
                    Err(error) => return Poll::Ready(Some(named(shard.id, Err(error)))),
                }
            }
        }
        Poll::Pending
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.parts.iter().map(|part| part.messages.size_hint().0).sum(), None)
    }
}

impl<T: Payload> FusedStream for Messages<T> {
    fn is_terminated(&self) -> bool {
        false
    }
}
