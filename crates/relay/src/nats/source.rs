//! Reads a `JetStream` stream, starting at a sequence number, without acknowledgements: the relay
//! stores the position.
//!
//! A consumer lives as long as its connection works. A message that the server sent and the client
//! did not receive would be lost silently. So the source counts deliveries. If one is missing, or
//! no message arrives while the stream grows, the source starts another consumer after the
//! position.

use std::{pin::pin, time::Duration};

use async_nats::{
    HeaderMap,
    jetstream::{
        self, Context,
        consumer::{AckPolicy, DeliverPolicy, pull},
        stream::Info,
    },
};
use bytes::Bytes;
use futures_util::{FutureExt, StreamExt, future::BoxFuture};
use tokio::time::timeout;

use super::{connect::connect, stored};
use crate::{
    address::Address,
    error::{Error, Result},
    header::{self, Broker, Header, Headers},
    outgoing::ID,
    source::{BYTES, Incoming, Source},
};

/// The maximum time that a read waits for its first message.
const PATIENCE: Duration = Duration::from_secs(1);
/// The time limit for an answer from `JetStream`.
const ANSWER: Duration = Duration::from_secs(5);
/// The maximum number of messages that the server sends in advance.
const AHEAD: usize = 2000;
/// The maximum number of bytes of a message's subjects, which its maximum size does not include.
const SUBJECTS: usize = 64 << 10;
/// The header by which the stream detects duplicates.
const MESSAGE_ID: &str = "Nats-Msg-Id";
/// The time without a read after which the server deletes a consumer.
const IDLE: Duration = Duration::from_secs(60);

/// A NATS `JetStream` stream, `nats://HOST/STREAM`, read from its beginning. `?subject=orders.>`
/// reads only messages on such subjects, and `ca=FILE` names the certificates that verify servers.
///
/// If the stream has dropped messages after the position, by its limits or because it was created
/// again, reading ends with a gap. With `accept-gap=true` the source warns and continues. With a
/// subject, the source cannot distinguish messages dropped during reading from messages on other
/// subjects.
pub struct NatsSource {
    context: Context,
    stream: String,
    subject: String,
    accepts_gap: bool,
    /// The last gap that a warning was logged for.
    warned: String,
    broker: String,
    reading: Option<StreamReading>,
    /// The position of the last read that returned no messages although the stream has some.
    stood: Option<Position>,
    lag: Option<u64>,
}

struct StreamReading {
    messages: pull::Stream,
    created: i128,
    /// The last received message's sequence number in the stream.
    sequence: u64,
    /// The last received message's sequence number in the consumer.
    delivered: u64,
    /// The sequence number in the stream up to which the subject has no further messages.
    looked: u64,
}

impl StreamReading {
    /// Returns true if the next message is the one after this position. Without a position, it is
    /// the first one: earlier messages were read, but perhaps not stored.
    fn is_at(&self, position: Option<Position>) -> bool {
        position.map_or(self.delivered == 0, |place| place == (self.created, self.sequence))
    }
}

/// A position in a stream: the time of the stream's creation in nanoseconds, and a sequence number.
type Position = (i128, u64);

impl NatsSource {
    /// Connects.
    ///
    /// # Errors
    /// If no server can be reached now, none accepts the login, or the stream does not exist.
    pub async fn open(address: &Address) -> Result<Self> {
        address.only(&["subject", "accept-gap", "ca"])?;
        let (client, _) = connect(address).await?;
        let mut context = jetstream::new(client);
        context.set_timeout(ANSWER);
        let source = Self {
            context,
            stream: address.path.clone(),
            subject: address.option("subject")?.unwrap_or_default(),
            accepts_gap: address.option("accept-gap")?.unwrap_or_default(),
            warned: String::new(),
            broker: address.shown(),
            reading: None,
            stood: None,
            lag: None,
        };
        source.info().await?;
        Ok(source)
    }

    async fn info(&self) -> Result<Info> {
        let stream = self.context.get_stream(&self.stream).await.map_err(|cause| self.away(cause))?;
        Ok(stream.cached_info().clone())
    }

    fn away(&self, cause: impl std::fmt::Display) -> Error {
        Error::broker(&self.broker, cause)
    }

    async fn begin(&mut self, after: Option<Position>) -> Result<StreamReading> {
        let info = self.info().await?;
        let (created, state) = (info.created.unix_timestamp_nanos(), &info.state);
        let missing = match after {
            Some((of, _)) if of != created => Some(format!("stream {:?} was deleted and created again", self.stream)),
            Some((_, at)) if at > state.last_sequence => {
                Some(format!("the stream ends at {}, before the position {at}", state.last_sequence))
            }
            Some((_, at)) if at + 1 < state.first_sequence => Some(gone(at, state.first_sequence)),
            _ => None,
        };
        missing.map_or(Ok(()), |said| self.gap(said))?;
        let sequence = match after {
            Some((of, at)) if of == created => at.min(state.last_sequence),
            // Starts at the oldest message.
            _ => state.first_sequence.saturating_sub(1),
        };
        let config = pull::Config {
            deliver_policy: DeliverPolicy::ByStartSequence { start_sequence: sequence + 1 },
            ack_policy: AckPolicy::None,
            filter_subject: self.subject.clone(),
            inactive_threshold: IDLE,
            ..pull::Config::default()
        };
        let consumer = self.context.create_consumer_on_stream(config, &*self.stream).await;
        let consumer = consumer.map_err(|cause| self.away(cause))?;
        // Limits the messages that the server sends in advance, because they wait in memory. Later
        // messages may be larger than the average, so their bytes are limited, too, but not below
        // one message: the server would never send it.
        let average = usize::try_from(state.bytes / state.messages.max(1)).unwrap_or(usize::MAX).max(1);
        let ahead = (BYTES / average).clamp(2, AHEAD);
        let largest = self.context.client().server_info().max_payload.saturating_add(SUBJECTS);
        let messages = consumer.stream().max_messages_per_batch(ahead).max_bytes_per_batch(BYTES.max(largest));
        let messages = messages.heartbeat(PATIENCE).expires(ANSWER).messages().await;
        let messages = messages.map_err(|cause| self.away(cause))?;
        Ok(StreamReading { messages, created, sequence, delivered: 0, looked: sequence })
    }

    /// Fails because of a gap, or warns if the caller accepts gaps.
    fn gap(&mut self, said: String) -> Result<()> {
        if self.accepts_gap {
            if self.warned != said {
                tracing::warn!(broker = self.broker, said, "continuing behind a gap");
                self.warned = said;
            }
            return Ok(());
        }
        Err(Error::gap(
            &self.broker,
            format!("{said}; with accept-gap=true the relay continues with the oldest message that is left"),
        ))
    }

    /// Reports messages that the stream dropped before the consumer reached them.
    async fn dropped(&mut self, after: u64, next: u64) -> Result<()> {
        // Ignores missing sequence numbers if their messages may be on other subjects or may have
        // been deleted individually.
        if !self.subject.is_empty() || self.info().await?.state.first_sequence <= after + 1 {
            return Ok(());
        }
        self.gap(gone(after, next))
    }

    async fn next(&mut self, after: Option<Position>, most: usize) -> Result<Vec<Incoming>> {
        let mut reading = match self.reading.take() {
            Some(reading) if reading.is_at(after) => reading,
            _ => self.begin(after).await?,
        };
        let (mut found, mut bytes) = (Vec::new(), 0);
        let Ok(first) = timeout(PATIENCE, reading.messages.next()).await else {
            return self.stands_still(reading).await;
        };
        let mut next = first;
        while let Some(message) = next {
            let message = message.map_err(|cause| self.away(cause))?;
            let Ok(place) = message.info() else { break };
            if place.consumer_sequence != reading.delivered + 1 {
                return Ok(found); // a message was lost; another consumer starts after `found`
            }
            if place.stream_sequence != reading.sequence + 1
                && let Err(error) = self.dropped(reading.sequence, place.stream_sequence).await
            {
                // Returns the messages before the gap; the next consumer detects the gap again.
                return if found.is_empty() { Err(error) } else { Ok(found) };
            }
            (reading.delivered, reading.sequence) = (place.consumer_sequence, place.stream_sequence);
            self.lag = Some(place.pending);
            let message = incoming(&message, (reading.created, place.stream_sequence));
            bytes += message.size();
            found.push(message);
            if found.len() == most || bytes >= BYTES {
                break;
            }
            next = pin!(reading.messages.next()).now_or_never().flatten();
        }
        if !found.is_empty() {
            self.reading = Some(reading);
        }
        Ok(found)
    }

    /// Handles a read that returned no messages: the stream has none, or a message was lost in
    /// transit.
    async fn stands_still(&mut self, mut reading: StreamReading) -> Result<Vec<Incoming>> {
        let info = self.info().await?;
        let place = (reading.created, reading.sequence);
        let (end, is_same) = (info.state.last_sequence, info.created.unix_timestamp_nanos() == place.0);
        if is_same && end < place.1 {
            // The stream has lost messages that were read, or was restored from a backup. Another
            // consumer reports the gap, before new messages hide it.
            return Ok(Vec::new());
        }
        let mut ended = is_same && end == place.1;
        if is_same && !ended {
            // Looks for a message, because new messages may be on other subjects, and the last
            // ones may have been deleted.
            let from = reading.sequence.max(reading.looked) + 1;
            let next = stored::next(&self.context, &self.stream, from, &self.subject).await;
            ended = next.map_err(|cause| self.away(cause))?.is_none();
            if ended {
                reading.looked = end;
            }
        }
        if ended {
            self.lag = Some(0);
            self.reading = Some(reading);
        } else if self.stood.replace(place) == Some(place) {
            return self.by_number(place).await;
        }
        Ok(Vec::new())
    }

    /// Fetches the next message directly, by its sequence number. A consumer would never deliver
    /// this message, because the client closes the connection at headers that it cannot parse.
    async fn by_number(&mut self, (created, after): Position) -> Result<Vec<Incoming>> {
        let asked = stored::next(&self.context, &self.stream, after + 1, &self.subject).await;
        let Some(message) = asked.map_err(|cause| self.away(cause))? else { return Ok(Vec::new()) };
        if message.sequence != after + 1 {
            self.dropped(after, message.sequence).await?;
        }
        let place = (created, message.sequence);
        Ok(vec![arrived(place, &message.subject, &message.headers(), message.body.clone())])
    }
}

impl Source for NatsSource {
    fn broker(&self) -> &str {
        &self.broker
    }

    fn read<'a>(&'a mut self, after: Option<&'a str>, most: usize) -> BoxFuture<'a, Result<Vec<Incoming>>> {
        Box::pin(async move {
            let place = match after {
                None => None,
                Some(text) => Some(place(text).ok_or_else(|| Error::bad_position(&self.broker, text))?),
            };
            self.next(place, most).await
        })
    }

    fn lag(&self) -> Option<u64> {
        self.lag
    }
}

/// Describes the missing messages between two sequence numbers.
fn gone(after: u64, next: u64) -> String {
    format!("{} messages are gone, {} to {}", next - after - 1, after + 1, next - 1)
}

fn place(text: &str) -> Option<Position> {
    let (created, sequence) = text.split_once(':')?;
    Some((created.parse().ok()?, sequence.parse().ok()?))
}

fn incoming(message: &jetstream::Message, place: Position) -> Incoming {
    let headers = message.headers.iter().flat_map(HeaderMap::iter);
    let headers = headers.flat_map(|(name, texts)| {
        texts.iter().map(move |text| Header::text(AsRef::<str>::as_ref(name), AsRef::<str>::as_ref(text)))
    });
    arrived(place, message.subject.as_str(), &headers.collect::<Vec<_>>(), message.payload.clone())
}

fn arrived((created, sequence): Position, subject: &str, headers: &[Header<'_>], body: Bytes) -> Incoming {
    // Omits the id that the relay itself set.
    let text_of =
        |wanted: &str| headers.iter().find(|header| header.name() == Some(wanted)).map(|header| &header.value);
    let is_ours = text_of(MESSAGE_ID).is_some_and(|id| Some(id) == text_of(ID));
    let is_told = |header: &Header<'_>| !(is_ours && header.name() == Some(MESSAGE_ID));
    let own = std::iter::once(Header::text("nats-subject", subject));
    let Headers { metadata, key } =
        header::metadata(&Broker::NATS, own.chain(headers.iter().filter(|header| is_told(header)).cloned()));
    Incoming { position: format!("{created}:{sequence}"), key, metadata, body }
}
