//! Sources: the interface of a broker that the relay reads from.

use bytes::Bytes;
use futures_util::future::BoxFuture;
use trunkline::Metadata;

use crate::error::Result;

/// A broker that is read from a position on.
///
/// The position is a text of the source's own. The relay stores it in the transaction that enqueues
/// the messages, and passes it back. So a source needs no memory, and the broker needs no
/// acknowledgements.
pub trait Source: Send + 'static {
    /// The address of broker and stream without credentials, for logs and errors.
    fn broker(&self) -> &str;

    /// Reads at most `most` messages behind `after`, in the order of their positions. `None` means
    /// from the oldest message that the broker still has. Waits about a second for the first
    /// message; returns nothing if none comes. The caller passes the position of the last message,
    /// or an earlier one after a failure.
    ///
    /// # Errors
    /// The broker is away, and the relay asks again; or it has lost the messages behind the
    /// position ([`Error::is_gap`](crate::Error::is_gap)), and the relay ends.
    fn read<'a>(&'a mut self, after: Option<&'a str>, most: usize) -> BoxFuture<'a, Result<Vec<Incoming>>>;

    /// Notifies the broker that everything up to this position is committed, if the broker needs
    /// it.
    fn committed<'a>(&'a mut self, _position: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(async {})
    }

    /// The number of messages behind the last one that was read, if the broker reports it.
    fn lag(&self) -> Option<u64> {
        None
    }
}

/// A message that a broker has.
#[derive(Debug, Clone, Default)]
pub struct Incoming {
    /// The position to continue from behind this message. For a topic with partitions it has an
    /// offset for each partition.
    pub position: String,
    /// The key, if the message has one. A queue without keys keeps it as `trunkline-key` in the
    /// metadata; the way out makes it the key again.
    pub key: Option<String>,
    /// The headers, as names and texts.
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

/// The bound of bytes that one read returns. The last message may exceed it.
#[cfg_attr(not(any(feature = "kafka", feature = "nats", feature = "rabbitmq")), allow(dead_code))]
pub(crate) const BYTES: usize = 16 << 20;
