//! Where messages come from: what a broker is to the relay on the way in.

use bytes::Bytes;
use futures_util::future::BoxFuture;
use trunkline::Metadata;

use crate::error::Result;

/// A broker that is read from a position on.
///
/// The position is the source's own text. The relay stores it in the transaction that enqueues the
/// messages, and passes it back: so a source needs no memory, and the broker no acknowledgements.
pub trait Source: Send + 'static {
    /// The broker and the stream, for people: an address without credentials.
    fn broker(&self) -> &str;

    /// Reads up to `most` messages behind `after` (of `None`: from the oldest that the broker still
    /// has), in the order in which their positions follow one another. Waits a second or so for the
    /// first; none where none came. Called again with the position of the last message, or, after a
    /// failure, with an earlier one.
    ///
    /// # Errors
    /// The broker is away (it is asked again), or has lost what is behind the position (an
    /// [`Error::is_gap`](crate::Error::is_gap), at which the relay ends).
    fn read<'a>(&'a mut self, after: Option<&'a str>, most: usize) -> BoxFuture<'a, Result<Vec<Incoming>>>;

    /// Everything up to this position is committed; for a broker that wants to be told.
    fn committed<'a>(&'a mut self, _position: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(async {})
    }

    /// Messages behind the last ones that were read, where the broker says.
    fn lag(&self) -> Option<u64> {
        None
    }
}

/// A message that a broker has.
#[derive(Debug, Clone, Default)]
pub struct Incoming {
    /// Where to go on behind it, whatever came before: of a topic with partitions, a place in each.
    pub position: String,
    /// Its key, if it has one. In a queue without keys it is kept as the metadata's
    /// `trunkline-key`, and is the key again on the way out.
    pub key: Option<String>,
    /// Its headers, as names and texts.
    pub metadata: Metadata,
    /// Its body.
    pub body: Bytes,
}

impl Incoming {
    /// About as many bytes as it takes in memory.
    pub(crate) fn size(&self) -> usize {
        let metadata: usize = self.metadata.iter().map(|(name, text)| name.len() + text.len()).sum();
        self.body.len() + self.key.as_ref().map_or(0, String::len) + metadata + 64
    }
}

/// Bytes that a source hands over at a time, but for the last message.
#[cfg_attr(not(any(feature = "kafka", feature = "nats", feature = "rabbitmq")), allow(dead_code))]
pub(crate) const BYTES: usize = 16 << 20;
