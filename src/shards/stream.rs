//! A consumer of all shards as a stream: one for each of them, asked in turns.

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
    /// The consumer as a [`Stream`] of leased messages of all shards, at least once: as
    /// [`Consumer::messages`](crate::Consumer::messages), which there is one of for each shard,
    /// and they are asked in turns.
    ///
    /// - `prefetch` is for all shards together, in equal parts; each may hold one.
    /// - A shard that is away is passed over, and is back by itself; one that joins takes part,
    ///   and one that is taken out leaves. An item is an error only where that is no matter of the
    ///   server's being away, or where all of them are.
    ///
    /// ```
    /// use futures_util::StreamExt; // or that of `futures`, or of `tokio_stream`
    /// # use trunkline::{Queue, Wait};
    /// # async fn example(mails: Queue<String>) -> trunkline::Result<()> {
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
    parts: Vec<Part<T>>,
    changes: Changes<T>,
    /// The part that is first next time.
    next: usize,
}

struct Part<T> {
    shard: Arc<Shard>,
    messages: ShardMessages<T>,
}

/// Until shards joined or left.
type Changes<T> = BoxFuture<'static, watch::Receiver<Members<T>>>;

fn changes<T: Payload>(mut members: watch::Receiver<Members<T>>) -> Changes<T> {
    async move {
        if members.changed().await.is_err() {
            std::future::pending::<()>().await; // the queue holds the other end
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
    /// A part for each shard that takes part by now, and no other.
    fn sit(&mut self) {
        self.queue.shared.tend();
        let members = self.queue.members();
        self.parts.retain(|part| members.iter().any(|member| Arc::ptr_eq(&member.shard, &part.shard)));
        let prefetch = (self.prefetch / members.len().max(1)).max(1);
        for member in members.iter() {
            if !self.parts.iter().any(|part| Arc::ptr_eq(&part.shard, &member.shard)) {
                let messages = member.queue.consumer(self.wait).messages(prefetch);
                self.parts.push(Part { shard: member.shard.clone(), messages });
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
        let awake: Vec<Id> =
            this.parts.iter().map(|part| &part.shard).filter(|shard| !shard.is_down()).map(|shard| shard.id).collect();
        for at in (0..count).map(|at| (this.next + at) % count) {
            let Part { shard, messages } = &mut this.parts[at];
            // What is ready first; behind it may be the rest of a lease, or an error that is none
            // while others are there.
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
                        // Once more: it leases again after a pause of its own, and tells when it
                        // has something.
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
