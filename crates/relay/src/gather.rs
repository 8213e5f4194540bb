//! Batches the messages of many handlers. The next batch fills while earlier batches are in flight,
//! so no timer is needed and no delay is added.

use std::{sync::Arc, time::Duration};

use futures_util::FutureExt;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot},
    time::timeout,
};
use tracing::{Instrument, Span, field, info_span};

use crate::{
    metric::Metrics,
    outgoing::Outgoing,
    sink::{Outcome, Sink},
};

/// The maximum number of messages per batch.
const MESSAGES: usize = 1000;
/// The maximum number of bytes per batch. The last message may exceed it.
const BYTES: usize = 1 << 20;

/// The number of bytes per second that the slowest link to a broker carries. If a sink's time limit
/// covers a transfer, the sink extends the limit by the time that such a link takes for it: see
/// [`transfer`]. Over a slower link, messages may be sent again although they arrive.
#[cfg(any(feature = "rabbitmq", feature = "redis"))]
const SLOWEST: usize = 64 << 10;

/// Returns the time that the slowest link takes to carry this number of bytes, in whole seconds.
#[cfg(any(feature = "rabbitmq", feature = "redis"))]
pub(crate) fn transfer(bytes: usize) -> Duration {
    Duration::from_secs((bytes / SLOWEST) as u64)
}

/// A message, and the handler that is waiting for its outcome.
struct Waiting {
    message: Outgoing,
    answer: oneshot::Sender<(Outgoing, Outcome)>,
}

/// The handle through which handlers send their messages.
#[derive(Clone)]
pub(crate) struct Gather(mpsc::UnboundedSender<Waiting>);

impl Gather {
    /// Starts a batcher for a sink, with at most `batches` batches in flight. It ends when all
    /// handles are dropped.
    pub fn start(sink: Arc<dyn Sink>, batches: usize, metrics: Arc<Metrics>) -> Self {
        let (sender, receiver) = mpsc::unbounded_channel(); // the worker's concurrency limits the number of messages
        tokio::spawn(gather(receiver, sink, batches.max(1), metrics));
        Self(sender)
    }

    /// Sends a message and waits for its outcome. Also returns the message, for the next attempt.
    pub async fn produce(&self, message: Outgoing) -> Result<(Outgoing, Outcome), String> {
        let (answer, answered) = oneshot::channel();
        let gone = || "the relay's batch ended without an answer".to_owned();
        self.0.send(Waiting { message, answer }).map_err(|_| gone())?;
        answered.await.map_err(|_| gone())
    }
}

async fn gather(
    mut waiting: mpsc::UnboundedReceiver<Waiting>,
    sink: Arc<dyn Sink>,
    batches: usize,
    metrics: Arc<Metrics>,
) {
    let (room, limit) = (Arc::new(Semaphore::new(batches)), sink.longest(batches));
    loop {
        let Ok(permit) = room.clone().acquire_owned().await else { return };
        let Some(first) = waiting.recv().await else { return };
        tokio::task::yield_now().await; // lets ready handlers join the batch
        let mut bytes = first.message.size();
        let mut batch = vec![first];
        while batch.len() < MESSAGES && bytes < BYTES {
            let Ok(next) = waiting.try_recv() else { break };
            bytes += next.message.size();
            batch.push(next);
        }
        tokio::spawn(produce(batch, sink.clone(), limit, permit, metrics.clone()));
    }
}

/// Sends one batch and distributes the outcomes. If the sink panics, each handler gets an error.
async fn produce(
    batch: Vec<Waiting>,
    sink: Arc<dyn Sink>,
    limit: Duration,
    permit: OwnedSemaphorePermit,
    metrics: Arc<Metrics>,
) {
    let (messages, answers): (Vec<_>, Vec<_>) =
        batch.into_iter().map(|waiting| (waiting.message, waiting.answer)).unzip();
    let span = info_span!("relay_produce", broker = sink.broker(), messages = messages.len(), confirmed = field::Empty);
    let began = std::time::Instant::now();
    let produced = std::panic::AssertUnwindSafe(timeout(limit, sink.produce(&messages))).catch_unwind();
    let outcomes = match produced.instrument(span.clone()).await {
        Ok(Ok(outcomes)) => outcomes,
        Ok(Err(_)) => vec![Outcome::RefusedForNow(format!("no answer in {limit:?}")); messages.len()],
        Err(_) => vec![Outcome::RefusedForNow("the sink panicked".to_owned()); messages.len()],
    };
    drop(permit);
    told(&span, &outcomes);
    metrics.produced(messages.len(), began);
    let missing = || Outcome::RefusedForNow("the sink did not answer for it".to_owned());
    let mut outcomes = outcomes.into_iter();
    for (message, answer) in messages.into_iter().zip(answers) {
        let _ = answer.send((message, outcomes.next().unwrap_or_else(missing))); // fails if the handler is gone
    }
}

fn told(span: &Span, outcomes: &[Outcome]) {
    if !span.is_disabled() {
        span.record("confirmed", outcomes.iter().filter(|outcome| **outcome == Outcome::Confirmed).count());
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use futures_util::future::BoxFuture;
    use tokio::time::Instant;

    use super::*;

    /// A sink whose broker never answers.
    struct Hanging;

    impl Sink for Hanging {
        fn broker(&self) -> &'static str {
            "hanging"
        }

        fn produce<'a>(&'a self, _batch: &'a [Outgoing]) -> BoxFuture<'a, Vec<Outcome>> {
            Box::pin(pending::<Vec<Outcome>>())
        }
    }

    /// A sink like [`Hanging`], whose batches wait for each other.
    struct Patient;

    impl Sink for Patient {
        fn broker(&self) -> &'static str {
            "patient"
        }

        fn produce<'a>(&'a self, _batch: &'a [Outgoing]) -> BoxFuture<'a, Vec<Outcome>> {
            Box::pin(pending::<Vec<Outcome>>())
        }

        fn longest(&self, batches: usize) -> Duration {
            Duration::from_secs(100 * batches as u64)
        }
    }

    /// Returns the time after which a message for the sink is refused.
    async fn waited(sink: impl Sink) -> Duration {
        let gather = Gather::start(Arc::new(sink), 8, Arc::new(Metrics::of("q", "b")));
        let began = Instant::now();
        let (_, outcome) = gather.produce(Outgoing::new("q/1/1", "orders", "x")).await.expect("an outcome");
        assert!(matches!(outcome, Outcome::RefusedForNow(_)), "{outcome:?}");
        began.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn hanging_sink_is_left_at_its_own_limit() {
        assert_eq!(waited(Hanging).await.as_secs(), 60);
        assert_eq!(waited(Patient).await.as_secs(), 800);
    }
}
