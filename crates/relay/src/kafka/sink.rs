//! Produces to topics with one idempotent producer and `acks=all`. The broker confirms each
//! message.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::{StreamExt, future::BoxFuture, stream};
use rdkafka::{
    ClientConfig, ClientContext,
    config::FromClientConfigAndContext,
    error::{KafkaError, RDKafkaErrorCode},
    message::{Header, OwnedHeaders},
    producer::{BaseRecord, DeliveryResult, Producer, ProducerContext, ThreadedProducer},
};
use tokio::{
    sync::oneshot,
    task::spawn_blocking,
    time::{Instant, timeout_at},
};

use super::{
    address,
    heard::Heard,
    refusal::{Fate, fate},
};
use crate::{
    address::Address,
    error::{Error, Result},
    header::{self, Broker},
    outgoing::Outgoing,
    sink::{ENOUGH, MARGIN, Outcome, Sink},
};

/// The time limit for the brokers' confirmation of a message, retries included, in milliseconds.
const PATIENCE: &str = "10000";
/// The two names of that limit in the client's configuration.
const LIMIT: [&str; 2] = ["message.timeout.ms", "delivery.timeout.ms"];
/// The time limit for the client's search for a missing topic, in milliseconds.
const ASKED: &str = "5000";
/// The time limit for asking the brokers whether a topic exists.
const ASKS: Duration = Duration::from_secs(5);
/// The maximum number of topics that the brokers are asked about at the same time.
const TOPICS: usize = 16;
/// The codes for a missing topic.
const MISSING: [RDKafkaErrorCode; 2] = [RDKafkaErrorCode::UnknownTopicOrPartition, RDKafkaErrorCode::UnknownTopic];
/// The maximum size of a request that a broker accepts in its default configuration, in bytes. For
/// a larger request the broker closes the connection without an answer.
const LARGEST: &str = "100000000";

/// Kafka, `kafka://user:password@host:port,host:port/TOPIC?setting=value`; the settings are
/// librdkafka's, such as `compression.type=lz4`.
///
/// A message is confirmed when all in-sync replicas have it.
///
/// A message without a payload whose metadata has `kafka-tombstone` is sent without a value.
///
/// The key decides the partition (murmur2, as in Java's clients); a message without a key goes to
/// any partition. Headers are Kafka's headers. The producer is idempotent, so a message that the
/// client itself resends is stored once. The relay sends a message again after ten seconds without
/// an answer, or after a crash; such a message may be stored twice, with the same `trunkline-id`.
///
/// - Refused for good: a message that alone is too large for its topic; a topic that does not exist
///   after five seconds and that the broker does not create; a topic without permission to write.
/// - Refused for now: all other errors, too few in-sync replicas included.
pub struct KafkaSink {
    broker: String,
    config: ClientConfig,
    /// The producer for requests with many messages.
    many: Renewed,
    /// The producer for requests with one message. It resends the messages of a batch that was too
    /// large.
    alone: Renewed,
}

impl KafkaSink {
    /// Connects.
    ///
    /// # Errors
    /// If no broker can be reached now, or the address is invalid. Once connected, the sink
    /// outlasts an outage.
    pub async fn open(address: &Address) -> Result<Self> {
        let broker = address.shown();
        let mut config = address::config(address)?;
        config.set("acks", "all").set("enable.idempotence", "true");
        let fast = [("linger.ms", "0"), ("retry.backoff.ms", "50"), ("queue.buffering.max.messages", "0")];
        let bounds =
            [(LIMIT[0], PATIENCE), ("topic.metadata.propagation.max.ms", ASKED), ("message.max.bytes", LARGEST)];
        address::preset(&mut config, &[&fast[..], &bounds, &[("partitioner", "murmur2_random")]].concat());
        let many = Renewed::new(&config).map_err(|cause| Error::usage(format!("{broker}: {cause}")))?;
        let producer = many.get(&config).map_err(|cause| Error::broker(&broker, cause))?;
        let asked = spawn_blocking(move || {
            let asked = producer.client().fetch_metadata(None, Duration::from_secs(10)).map(drop);
            asked.map_err(|cause| producer.context().0.with(&cause))
        });
        let asked = asked.await.map_err(|cause| Error::broker(&broker, cause))?;
        asked.map_err(|cause| Error::broker(&broker, cause))?;
        Ok(Self { broker, config, many, alone: Renewed::none() })
    }

    /// Returns `Ok` if the brokers report that the topic does not exist. Asks them again, because
    /// the client caches a missing topic for minutes.
    async fn is_missing(&self, topic: &Arc<str>) -> std::result::Result<(), String> {
        let (producer, topic) = (self.many.get(&self.config).map_err(|cause| cause.to_string())?, topic.clone());
        let asked = spawn_blocking(move || {
            let metadata = producer.client().fetch_metadata(Some(&topic), ASKS).map_err(|cause| cause.to_string())?;
            match metadata.topics().first().map(|topic| (topic.error(), topic.partitions().is_empty())) {
                Some((None, false)) => Err("the topic exists again".to_owned()),
                Some((Some(error), _)) if !MISSING.contains(&RDKafkaErrorCode::from(error)) => {
                    Err(RDKafkaErrorCode::from(error).to_string())
                }
                _ => Ok(()),
            }
        });
        asked.await.unwrap_or_else(|cause| Err(cause.to_string()))
    }

    /// Asks the brokers about all missing topics of a batch. Returns the answers that arrive before
    /// a deadline.
    async fn are_missing(
        &self,
        topics: HashSet<Arc<str>>,
        deadline: Instant,
    ) -> HashMap<Arc<str>, std::result::Result<(), String>> {
        let asked = stream::iter(topics).map(|topic| async move {
            let answer = self.is_missing(&topic).await;
            (topic, answer)
        });
        let (mut asked, mut answers) = (asked.buffer_unordered(TOPICS), HashMap::new());
        while let Ok(Some((topic, answer))) = timeout_at(deadline, asked.next()).await {
            answers.insert(topic, answer);
        }
        answers
    }

    async fn hand_over(&self, renewed: &Renewed, config: &ClientConfig, batch: &[&Outgoing]) -> Vec<Fate> {
        let unanswered = |why: &str| vec![Fate::Known(Outcome::RefusedForNow(why.to_owned())); batch.len()];
        let producer = match renewed.get(config) {
            Ok(producer) => producer,
            Err(cause) => return unanswered(&cause.to_string()),
        };
        let (reports, all) = Reports::of(batch.len());
        for (at, message) in batch.iter().enumerate() {
            let ticket = Box::new(Ticket { reports: reports.clone(), at });
            let dressed = (Broker::KAFKA.destination)(&message.to).and_then(|()| {
                Ok((headers(message)?, header::bytes_of_key(message.key.as_deref(), &message.metadata)?))
            });
            let (headers, key) = match dressed {
                Ok(dressed) => dressed,
                Err(why) => {
                    ticket.note(Fate::Known(Outcome::RefusedForGood(why)));
                    continue;
                }
            };
            let mut record = BaseRecord::with_opaque_to(&message.to, ticket).headers(headers);
            // Omits the value of a tombstone: a missing value deletes the key from a compacted
            // topic; an empty value does not.
            if !message.is_tombstone() {
                record = record.payload(&*message.body);
            }
            if let Some(key) = &key {
                record = record.key(&**key);
            }
            if let Err((error, record)) = producer.send::<[u8], [u8]>(record) {
                record.delivery_opaque.note(fate(&error));
            }
        }
        drop(reports);
        match all.await {
            Ok(fates) => fates,
            Err(_) => unanswered("the client ended without an answer"),
        }
    }
}

impl Sink for KafkaSink {
    fn broker(&self) -> &str {
        &self.broker
    }

    fn produce<'a>(&'a self, batch: &'a [Outgoing]) -> BoxFuture<'a, Vec<Outcome>> {
        Box::pin(async move {
            let deadline = Instant::now() + ENOUGH;
            let all: Vec<&Outgoing> = batch.iter().collect();
            let mut fates = self.hand_over(&self.many, &self.config, &all).await;
            let too_large = |fate: &Fate| matches!(fate, Fate::TooLarge(_));
            let places: Vec<usize> =
                fates.iter().enumerate().filter(|(_, fate)| too_large(fate)).map(|(at, _)| at).collect();
            if !places.is_empty() {
                // Sends each message alone: the batch was too large for the topic, and this shows
                // which messages are too large.
                let mut config = self.config.clone();
                config.set("batch.num.messages", "1");
                let again: Vec<&Outgoing> = places.iter().map(|at| &batch[*at]).collect();
                for (at, fate) in places.into_iter().zip(self.hand_over(&self.alone, &config, &again).await) {
                    fates[at] = fate;
                }
            }
            let missing = fates.iter().zip(batch).filter(|(fate, _)| matches!(fate, Fate::NoTopic(_)));
            let missing = self.are_missing(missing.map(|(_, message)| message.to.clone()).collect(), deadline).await;
            let outcome = |(fate, message): (Fate, &Outgoing)| match fate {
                Fate::Known(outcome) => outcome,
                Fate::TooLarge(said) => Outcome::RefusedForGood(said),
                Fate::NoTopic(said) => match missing.get(&message.to) {
                    Some(Ok(())) => Outcome::RefusedForGood(said),
                    Some(Err(why)) => Outcome::RefusedForNow(why.clone()),
                    None => Outcome::RefusedForNow("the brokers do not say whether the topic exists".to_owned()),
                },
            };
            fates.into_iter().zip(batch).map(outcome).collect()
        })
    }

    fn longest(&self, _batches: usize) -> Duration {
        longest(&self.config)
    }
}

/// Returns the longest time that a batch takes. If it is too large, its messages are sent twice,
/// each time with the client's time limit. The address may set that limit.
fn longest(config: &ClientConfig) -> Duration {
    let limit: Option<u64> = LIMIT.into_iter().find_map(|name| config.get(name)?.parse().ok());
    match limit {
        Some(0) => Duration::MAX, // the client tries without an end
        limit => ENOUGH.max(2 * Duration::from_millis(limit.unwrap_or_default())) + MARGIN,
    }
}

fn headers(message: &Outgoing) -> std::result::Result<OwnedHeaders, String> {
    let mut headers = OwnedHeaders::new_with_capacity(4);
    for header in header::headers(&Broker::KAFKA, message)? {
        let key = header.name().ok_or("the name of a header is not text")?;
        headers = headers.insert(Header { key, value: header.value.bytes() });
    }
    Ok(headers)
}

/// A producer that is replaced after a fatal error. An idempotent producer fails if the brokers'
/// state does not match the producer's state.
struct Renewed(Mutex<Option<Arc<ThreadedProducer<Answers>>>>);

impl Renewed {
    fn none() -> Self {
        Self(Mutex::new(None))
    }

    fn new(config: &ClientConfig) -> Result<Self, KafkaError> {
        let new = Self::none();
        new.get(config)?;
        Ok(new)
    }

    fn get(&self, config: &ClientConfig) -> Result<Arc<ThreadedProducer<Answers>>, KafkaError> {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(producer) = &*held {
            let Some((code, said)) = producer.client().fatal_error() else { return Ok(producer.clone()) };
            tracing::warn!(%code, said, "Kafka's producer failed; creating another");
        }
        let new = Arc::new(ThreadedProducer::from_config_and_context(config, Answers::default())?);
        // Dropping the old producer waits for its messages, so another thread drops it.
        if let Some(old) = held.replace(new.clone()) {
            std::thread::spawn(move || drop(old));
        }
        Ok(new)
    }
}

/// The receiver of the brokers' answers, on the client's thread.
#[derive(Default)]
struct Answers(Heard);

impl ClientContext for Answers {
    fn error(&self, error: KafkaError, reason: &str) {
        self.0.note(&error, reason);
    }
}

impl ProducerContext for Answers {
    type DeliveryOpaque = Box<Ticket>;

    fn delivery(&self, result: &DeliveryResult<'_>, ticket: Box<Ticket>) {
        ticket.note(match result {
            Ok(_) => Fate::Known(Outcome::Confirmed),
            Err((error, _)) => fate(error),
        });
    }
}

/// The position of a message in its batch. It assigns the broker's answer to the message.
struct Ticket {
    reports: Arc<Reports>,
    at: usize,
}

impl Ticket {
    fn note(&self, fate: Fate) {
        self.reports.note(self.at, fate);
    }
}

/// The answers to a batch, which is complete when the last answer has arrived.
struct Reports {
    fates: Mutex<Vec<Fate>>,
    left: AtomicUsize,
    all: Mutex<Option<oneshot::Sender<Vec<Fate>>>>,
}

impl Reports {
    fn of(messages: usize) -> (Arc<Self>, oneshot::Receiver<Vec<Fate>>) {
        let (sender, all) = oneshot::channel();
        let unanswered = Fate::Known(Outcome::RefusedForNow(
            KafkaError::MessageProduction(RDKafkaErrorCode::MessageTimedOut).to_string(),
        ));
        let fates = Mutex::new(vec![unanswered; messages]);
        (Arc::new(Self { fates, left: AtomicUsize::new(messages), all: Mutex::new(Some(sender)) }), all)
    }

    fn note(&self, at: usize, fate: Fate) {
        let mut fates = self.fates.lock().unwrap_or_else(PoisonError::into_inner);
        fates[at] = fate;
        if self.left.fetch_sub(1, Ordering::AcqRel) == 1
            && let Some(all) = self.all.lock().unwrap_or_else(PoisonError::into_inner).take()
        {
            let _ = all.send(std::mem::take(&mut *fates)); // the receiver may be gone
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batch_may_take_as_long_as_the_client_tries() {
        let with = |name: &str, limit: &str| longest(ClientConfig::new().set(name, limit));
        assert_eq!(with(LIMIT[0], PATIENCE), ENOUGH + MARGIN);
        for name in LIMIT {
            assert_eq!(with(name, "120000"), Duration::from_secs(240) + MARGIN);
            assert_eq!(with(name, "0"), Duration::MAX);
        }
    }
}
