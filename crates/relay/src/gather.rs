//! Messages from many handlers meet in batches: while some are on their way, the next gather. No
//! timer, no linger.

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

/// Messages of a batch at most.
const MESSAGES: usize = 1000;
/// Bytes of a batch at most, but for its last message.
const BYTES: usize = 1 << 20;
/// A sink that has not answered by then will not.
const SILENCE: Duration = Duration::from_secs(60);

/// A message, and who waits for the broker's word on it.
struct Waiting {
    message: Outgoing,
    answer: oneshot::Sender<(Outgoing, Outcome)>,
}

/// Where handlers hand their messages over.
#[derive(Clone)]
pub(crate) struct Gather(mpsc::UnboundedSender<Waiting>);

impl Gather {
    /// Gathers for a sink, with at most `batches` batches under way; until all handles are dropped.
    pub fn start(sink: Arc<dyn Sink>, batches: usize, metrics: Arc<Metrics>) -> Self {
        let (sender, receiver) = mpsc::unbounded_channel(); // bounded by the worker's hands
        tokio::spawn(gather(receiver, sink, batches.max(1), metrics));
        Self(sender)
    }

    /// Hands a message over and waits for the broker's word. The message comes back, for the next
    /// time.
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
    let room = Arc::new(Semaphore::new(batches));
    loop {
        let Ok(permit) = room.clone().acquire_owned().await else { return };
        let Some(first) = waiting.recv().await else { return };
        tokio::task::yield_now().await; // those that are about to come share the batch
        let mut bytes = first.message.size();
        let mut batch = vec![first];
        while batch.len() < MESSAGES && bytes < BYTES {
            let Ok(next) = waiting.try_recv() else { break };
            bytes += next.message.size();
            batch.push(next);
        }
        tokio::spawn(produce(batch, sink.clone(), permit, metrics.clone()));
    }
}

/// One batch, from the call to the answers. Where the sink panics, those who wait learn that
/// nothing was answered.
async fn produce(batch: Vec<Waiting>, sink: Arc<dyn Sink>, permit: OwnedSemaphorePermit, metrics: Arc<Metrics>) {
    let (messages, answers): (Vec<_>, Vec<_>) =
        batch.into_iter().map(|waiting| (waiting.message, waiting.answer)).unzip();
    let span = info_span!("relay_produce", broker = sink.broker(), messages = messages.len(), confirmed = field::Empty);
    let began = std::time::Instant::now();
    let produced = std::panic::AssertUnwindSafe(timeout(SILENCE, sink.produce(&messages))).catch_unwind();
    let outcomes = match produced.instrument(span.clone()).await {
        Ok(Ok(outcomes)) => outcomes,
        Ok(Err(_)) => vec![Outcome::RefusedForNow(format!("no answer in {SILENCE:?}")); messages.len()],
        Err(_) => vec![Outcome::RefusedForNow("the sink panicked".to_owned()); messages.len()],
    };
    drop(permit);
    told(&span, &outcomes);
    metrics.produced(messages.len(), began);
    let missing = || Outcome::RefusedForNow("the sink did not answer for it".to_owned());
    let mut outcomes = outcomes.into_iter();
    for (message, answer) in messages.into_iter().zip(answers) {
        let _ = answer.send((message, outcomes.next().unwrap_or_else(missing))); // the handler was dropped
    }
}

fn told(span: &Span, outcomes: &[Outcome]) {
    if !span.is_disabled() {
        span.record("confirmed", outcomes.iter().filter(|outcome| **outcome == Outcome::Confirmed).count());
    }
}
