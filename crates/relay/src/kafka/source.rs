//! Reads all partitions of a topic, each from a position.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    fmt::Write,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use bytes::Bytes;
use futures_util::{FutureExt, StreamExt, TryStreamExt, future::BoxFuture, stream};
use rdkafka::{
    ClientContext, Message as _, Offset, Statistics, TopicPartitionList,
    config::FromClientConfigAndContext,
    consumer::{Consumer, ConsumerContext, StreamConsumer},
    error::KafkaError,
    message::{BorrowedHeaders, BorrowedMessage, Headers as _},
    statistics::Partition,
    types::RDKafkaErrorCode as Code,
};
use tokio::{task::spawn_blocking, time::timeout_at};

use super::address;
use crate::{
    address::Address,
    error::{Error, Result},
    header::{self, Broker, Header, Headers, Value},
    source::{BYTES, Incoming, Source},
};

/// The maximum time that a read waits for its first message.
const WAIT: Duration = Duration::from_secs(1);
/// The time limit for listing the partitions.
const ASKED: Duration = Duration::from_secs(10);
/// The maximum number of partitions whose ends are asked for at the same time.
const ASKED_AT_ONCE: usize = 16;
/// The number of events to handle per call while idle; the client reports once a second.
const EVENTS: usize = 64;
/// The interval between two searches for new partitions.
const RENEWED: Duration = Duration::from_secs(60);

/// A Kafka topic, `kafka://host:port/TOPIC?setting=value` as for the [sink](super::KafkaSink),
/// read from its oldest message.
///
/// The source is in no consumer group and commits nothing: the queue's database stores its
/// position. The position is the next offset of each partition, `0:17,1:4`. Messages of a partition
/// arrive in order; the order between partitions is undefined. The source reads only committed
/// messages. It finds new partitions within a minute, and reads them from their beginning. A
/// message without a value, as in compacted topics, arrives with an empty body (`null` in a queue
/// of JSON) and with `kafka-tombstone` in its metadata.
///
/// If the topic no longer has the message at the position, reading ends with a gap. With
/// `accept-gap=true` it continues at the oldest message.
pub struct KafkaSource {
    broker: String,
    topic: String,
    consumer: Arc<StreamConsumer<Told>>,
    /// The next offset of each partition; empty until the first read.
    next: BTreeMap<i32, i64>,
    /// The position that corresponds to `next`, after the first read.
    at: Option<String>,
    looked: Instant,
    assigned: bool,
}

impl KafkaSource {
    /// Connects.
    ///
    /// # Errors
    /// If no broker can be reached now, the topic does not exist, or the address is invalid.
    pub async fn open(address: &Address) -> Result<Self> {
        let (broker, topic) = (address.shown(), address.path.clone());
        let accepts_gap = address.option("accept-gap")?.unwrap_or_default();
        let mut config = address::config(address)?;
        // Names a group, because the client requires it. The group is never created.
        config
            .set("group.id", "trunkline-relay")
            .set("enable.auto.commit", "false")
            .set("enable.auto.offset.store", "false");
        config
            .set("auto.offset.reset", if accepts_gap { "earliest" } else { "error" })
            .set("isolation.level", "read_committed");
        let fast = [("fetch.wait.max.ms", "100"), ("fetch.error.backoff.ms", "50"), ("statistics.interval.ms", "1000")];
        address::preset(&mut config, &[&fast[..], &[("queued.max.messages.kbytes", "16384")]].concat());
        let consumer = StreamConsumer::from_config_and_context(&config, Told::default());
        let consumer = Arc::new(consumer.map_err(|cause| Error::usage(format!("{broker}: {cause}")))?);
        let mut source =
            Self { broker, topic, consumer, next: BTreeMap::new(), at: None, looked: Instant::now(), assigned: false };
        source.look().await?;
        Ok(source)
    }

    async fn look(&mut self) -> Result<()> {
        let (consumer, topic) = (self.consumer.clone(), self.topic.clone());
        let asked = spawn_blocking(move || consumer.fetch_metadata(Some(&topic), ASKED)).await;
        let metadata = asked.map_err(|cause| self.said(cause))?.map_err(|cause| self.said(cause))?;
        let topic = metadata.topics().first().ok_or_else(|| self.said("it does not say what the topic is"))?;
        if let Some(error) = topic.error() {
            return Err(self.said(Code::from(error)));
        }
        if topic.partitions().is_empty() {
            return Err(self.said("there is no such topic"));
        }
        for partition in topic.partitions() {
            if let Entry::Vacant(new) = self.next.entry(partition.id()) {
                new.insert(BEGINNING);
                self.assigned = false;
            }
        }
        self.looked = Instant::now();
        Ok(())
    }

    async fn assign(&mut self, after: Option<&str>) -> Result<()> {
        let places = parse(after.unwrap_or_default())
            .ok_or_else(|| Error::bad_position(&self.broker, after.unwrap_or_default()))?;
        self.next.values_mut().for_each(|next| *next = BEGINNING);
        self.next.extend(places);
        // Now, so that the source detects messages that the topic drops before the first read.
        let unknown: Vec<i32> = self.next.iter().filter(|(_, next)| **next == BEGINNING).map(|(id, _)| *id).collect();
        for (partition, (first, _)) in self.ends(unknown).await? {
            self.next.insert(partition, first);
        }
        let mut list = TopicPartitionList::new();
        for (partition, next) in &self.next {
            list.add_partition_offset(&self.topic, *partition, Offset::Offset(*next))
                .map_err(|cause| self.said(cause))?;
        }
        self.consumer.assign(&list).map_err(|cause| self.said(cause))?;
        self.at = after.map(str::to_owned);
        self.assigned = true;
        Ok(())
    }

    /// Returns the first offset of each partition, and the offset after its last message.
    async fn ends(&self, partitions: Vec<i32>) -> Result<BTreeMap<i32, (i64, i64)>> {
        let asked = stream::iter(partitions).map(async |id| {
            let (consumer, topic) = (self.consumer.clone(), self.topic.clone());
            let ends = spawn_blocking(move || consumer.fetch_watermarks(&topic, id, ASKED)).await;
            Ok((id, ends.map_err(|cause| self.said(cause))?.map_err(|cause| self.said(cause))?))
        });
        asked.buffer_unordered(ASKED_AT_ONCE).try_collect().await
    }

    /// Describes the missing messages between the position and the topic's current start or end.
    async fn gap(&self, code: Code) -> Error {
        let ends = self.ends(self.next.keys().copied().collect()).await.unwrap_or_default();
        let missing = ends.iter().filter_map(|(id, (first, end))| {
            let next = *self.next.get(id)?;
            if next < *first {
                return Some(format!("{} messages of partition {id} are gone, {next} to {}", first - next, first - 1));
            }
            (next > *end).then(|| {
                format!("partition {id} ends before {next}, which was to be read: it is another topic by that name")
            })
        });
        let missing: Vec<_> = missing.collect();
        let said = if missing.is_empty() { code.to_string() } else { missing.join("; ") };
        Error::gap(
            &self.broker,
            format!("{said}; with accept-gap=true the relay goes on with the oldest that is there"),
        )
    }

    async fn read_some(&mut self, after: Option<&str>, most: usize) -> Result<Vec<Incoming>> {
        if self.looked.elapsed() > RENEWED {
            self.look().await?;
        }
        if !self.assigned || self.at.as_deref() != after {
            // The client drops messages that it buffered for another position.
            self.assign(after).await?;
        }
        self.assigned = false; // if this read ends early, the next one assigns again
        let (mut read, mut bytes, mut cut) = (Vec::new(), 0, None);
        let (consumer, until) = (self.consumer.clone(), tokio::time::Instant::now() + WAIT);
        let mut next = timeout_at(until, consumer.recv()).await.ok();
        while let Some(one) = next.take() {
            match one {
                Ok(message) => match self.incoming(&message) {
                    Ok(message) => {
                        bytes += message.size();
                        read.push(message);
                    }
                    Err(_) if !read.is_empty() => return Ok(read),
                    Err(error) => return Err(error),
                },
                // An outage leaves a report of each failed try to connect. Messages may follow.
                Err(error) if is_lost(&error) => cut = Some(error),
                // Returns the messages that were read; the next read reports the error.
                Err(_) if !read.is_empty() => return Ok(read),
                Err(error) => return Err(self.failed(&error).await),
            }
            if read.is_empty() {
                next = timeout_at(until, consumer.recv()).await.ok();
            } else if read.len() < most && bytes < BYTES {
                next = consumer.recv().now_or_never();
            }
        }
        match (read.last(), cut) {
            (Some(last), _) => self.at = Some(last.position.clone()),
            (None, Some(error)) => return Err(self.said(error)),
            (None, None) => {}
        }
        self.assigned = true;
        Ok(read)
    }

    fn incoming(&mut self, message: &BorrowedMessage<'_>) -> Result<Incoming> {
        let headers = message.headers().map(headers).transpose();
        let Headers { mut metadata, .. } = headers.map(Option::unwrap_or_default).map_err(|why| {
            let (partition, offset) = (message.partition(), message.offset());
            Error::usage(format!(
                "{}: the message {offset} of partition {partition} cannot be read: {why}",
                self.broker
            ))
        })?;
        self.next.insert(message.partition(), message.offset() + 1);
        if message.payload().is_none() {
            metadata.insert(header::TOMBSTONE, header::TRUE);
        }
        let key = message.key().map(header::text_of_key);
        if key.as_ref().is_some_and(|(_, is_base64)| *is_base64) {
            metadata.insert(header::KEY_ENCODING, "base64");
        }
        Ok(Incoming {
            position: written(&self.next),
            key: key.map(|(key, _)| key),
            metadata,
            body: Bytes::copy_from_slice(message.payload().unwrap_or_default()),
        })
    }

    async fn failed(&self, error: &KafkaError) -> Error {
        match error.rdkafka_error_code() {
            Some(code @ (Code::AutoOffsetReset | Code::OffsetOutOfRange)) => self.gap(code).await,
            _ => self.said(error),
        }
    }

    fn said(&self, said: impl std::fmt::Display) -> Error {
        Error::broker(&self.broker, said)
    }
}

impl Source for KafkaSource {
    fn broker(&self) -> &str {
        &self.broker
    }

    fn read<'a>(&'a mut self, after: Option<&'a str>, most: usize) -> BoxFuture<'a, Result<Vec<Incoming>>> {
        Box::pin(self.read_some(after, most))
    }

    fn idle(&mut self) {
        // Without polls, the client would keep the statistics of every second.
        if std::mem::take(&mut self.assigned) {
            let _ = self.consumer.unassign(); // if this fails, the next read assigns other offsets
        }
        for _ in 0..EVENTS {
            let _ = self.consumer.recv().now_or_never();
        }
    }

    fn lag(&self) -> Option<u64> {
        self.consumer.client().context().lag(&self.next)
    }
}

/// Returns true for a report of a lost connection, which the client opens again by itself.
fn is_lost(error: &KafkaError) -> bool {
    let codes = [Code::BrokerTransportFailure, Code::AllBrokersDown, Code::Resolve, Code::OperationTimedOut];
    error.rdkafka_error_code().is_some_and(|code| codes.contains(&code))
}

/// Returns the headers as metadata. The client panics if a name is not UTF-8.
fn headers(headers: &BorrowedHeaders) -> std::result::Result<Headers, &'static str> {
    let all = || -> Vec<_> {
        let value = |value: Option<_>| value.map_or(Value::Null, Value::of);
        headers.iter().map(|header| Header::new(header.key, value(header.value))).collect()
    };
    let all = catch_unwind(AssertUnwindSafe(all)).map_err(|_| "the name of a header is no UTF-8")?;
    Ok(header::metadata(&Broker::KAFKA, all))
}

/// The offset of a partition from which nothing has been read.
const BEGINNING: i64 = -1;

fn written(next: &BTreeMap<i32, i64>) -> String {
    let mut text = String::with_capacity(next.len() * 12);
    for (partition, next) in next.iter().filter(|(_, next)| **next != BEGINNING) {
        let _ = write!(text, "{}{partition}:{next}", if text.is_empty() { "" } else { "," }); // cannot fail
    }
    text
}

fn parse(position: &str) -> Option<BTreeMap<i32, i64>> {
    let place = |text: &str| {
        let (partition, next) = text.split_once(':')?;
        Some((partition.parse().ok()?, next.parse().ok().filter(|next| *next >= 0)?))
    };
    position.split(',').filter(|text| !text.is_empty()).map(place).collect()
}

/// Statistics that the client reports once per second: the end of each partition, and whether the
/// client has delivered all messages up to it.
#[derive(Default)]
struct Told(Mutex<BTreeMap<i32, End>>);

#[derive(Debug, Clone, Copy)]
struct End {
    offset: i64,
    reached: bool,
}

impl Told {
    fn ends(&self) -> MutexGuard<'_, BTreeMap<i32, End>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of messages between the position and the ends. Transaction markers have
    /// offsets but are never delivered, so the lag is 0 once the client has delivered everything.
    fn lag(&self, read: &BTreeMap<i32, i64>) -> Option<u64> {
        let ends = self.ends();
        let left = |(partition, end): (&i32, &End)| {
            let read = read.get(partition).copied().unwrap_or(BEGINNING).max(0);
            if end.reached { 0 } else { (end.offset - read).max(0).cast_unsigned() }
        };
        (!ends.is_empty()).then(|| ends.iter().map(left).sum())
    }
}

impl ClientContext for Told {
    fn stats(&self, statistics: Statistics) {
        let partitions = statistics.topics.values().flat_map(|topic| topic.partitions.iter());
        let end = |of: &Partition| End {
            offset: of.ls_offset.max(0),
            reached: of.fetchq_cnt == 0 && of.next_offset >= of.ls_offset && of.ls_offset >= 0,
        };
        *self.ends() = partitions.filter(|(id, _)| **id >= 0).map(|(id, partition)| (*id, end(partition))).collect();
    }

    fn error(&self, error: KafkaError, reason: &str) {
        tracing::debug!(%error, reason, "Kafka client error");
    }
}

impl ConsumerContext for Told {}

#[cfg(test)]
mod tests {
    use super::{BEGINNING, parse, written};
    use std::collections::BTreeMap;

    #[test]
    fn a_position_is_read_as_it_was_written() {
        let next = BTreeMap::from([(0, 17), (1, BEGINNING), (12, 0)]);
        assert_eq!(written(&next), "0:17,12:0");
        assert_eq!(parse("0:17,12:0"), Some(BTreeMap::from([(0, 17), (12, 0)])));
        assert_eq!(parse(""), Some(BTreeMap::new()));
        for bad in ["0", "a:1", "0:-1", "0:1;1:1"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
