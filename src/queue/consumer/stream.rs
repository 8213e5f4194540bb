//! A consumer as a stream of single leased messages. A buffer contains the leased messages, and
//! releases those that the caller does not request in time.

use std::{
    collections::VecDeque,
    fmt,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use futures_util::stream::{FusedStream, Stream};
use tokio::{
    sync::{self, Notify},
    task::AbortHandle,
    time::{Instant, sleep, timeout_at},
};

use super::Consumer;
use crate::{
    error::{Error, Result},
    queue::{
        batch::dequeues::{DequeueMode, PAGE},
        handle::Shared,
        message::{Message, dequeue::Dequeue, payload::Payload},
    },
};

/// The first and the longest pause between an error and the next lease. Each further error doubles
/// the pause.
const PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(10));

impl<T: Payload> Consumer<T> {
    /// Turns the consumer into a [`Stream`] of leased messages, delivered at least once. The caller
    /// owns each message until its lease ends, and acknowledges it
    /// ([`Queue::ack`](crate::Queue::ack)), retries, buries or releases it.
    ///
    /// - The stream leases up to `prefetch` messages at a time, from 1 to 32,768. It leases only
    ///   when it is polled and has no messages left, so it never has more than `prefetch`. Choose
    ///   at most the number of messages that the caller handles in half of the lease time.
    /// - When the stream returns a message, about half of the queue's lease time or more is left.
    ///   If the caller is slow, the stream releases messages that have waited for longer, and no
    ///   attempt is counted. When the stream is dropped, it releases all its messages in the same
    ///   way.
    /// - The stream never ends. An error is an item, and the stream continues with the next poll.
    ///   It leases again a tenth of a second after an error; after several errors in a row, the
    ///   pause grows up to ten seconds. The caller decides whether to continue. Once the queue is
    ///   dropped, each item is an error ([`Error::is_no_queue`]).
    /// - A poll may be abandoned at any time, as in `select!`. The next poll returns messages that
    ///   arrive after that.
    ///
    /// Poll the stream within a tokio runtime. To work on several messages at the same time, with
    /// retries and renewed leases, see [`Worker`](crate::Worker).
    ///
    /// ```
    /// use futures_util::StreamExt; // or `StreamExt` of `futures` or `tokio_stream`
    /// # use trunkline::{Queue, Wait};
    /// # async fn example(mails: Queue<String>) -> trunkline::Result<()> {
    /// let mut stream = mails.consumer(Wait::default()).messages(100);
    /// while let Some(mail) = stream.next().await {
    ///     let mail = mail?;
    ///     println!("{}", mail.payload);
    ///     mails.ack([&mail]).await?;
    /// }
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn messages(self, prefetch: usize) -> Messages<T> {
        let (shared, lease) = (self.queue.shared.clone(), self.queue.description().lease);
        let buffer = Buffer { shared, prefetch: AtomicUsize::default(), state: Mutex::default(), asked: Notify::new() };
        let messages =
            Messages { consumer: Arc::new(sync::Mutex::new(self)), lease, buffer: Arc::new(buffer), filler: None };
        messages.lease_ahead(prefetch);
        messages
    }
}

impl<T> Messages<T> {
    /// Sets `prefetch`. A lease that waits for messages keeps the former value.
    pub(crate) fn lease_ahead(&self, prefetch: usize) {
        self.buffer.prefetch.store(prefetch.clamp(1, PAGE), Ordering::Relaxed);
    }
}

/// A stream of leased messages: see [`Consumer::messages`].
pub struct Messages<T> {
    /// The consumer. The task that fills the buffer locks it. If that task's runtime ends, another
    /// task can take the lock.
    consumer: Arc<sync::Mutex<Consumer<T>>>,
    /// The lease time of the messages. A message waits in the buffer for at most half of it.
    lease: Duration,
    buffer: Arc<Buffer<T>>,
    filler: Option<AbortHandle>,
}

impl<T> fmt::Debug for Messages<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let waiting = self.buffer.state().messages.len();
        out.debug_struct("Messages")
            .field("prefetch", &self.buffer.prefetch)
            .field("waiting", &waiting)
            .finish_non_exhaustive()
    }
}

impl<T: Payload> Stream for Messages<T> {
    type Item = Result<Message<T>>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let has_filler = {
            let mut state = self.buffer.state();
            // A caller that never yields lets no other task release late messages.
            let is_late = state.until.is_some_and(|until| until <= Instant::now());
            if !is_late && let Some(message) = state.messages.pop_front() {
                return Poll::Ready(Some(Ok(message)));
            }
            let late = state.messages.drain(..).map(|message| message.lease()).collect();
            self.buffer.shared.send_leases_back(late);
            if let Some(error) = state.error.take() {
                return Poll::Ready(Some(Err(error)));
            }
            state.waker = Some(context.waker().clone());
            state.is_wanted = true;
            std::mem::replace(&mut state.has_filler, true)
        };
        if !has_filler {
            let filler = Filler(self.buffer.clone());
            let filling = filler.fill(self.consumer.clone(), self.lease);
            self.filler = Some(tokio::spawn(filling).abort_handle());
        }
        self.buffer.asked.notify_one();
        Poll::Pending
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.buffer.state().messages.len(), None)
    }
}

impl<T: Payload> FusedStream for Messages<T> {
    fn is_terminated(&self) -> bool {
        false
    }
}

impl<T> Drop for Messages<T> {
    fn drop(&mut self) {
        if let Some(filler) = &self.filler {
            filler.abort();
        }
        self.buffer.give_back();
    }
}

/// Leased messages that the caller has not asked for yet. They are released when the buffer is
/// dropped.
struct Buffer<T> {
    shared: Arc<Shared>,
    /// The maximum number of messages of the next lease.
    prefetch: AtomicUsize,
    state: Mutex<BufferState<T>>,
    asked: Notify,
}

struct BufferState<T> {
    messages: VecDeque<Message<T>>,
    /// The time after which the messages are released.
    until: Option<Instant>,
    error: Option<Error>,
    /// True if the stream was polled while the buffer was empty, and no message has arrived since.
    is_wanted: bool,
    /// The waker of the last poll.
    waker: Option<Waker>,
    has_filler: bool,
}

impl<T> Default for BufferState<T> {
    fn default() -> Self {
        Self { messages: VecDeque::new(), until: None, error: None, is_wanted: false, waker: None, has_filler: false }
    }
}

impl<T> Buffer<T> {
    fn state(&self) -> MutexGuard<'_, BufferState<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns two flags: true if the stream waits for messages, and true if messages wait for the
    /// stream.
    fn waiting(&self) -> (bool, bool) {
        let state = self.state();
        (state.is_wanted, !state.messages.is_empty())
    }

    fn put(&self, leased: Result<(Vec<Message<T>>, Instant)>) {
        let waker = {
            let mut state = self.state();
            match leased {
                Ok((messages, until)) => {
                    state.messages.extend(messages);
                    state.until = Some(until);
                }
                Err(error) => state.error = Some(error),
            }
            state.is_wanted = false;
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Releases the remaining messages in a separate task. No attempt is counted.
    fn give_back(&self) {
        let leases = self.state().messages.drain(..).map(|message| message.lease()).collect();
        self.shared.send_leases_back(leases);
    }
}

impl<T> Drop for Buffer<T> {
    fn drop(&mut self) {
        self.give_back();
    }
}

/// The task that fills a buffer, and releases messages that wait in it for too long. If the task's
/// runtime ends, dropping this value wakes a waiting poll, and the next poll starts another task.
struct Filler<T>(Arc<Buffer<T>>);

impl<T> Drop for Filler<T> {
    fn drop(&mut self) {
        self.0.state().has_filler = false;
        self.0.put(Err(Error::ended("a lease", false)));
    }
}

impl<T: Payload> Filler<T> {
    async fn fill(self, consumer: Arc<sync::Mutex<Consumer<T>>>, lease: Duration) {
        let (mut lent, buffer) = (consumer.lock().await, &self.0);
        let (mut until, mut pause) = (Instant::now(), PAUSE.0);
        loop {
            // Requests the lease time explicitly, because the queue's own may be shorter by now.
            let request = Dequeue::up_to(buffer.prefetch.load(Ordering::Relaxed)).lease_for(lease);
            match buffer.waiting() {
                (true, _) => match lent.until_some(request, DequeueMode::Lease(request.lease())).await {
                    Ok(found) => {
                        let asked = found.asked.unwrap_or_else(Instant::now);
                        (until, pause) = (asked + lease / 2, PAUSE.0);
                        buffer.put(Ok((found.messages, until)));
                    }
                    Err(error) => {
                        buffer.put(Err(error));
                        sleep(pause).await;
                        pause = (pause * 2).min(PAUSE.1);
                    }
                },
                (false, true) => {
                    if timeout_at(until, buffer.asked.notified()).await.is_err() {
                        buffer.give_back();
                    }
                }
                (false, false) => buffer.asked.notified().await,
            }
        }
    }
}
