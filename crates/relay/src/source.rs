//! Sources: the interface of a broker that the relay reads from.

use bytes::Bytes;
use futures_util::future::BoxFuture;
use trunkline::Metadata;

use crate::error::Result;

/// A broker that the relay reads from a given position.
///
/// The position is a text in a form that the source chooses. The relay stores it in the transaction
/// that enqueues the messages, and passes it back. So a source needs no memory, and the broker
/// needs no acknowledgements.
pub trait Source: Send + 'static {
    /// Returns the address of the broker and stream without credentials, for logs and errors.
    fn broker(&self) -> &str;

    /// Reads at most `most` messages after the position `after`, in the order of their positions.
    /// `None` starts at the oldest message that the broker still has. Waits about a second for the
    /// first message, and returns an empty list if none arrives. The caller passes the position of
    /// the last message or, after a failure, an earlier position.
    ///
    /// # Errors
    /// If the broker is unavailable; the relay then tries again. If the broker has lost the
    /// messages after the position ([`Error::is_gap`](crate::Error::is_gap)); the relay then ends.
    fn read<'a>(&'a mut self, after: Option<&'a str>, most: usize) -> BoxFuture<'a, Result<Vec<Incoming>>>;

    /// Notifies the broker that all messages up to this position have been committed. Only for
    /// brokers that need this.
    fn committed<'a>(&'a mut self, _position: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(async {})
    }

    /// Handles what the broker's client has received. The relay calls this every few seconds while
    /// it does not read, because another relay holds the position or the database is unavailable.
    fn idle(&mut self) {}

    /// Returns the number of messages after the last one that was read, if the broker reports it.
    fn lag(&self) -> Option<u64> {
        None
    }
}

/// A message read from a broker.
#[derive(Debug, Clone, Default)]
pub struct Incoming {
    /// The position to continue from after this message. For a topic with partitions it contains an
    /// offset for each partition.
    pub position: String,
    /// The key, if the message has one. A queue without keys stores it as `trunkline-key` in the
    /// metadata, and a relay out of the queue restores it.
    pub key: Option<String>,
    /// The headers, as names and values.
    pub metadata: Metadata,
    /// The payload's bytes.
    pub body: Bytes,
}

impl Incoming {
    /// Returns the message's approximate size in memory, in bytes.
    pub(crate) fn size(&self) -> usize {
        let metadata: usize = self.metadata.iter().map(|(name, text)| name.len() + text.len()).sum();
        self.body.len() + self.key.as_ref().map_or(0, String::len) + metadata + 64
    }
}

/// The maximum number of bytes that one read returns. The last message may exceed it.
#[cfg_attr(not(any(feature = "kafka", feature = "nats", feature = "rabbitmq")), allow(dead_code))]
pub(crate) const BYTES: usize = 16 << 20;
