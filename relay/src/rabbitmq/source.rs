//! Reads a stream from an offset on.

use std::time::Duration;

use bytes::Bytes;
use futures_util::{FutureExt, StreamExt, future::BoxFuture};
use lapin::{
    Channel, Consumer,
    message::Delivery,
    options::{BasicAckOptions, BasicConsumeOptions, BasicQosOptions, QueueDeclareOptions},
    types::{AMQPValue, FieldTable, ShortString},
};
use tokio::time::timeout;
use trunkline::Metadata;

use super::connect::{PATIENCE, Reach, silent};
use crate::{
    address::Address,
    error::{Error, Result},
    outgoing::KEY,
    source::{Incoming, Source},
};

/// How long a read waits for a first message.
const WAIT: Duration = Duration::from_secs(1);
/// Messages that the broker sends ahead.
const AHEAD: u16 = 8192;
/// How a broker says where in a stream to begin, and where a message is.
const OFFSET: &str = "x-stream-offset";

/// A stream of RabbitMQ's, `rabbitmq://user:password@host:port/STREAM?vhost=NAME`, read from its oldest message on. The position is a message's offset.
///
/// Only streams: a quorum or classic queue forgets what it has handed over, and knows no position.
///
/// Where the stream does not reach from the position on any more, because it dropped what is old or is another stream by that name, reading ends with a gap, unless
/// `accept-gap=true`. A stream that was deleted and made again, and has grown beyond the position since, looks like the old one: nothing in AMQP tells them apart.
pub struct RabbitmqSource {
    broker: String,
    stream: ShortString,
    accepts_gap: bool,
    reach: Reach,
    reading: Option<Reading>,
}

struct Reading {
    channel: Channel,
    consumer: Consumer,
    /// The offset of the last message that was read, of `None` none.
    at: Option<u64>,
}

impl RabbitmqSource {
    /// Connects.
    ///
    /// # Errors
    /// No server can be reached now, none lets us in, or there is no such stream.
    pub async fn open(address: &Address) -> Result<Self> {
        address.only(&["vhost", "accept-gap", "ca"])?;
        let stream = ShortString::try_new(&*address.path)
            .map_err(|_| Error::usage("the name of a stream has at most 255 bytes"))?;
        let mut source = Self {
            broker: address.shown(),
            stream,
            accepts_gap: address.option("accept-gap")?.unwrap_or_default(),
            reach: Reach::of(address)?,
            reading: None,
        };
        let channel = source.reach.channel().await.map_err(|cause| source.said(cause))?;
        let passive = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::default() };
        let declared =
            timeout(PATIENCE, channel.queue_declare(source.stream.clone(), passive, FieldTable::default())).await;
        declared.map_err(|_| source.said(silent()))?.map_err(|cause| source.said(cause))?;
        source.begin(None).await?;
        Ok(source)
    }

    fn said(&self, said: impl std::fmt::Display) -> Error {
        Error::broker(&self.broker, said)
    }

    /// A consumer that begins there, on a channel of its own.
    async fn consume(&self, from: AMQPValue) -> Result<(Channel, Consumer), lapin::Error> {
        let channel = self.reach.channel().await?;
        let begun = async {
            channel.basic_qos(AHEAD, BasicQosOptions::default()).await?;
            let mut arguments = FieldTable::default();
            arguments.insert(OFFSET.into(), from);
            channel.basic_consume(self.stream.clone(), "".into(), BasicConsumeOptions::default(), arguments).await
        };
        let consumer = timeout(PATIENCE, begun).await.map_err(|_| silent())??;
        Ok((channel, consumer))
    }

    async fn begin(&mut self, after: Option<u64>) -> Result<()> {
        self.reading = None;
        if let Some(at) = after.filter(|_| !self.accepts_gap) {
            self.look_for_gap(at).await?;
        }
        let from = match after {
            None => AMQPValue::LongString("first".into()),
            Some(at) => AMQPValue::LongLongInt(at.cast_signed() + 1),
        };
        let (channel, consumer) = self.consume(from).await.map_err(|cause| self.said(cause))?;
        self.reading = Some(Reading { channel, consumer, at: after });
        Ok(())
    }

    /// Whether the stream still reaches from behind the position to it: asked with its two ends.
    async fn look_for_gap(&self, at: u64) -> Result<()> {
        let gap = |why: String| Err(Error::gap(&self.broker, why));
        match self.end("first", |_| true).await? {
            Some(oldest) if oldest > at + 1 => {
                return gap(format!("the oldest message of the stream is {oldest}, and {at} was the last one read"));
            }
            _ => {}
        }
        match self.end("last", |offset| offset >= at).await? {
            Some(_) => Ok(()),
            None => {
                gap(format!("the stream has no message {at} yet, which was read: it is another stream by that name"))
            }
        }
    }

    /// The first message from there on that is looked for; `None` where none comes.
    async fn end(&self, from: &'static str, is_it: impl Fn(u64) -> bool) -> Result<Option<u64>> {
        let (channel, mut consumer) =
            self.consume(AMQPValue::LongString(from.into())).await.map_err(|cause| self.said(cause))?;
        let mut found = None;
        while let Ok(next) = timeout(WAIT, consumer.next()).await {
            let delivery = next.ok_or_else(|| self.said("the consumer ended"))?.map_err(|cause| self.said(cause))?;
            let offset = offset(&delivery).ok_or_else(|| self.no_stream())?;
            if is_it(offset) {
                found = Some(offset);
                break;
            }
        }
        tokio::spawn(async move { timeout(PATIENCE, channel.close(200, "OK".into())).await });
        Ok(found)
    }

    fn no_stream(&self) -> Error {
        Error::usage(format!("{} is no stream: only streams have positions", self.broker))
    }

    async fn read_some(&mut self, after: Option<&str>, most: usize) -> Result<Vec<Incoming>> {
        let wrong = || Error::usage(format!("{}: {after:?} is no position", self.broker));
        let after: Option<u64> = after.map(|text| text.parse().map_err(|_| wrong())).transpose()?;
        let is_there = |reading: &Reading| reading.at == after && reading.channel.status().connected();
        if !self.reading.as_ref().is_some_and(is_there) {
            self.begin(after).await?;
        }
        // Whatever goes wrong from here on, the next read begins anew.
        let Some(mut reading) = self.reading.take() else { return Ok(Vec::new()) };
        let mut read = Vec::new();
        let mut last = None;
        let mut next = timeout(WAIT, reading.consumer.next()).await.ok();
        while let Some(delivery) = next.take() {
            let delivery = match delivery {
                Some(Ok(delivery)) => delivery,
                other if read.is_empty() => {
                    let ended = || "the consumer was ended by the broker".to_owned();
                    return Err(self.said(
                        other.map_or_else(ended, |failed| failed.err().map_or_else(ended, |error| error.to_string())),
                    ));
                }
                // What was read before is given out first.
                _ => return Ok(read),
            };
            let offset = offset(&delivery).ok_or_else(|| self.no_stream())?;
            // A chunk may begin before the place that was asked for.
            if reading.at.is_none_or(|at| offset > at) {
                reading.at = Some(offset);
                read.push(incoming(offset, &delivery));
            }
            last = Some(delivery.acker);
            if read.len() < most {
                next = reading.consumer.next().now_or_never();
            }
        }
        // The broker sends more only for what is acknowledged; it forgets nothing.
        if let Some(last) = last {
            let acknowledged = last.ack(BasicAckOptions { multiple: true }).await;
            if acknowledged.is_err() {
                return Ok(read);
            }
        }
        self.reading = Some(reading);
        Ok(read)
    }
}

impl Source for RabbitmqSource {
    fn broker(&self) -> &str {
        &self.broker
    }

    fn read<'a>(&'a mut self, after: Option<&'a str>, most: usize) -> BoxFuture<'a, Result<Vec<Incoming>>> {
        Box::pin(self.read_some(after, most))
    }
}

fn offset(delivery: &Delivery) -> Option<u64> {
    match delivery.properties.headers().as_ref()?.inner().get(OFFSET)? {
        AMQPValue::LongLongInt(offset) => u64::try_from(*offset).ok(),
        _ => None,
    }
}

fn incoming(offset: u64, delivery: &Delivery) -> Incoming {
    let mut metadata = Metadata::default();
    let mut key = None;
    let properties = &delivery.properties;
    for (name, value) in properties.headers().iter().flat_map(FieldTable::inner) {
        let Some(text) = text(value) else { continue };
        match name.as_str() {
            OFFSET => {}
            KEY => key = Some(text),
            name => metadata.insert(name, &*text),
        }
    }
    let own = [
        ("content-type", properties.content_type()),
        ("content-encoding", properties.content_encoding()),
        ("correlation-id", properties.correlation_id()),
        ("message-id", properties.message_id()),
        ("type", properties.kind()),
    ];
    for (name, text) in own {
        if let Some(text) = text {
            metadata.insert(name, text.as_str());
        }
    }
    Incoming { position: offset.to_string(), key, metadata, body: Bytes::copy_from_slice(&delivery.data) }
}

/// A header as text, if it is a text, a number or a truth.
fn text(value: &AMQPValue) -> Option<String> {
    Some(match value {
        AMQPValue::LongString(text) => String::from_utf8_lossy(text.as_bytes()).into_owned(),
        AMQPValue::ShortString(text) => text.to_string(),
        AMQPValue::Boolean(truth) => truth.to_string(),
        AMQPValue::ShortShortInt(number) => number.to_string(),
        AMQPValue::ShortShortUInt(number) => number.to_string(),
        AMQPValue::ShortInt(number) => number.to_string(),
        AMQPValue::ShortUInt(number) => number.to_string(),
        AMQPValue::LongInt(number) => number.to_string(),
        AMQPValue::LongUInt(number) => number.to_string(),
        AMQPValue::LongLongInt(number) => number.to_string(),
        AMQPValue::Timestamp(seconds) => seconds.to_string(),
        AMQPValue::Float(number) => number.to_string(),
        AMQPValue::Double(number) => number.to_string(),
        _ => return None,
    })
}
