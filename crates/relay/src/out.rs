//! Carries messages out of a queue, at least once: a message leaves the queue when the broker has
//! confirmed it.
//!
//! The relay is a worker whose handlers share batches. The library leases rows, renews leases,
//! keeps the order of keys, and settles messages row by row. Each handler waits until the broker
//! reports the outcome of its message. While the broker refuses a message for now, the relay holds
//! it without counting an attempt, and other messages continue.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use bytes::Bytes;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};
use trunkline::{Attempt, Description, Failure, Message, Queue, Worker};

use crate::{
    envelope::Envelope,
    error::{Error, Result},
    gather::Gather,
    header,
    metric::Metrics,
    outgoing::{self, CONTENT_TYPE, KEY, Outgoing},
    payload::Raw,
    progress::Progress,
    report::Report,
    sink::{Outcome, Sink},
    template::{Fields, Template},
};

/// The default maximum number of messages that the relay holds.
const HANDS: usize = 8192;
/// The maximum number of bytes of the messages that the relay holds, as far as the sizes of earlier
/// messages allow an estimate.
const BYTES: usize = 64 << 20;
/// The default maximum number of batches in flight.
const BATCHES: usize = 8;
/// The first and the longest pause after a temporary refusal.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(5));
/// The interval between two warnings about waiting messages.
const TELL: Duration = Duration::from_secs(10);

/// A relay from a queue to a broker: see [`relay`].
pub struct Relay {
    queue: Queue<Raw>,
    sink: Arc<dyn Sink>,
    route: Template,
    envelope: Envelope,
    hands: usize,
    batches: usize,
    lease: Option<Duration>,
    shutdown_after: Duration,
    progress: Arc<Progress>,
}

/// Carries a queue's messages to a broker, at least once: a message leaves the queue when the
/// broker has confirmed it.
///
/// - A message that the broker refuses for good becomes a dead letter with the broker's reason. If
///   the broker refuses a message only for now, the relay tries it again, with back-off, without
///   counting an attempt and without a limit. Other messages continue. During an outage of the
///   broker, the relay holds a bounded number of messages, and the rest stays in the queue.
/// - A queue with keys keeps the order of each key: the relay sends the next message of a key after
///   the broker has confirmed the previous one, or refused it for good.
/// - Any number of relays of a queue can run side by side.
///
/// ```no_run
/// # async fn example(
/// #     sink: impl trunkline_relay::Sink,
/// #     shutdown: impl Future<Output = ()>,
/// # ) -> Result<(), Box<dyn std::error::Error>> {
/// let db = trunkline::Db::connect("postgres://app@db/app").await?;
/// let relay = trunkline_relay::relay(db.queue("orders").await?, sink)
///     .route("orders.{metadata.tenant}".parse()?);
/// let progress = relay.run(shutdown).await?;
/// println!("{} confirmed", progress.confirmed());
/// # Ok(()) }
/// ```
#[must_use]
pub fn relay(queue: Queue<Raw>, sink: impl Sink) -> Relay {
    Relay::new(queue, Arc::new(sink))
}

impl Relay {
    /// Creates a relay like [`relay`], for a sink in an `Arc`.
    #[must_use]
    pub fn new(queue: Queue<Raw>, sink: Arc<dyn Sink>) -> Self {
        Self {
            queue,
            sink,
            route: Template::queue(),
            envelope: Envelope::None,
            hands: HANDS,
            batches: BATCHES,
            lease: None,
            shutdown_after: Duration::from_secs(30),
            progress: Arc::default(),
        }
    }

    /// Sets the route, which determines the topic, subject or stream of each message; by default
    /// the queue's name.
    #[must_use]
    pub fn route(self, route: Template) -> Self {
        Self { route, ..self }
    }

    /// Sets the form of bodies; by default the unchanged payload.
    #[must_use]
    pub fn envelope(self, envelope: Envelope) -> Self {
        Self { envelope, ..self }
    }

    /// Sets the maximum number of messages that the relay holds, including messages that wait for
    /// their next attempt; 8,192 by default, at least 1. Large messages are held in smaller
    /// numbers, about 64 MiB in total. The relay needs a few times their size in memory.
    #[must_use]
    pub fn in_hand(self, hands: usize) -> Self {
        Self { hands: hands.max(1), ..self }
    }

    /// Sets the maximum number of batches in flight at the same time; 8 by default, at least 1.
    #[must_use]
    pub fn in_flight(self, batches: usize) -> Self {
        Self { batches: batches.max(1), ..self }
    }

    /// Sets a lease time other than the queue's own. The relay renews its leases, so this is the
    /// time after which messages come back if the relay is killed.
    #[must_use]
    pub fn lease(self, lease: Duration) -> Self {
        Self { lease: Some(lease), ..self }
    }

    /// Sets the maximum time that a shutdown waits for batches in flight; 30 seconds by default.
    #[must_use]
    pub fn shutdown_after(self, longest: Duration) -> Self {
        Self { shutdown_after: longest, ..self }
    }

    /// Returns counts that callers can read while the relay runs.
    #[must_use]
    pub fn progress(&self) -> Arc<Progress> {
        self.progress.clone()
    }

    /// Relays until `shutdown` ends. Then finishes the batches in flight, releases the other
    /// messages without counting an attempt, and returns.
    ///
    /// # Errors
    /// At the start, if the route needs a key or a payload's field that the queue's messages cannot
    /// have. Later, if the database reports an error that does not resolve itself. The relay
    /// outlasts an outage of the database or the broker.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> Result<Arc<Progress>> {
        self.check()?;
        let description = self.queue.description().clone();
        let metrics = Arc::new(Metrics::of(&description.name, self.sink.broker()));
        let carrier = Arc::new(Carrier {
            gather: Gather::start(self.sink.clone(), self.batches, metrics.clone()),
            prefix: outgoing::prefix(&description),
            queue: description.name.clone(),
            payload: description.payload.clone(),
            route: self.route,
            envelope: self.envelope,
            progress: self.progress.clone(),
            metrics,
            keyed: description.partitions > 0,
            separator: self.sink.separator(),
            told: Mutex::default(),
            stop: CancellationToken::new(),
        });
        let stop = carrier.stop.clone();
        let mut worker = Worker::with_attempt(self.queue.clone(), move |message, attempt| {
            let carrier = carrier.clone();
            async move { carrier.carry(message, attempt).await }
        })
        .concurrency(self.hands)
        .bytes_in_hand(BYTES, size)
        .isolate_after_crash(false)
        .shutdown_after(self.shutdown_after);
        if let Some(lease) = self.lease {
            worker = worker.lease(lease);
        }
        let asked = async move {
            shutdown.await;
            stop.cancel();
        };
        let report = Report::new(&self.queue, self.sink.broker(), self.progress.clone());
        let outcome = tokio::select! {
            outcome = worker.run(asked) => outcome,
            never = report.run() => match never {},
        };
        report.end().await;
        outcome?;
        Ok(self.progress)
    }

    fn check(&self) -> Result<()> {
        let Description { name, payload, partitions, .. } = self.queue.description();
        if self.route.reads_keys() && *partitions == 0 {
            return Err(Error::usage(format!(
                "the route needs {{key}}, and the messages of queue {name:?} have no keys"
            )));
        }
        if self.route.reads_payloads() && payload == "bytea" {
            return Err(Error::usage(format!(
                "the route needs fields of the payload, and queue {name:?} has bytea; give it json or jsonb"
            )));
        }
        Ok(())
    }
}

/// Returns the approximate size of a message in memory, in bytes.
fn size(message: &Message<Raw>) -> usize {
    let metadata: usize = message.metadata.iter().map(|(name, text)| name.len() + text.len()).sum();
    message.payload.0.len() + metadata + 64
}

struct Carrier {
    gather: Gather,
    prefix: String,
    queue: String,
    payload: String,
    route: Template,
    envelope: Envelope,
    progress: Arc<Progress>,
    metrics: Arc<Metrics>,
    keyed: bool,
    separator: Option<char>,
    /// The time of the last warning about waiting messages.
    told: Mutex<Option<Instant>>,
    stop: CancellationToken,
}

impl Carrier {
    /// Carries a message through all its steps: prepares it, sends it until the broker confirms it
    /// or refuses it for good, and settles it.
    async fn carry(&self, message: Message<Raw>, attempt: Attempt<Raw>) -> std::result::Result<(), Failure> {
        let mut outgoing = self.dress(&message).map_err(|why| self.refused(why))?;
        drop(message);
        let mut pause = PAUSES.0;
        loop {
            let why = match self.gather.produce(outgoing).await {
                Ok((_, Outcome::Confirmed)) => {
                    self.progress.confirm(1);
                    self.metrics.confirmed.increment(1);
                    return Ok(());
                }
                Ok((_, Outcome::RefusedForGood(words))) => return Err(self.refused(words)),
                Ok((back, Outcome::RefusedForNow(words))) => {
                    outgoing = back;
                    words
                }
                Err(why) => return Err(Failure::retry(why)),
            };
            let _held = self.progress.hold(&self.metrics.held);
            self.progress.try_again(&why);
            self.tell_why(&why);
            self.metrics.again.increment(1);
            if !self.waits(&attempt, pause).await {
                return self.give_back(&attempt).await;
            }
            pause = (pause * 2).min(PAUSES.1);
        }
    }

    /// Waits for the next attempt. Returns false if there is no next attempt, because the relay
    /// stops or the lease is lost.
    async fn waits(&self, attempt: &Attempt<Raw>, pause: Duration) -> bool {
        let lost = attempt.lost();
        tokio::select! {
            () = tokio::time::sleep(pause.mul_f64(0.5 + crate::spread() / 2.0)) => true,
            () = self.stop.cancelled() => false,
            () = lost.cancelled() => false,
        }
    }

    /// Releases a message that was not sent, and retries if that fails. If a shutdown takes too
    /// long, the worker abandons this call. The message then comes back without a counted attempt.
    async fn give_back(&self, attempt: &Attempt<Raw>) -> std::result::Result<(), Failure> {
        let (lost, mut pause) = (attempt.lost(), PAUSES.0);
        loop {
            let Err(error) = attempt.release().await else { return Ok(()) };
            debug!(id = attempt.lease().id, %error, "cannot give back a message yet; retrying");
            if error.is_lease_lost() || lost.is_cancelled() && !self.stop.is_cancelled() {
                return Err(Failure::retry("the lease was lost"));
            }
            if lost.run_until_cancelled(tokio::time::sleep(pause)).await.is_none() {
                std::future::pending::<()>().await;
            }
            pause = (pause * 2).min(PAUSES.1);
        }
    }

    fn dress(&self, message: &Message<Raw>) -> std::result::Result<Outgoing, String> {
        let mut metadata = message.metadata.clone();
        // Takes the key from the metadata in a queue without keys, which stores a broker's key
        // there.
        let key = if self.keyed { message.key.clone() } else { metadata.remove(KEY).map(Into::into) };
        let of = Fields {
            queue: &self.queue,
            key: message.key.as_deref(),
            metadata: &message.metadata,
            payload: &message.payload.0,
        };
        let to = self.route.fill(of, self.separator)?;
        let id = outgoing::id(&self.prefix, message);
        let is_null = matches!(&*self.payload, "json" | "jsonb") && &*message.payload.0 == b"null";
        let no_value = is_null && metadata.get(header::TOMBSTONE).is_some();
        let body = if no_value { Bytes::new() } else { message.payload.0.clone() };
        let plain =
            Outgoing { id, attempt: message.attempts().cast_signed(), key, to, metadata, content_type: None, body };
        // Does not wrap a tombstone, which has no data.
        if plain.is_tombstone() {
            return Ok(plain);
        }
        let (body, content_type) = self.envelope.wrap(&plain.id, &self.queue, &self.payload, message);
        let mut dressed = Outgoing { content_type, body, ..plain };
        match self.envelope {
            Envelope::None if dressed.metadata.get(CONTENT_TYPE).is_some() => dressed.content_type = None,
            Envelope::None => {}
            // The media type describes the data, so the envelope contains it.
            Envelope::CloudEvents => drop(dressed.metadata.remove(CONTENT_TYPE)),
        }
        Ok(dressed)
    }

    /// Warns that messages are waiting, with the reason. Repeats the warning only at intervals.
    fn tell_why(&self, why: &str) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.is_none_or(|told| told.elapsed() >= TELL) {
            *told = Some(Instant::now());
            let held = self.progress.held();
            warn!(queue = self.queue, why, held, "the broker refuses a message for now; retrying");
        }
    }

    fn refused(&self, why: String) -> Failure {
        self.progress.refuse(&why);
        self.metrics.refused.increment(1);
        warn!(queue = self.queue, why, "refused for good");
        Failure::dead(why)
    }
}
