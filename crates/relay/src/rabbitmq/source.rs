//! Reads a stream, starting at an offset.

use std::time::Duration;

use futures_util::{FutureExt, StreamExt, future::BoxFuture};
use lapin::{
    Channel, Consumer,
    options::{BasicAckOptions, BasicConsumeOptions, BasicQosOptions, QueueDeclareOptions},
    types::{AMQPValue, FieldTable, ShortString},
};
use tokio::time::timeout;

use super::{
    confirms::InFlight,
    connect::{PATIENCE, Reach, silent},
    delivered::{OFFSET, incoming, offset},
};
use crate::{
    address::Address,
    error::{Error, Result},
    source::{BYTES, Incoming, Source},
};

/// The maximum time that a read waits for its first message.
const WAIT: Duration = Duration::from_secs(1);
/// The initial number of messages that the broker sends in advance. They wait in memory.
const AHEAD: u16 = 128;
/// The lower limit for the number of messages that the broker sends in advance.
const FEWEST: usize = 4;
/// The upper limit for the number of messages that the broker sends in advance.
const MOST: usize = 8192;

/// A RabbitMQ stream, `rabbitmq://user:password@host:port/STREAM?vhost=NAME`, read from its
/// oldest message. The position is a message's offset.
///
/// Only streams have positions: a quorum or classic queue deletes delivered messages.
///
/// The stream may not continue from the position, because it dropped old messages (before or during
/// reading) or is another stream with the same name. Then reading ends with a gap, unless
/// `accept-gap=true`. If a stream was deleted and created again, and has since grown beyond the
/// position, the source cannot distinguish it from the old stream.
pub struct RabbitmqSource {
    broker: String,
    stream: ShortString,
    accepts_gap: bool,
    reach: Reach,
    reading: Option<Reading>,
    ahead: u16,
    /// The last gap that a warning was logged for.
    warned: String,
}

struct Reading {
    channel: Channel,
    consumer: Consumer,
    /// The offset of the last message that was read; `None` before the first.
    at: Option<u64>,
    /// The offset up to which messages are skipped.
    behind: Option<u64>,
}

impl RabbitmqSource {
    /// Connects.
    ///
    /// # Errors
    /// If no server can be reached now, none accepts the login, or the stream does not exist.
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
            ahead: AHEAD,
            warned: String::new(),
        };
        let channel = source.reach.channel(&InFlight::default()).await.map_err(|cause| source.said(cause))?;
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

    /// Starts a consumer at an offset, on a separate channel.
    async fn consume(&self, from: AMQPValue) -> Result<(Channel, Consumer), lapin::Error> {
        let channel = self.reach.channel(&InFlight::default()).await?;
        let begun = async {
            channel.basic_qos(self.ahead, BasicQosOptions::default()).await?;
            let mut arguments = FieldTable::default();
            arguments.insert(OFFSET.into(), from);
            channel.basic_consume(self.stream.clone(), "".into(), BasicConsumeOptions::default(), arguments).await
        };
        let consumer = timeout(PATIENCE, begun).await.map_err(|_| silent())??;
        Ok((channel, consumer))
    }

    async fn begin(&mut self, after: Option<u64>) -> Result<()> {
        self.reading = None;
        let behind = match after {
            Some(at) => self.behind(at).await?,
            None => None,
        };
        let from = match behind {
            None => AMQPValue::LongString("first".into()),
            Some(at) => AMQPValue::LongLongInt(at.cast_signed() + 1),
        };
        let (channel, consumer) = self.consume(from).await.map_err(|cause| self.said(cause))?;
        self.reading = Some(Reading { channel, consumer, at: after, behind });
        Ok(())
    }

    /// Returns the offset after which to continue. Reads both ends of the stream to check that the
    /// stream contains the position.
    async fn behind(&mut self, at: u64) -> Result<Option<u64>> {
        if let Some(oldest) = self.end("first", |_| true).await?.filter(|oldest| *oldest > at + 1) {
            self.gap(gone(at, oldest))?;
            return Ok(Some(at));
        }
        let last = self.end("last", |offset| offset >= at).await?;
        let last = last.ok_or_else(|| self.slow())?;
        if last >= at {
            return Ok(Some(at));
        }
        self.gap(format!("the stream has no message {at} yet, which was read: it is another stream by that name"))?;
        // Continues after the last message: the stream may be the same one without its last
        // messages, whose remaining messages should not be read twice.
        Ok(Some(last))
    }

    /// Reports messages between two offsets that the stream dropped before the consumer reached
    /// them. The broker then continues with the oldest message, without an error.
    ///
    /// Missing offsets alone are no gap, because a stream also stores the state of its publishers
    /// and consumers. It does so at the start of each segment, with one offset. A gap has at least
    /// a whole segment.
    async fn dropped(&mut self, at: u64, next: u64) -> Result<()> {
        if next <= at + 2 {
            return Ok(());
        }
        let oldest = self.end("first", |_| true).await?.ok_or_else(|| self.slow())?;
        if oldest > at + 1 { self.gap(gone(at, next)) } else { Ok(()) }
    }

    /// Returns the error for a broker that does not send the messages of a stream in time. This is
    /// no gap.
    fn slow(&self) -> Error {
        self.said("the stream hands nothing over yet")
    }

    /// Fails because of a gap, or warns if the caller accepts gaps.
    fn gap(&mut self, said: String) -> Result<()> {
        if !self.accepts_gap {
            return Err(Error::gap(
                &self.broker,
                format!("{said}; with accept-gap=true the relay continues with the oldest message that is left"),
            ));
        }
        if self.warned != said {
            tracing::warn!(broker = self.broker, said, "continuing behind a gap");
            self.warned = said;
        }
        Ok(())
    }

    /// Returns the offset of the first message that satisfies `is_it`, or else of the last message.
    async fn end(&self, from: &'static str, is_it: impl Fn(u64) -> bool) -> Result<Option<u64>> {
        let (channel, mut consumer) =
            self.consume(AMQPValue::LongString(from.into())).await.map_err(|cause| self.said(cause))?;
        let mut found = None;
        // Waits longer for the first message, because a slow broker may need a while for it.
        while let Ok(next) = timeout(if found.is_none() { PATIENCE } else { WAIT }, consumer.next()).await {
            let delivery = next.ok_or_else(|| self.said("the consumer ended"))?.map_err(|cause| self.said(cause))?;
            let offset = offset(&delivery).ok_or_else(|| self.no_stream())?;
            found = Some(offset);
            if is_it(offset) {
                break;
            }
            // Acknowledges the message, because the last chunk may have more messages than the
            // broker sends without an acknowledgement. If this fails, reading the next message
            // fails too.
            let _ = delivery.acker.ack(BasicAckOptions::default()).await;
        }
        tokio::spawn(async move { timeout(PATIENCE, channel.close(200, "OK".into())).await });
        Ok(found)
    }

    fn no_stream(&self) -> Error {
        Error::usage(format!("{} is not a stream: only streams have positions", self.broker))
    }

    async fn read_some(&mut self, after: Option<&str>, most: usize) -> Result<Vec<Incoming>> {
        let wrong = || Error::bad_position(&self.broker, after.unwrap_or_default());
        let after: Option<u64> = after.map(|text| text.parse().map_err(|_| wrong())).transpose()?;
        let is_there = |reading: &Reading| reading.at == after && reading.channel.status().connected();
        if !self.reading.as_ref().is_some_and(is_there) {
            self.begin(after).await?;
        }
        // If an error follows below, the next read starts from the position again.
        let Some(mut reading) = self.reading.take() else { return Ok(Vec::new()) };
        let (mut read, mut bytes) = (Vec::new(), 0);
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
                // Returns the messages that arrived before the error.
                _ => return Ok(read),
            };
            let offset = offset(&delivery).ok_or_else(|| self.no_stream())?;
            if let Some(at) = reading.behind
                && let Err(error) = self.dropped(at, offset).await
            {
                // Returns the messages before the gap; the next read detects the gap again.
                return if read.is_empty() { Err(error) } else { Ok(read) };
            }
            // Skips messages before the requested offset, because a chunk may start earlier.
            if reading.behind.is_none_or(|at| offset > at) {
                (reading.at, reading.behind) = (Some(offset), Some(offset));
                let message = incoming(offset, &delivery);
                bytes += message.size();
                read.push(message);
            }
            last = Some(delivery.acker);
            if read.len() < most && bytes < BYTES {
                next = reading.consumer.next().now_or_never();
            }
        }
        // Acknowledges the messages, because the broker sends more only after that. A stream keeps
        // acknowledged messages.
        if let Some(last) = last {
            let acknowledged = last.ack(BasicAckOptions { multiple: true }).await;
            if acknowledged.is_err() {
                return Ok(read);
            }
        }
        let fits = fitting(bytes, read.len(), self.ahead);
        if fits == self.ahead {
            self.reading = Some(reading);
        } else {
            // Drops the consumer, because only a new consumer receives another limit.
            self.ahead = fits;
        }
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

/// Describes the missing messages between two offsets.
fn gone(at: u64, next: u64) -> String {
    format!("{} messages are gone, {} to {}", next - at - 1, at + 1, next - 1)
}

/// Returns the number of messages to request in advance, so that they fit into `BYTES` if they have
/// the average size of the messages read so far.
fn fitting(bytes: usize, messages: usize, ahead: u16) -> u16 {
    let (Some(average), now) = (bytes.checked_div(messages), usize::from(ahead)) else { return ahead };
    let fits = (BYTES / average.max(1)).clamp(FEWEST, MOST);
    if fits > now * 8 || fits < now / 4 { u16::try_from(fits).unwrap_or(ahead) } else { ahead }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_ahead_fits_into_memory() {
        assert_eq!(fitting(0, 0, AHEAD), AHEAD, "nothing was read");
        assert_eq!(usize::from(fitting(128 * 200, 128, AHEAD)), MOST);
        assert_eq!(fitting(16 << 20, 16, AHEAD), 16);
        assert_eq!(usize::from(fitting(64 << 20, 1, AHEAD)), FEWEST);
        assert_eq!(fitting(16 << 20, 16, 32), 32, "it is about right");
    }
}
