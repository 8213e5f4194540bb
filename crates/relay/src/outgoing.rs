//! Messages on their way to a broker.

use std::{
    fmt::Write,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use bytes::Bytes;
use trunkline::{Description, Message, Metadata};

use crate::{header, payload::Raw};

/// The header with the message's id, `QUEUE/EPOCH/ID`. The id is unique, and it is the same for
/// each delivery of the message.
///
/// EPOCH is the time of the queue's creation, in hexadecimal microseconds: a queue that is dropped
/// and created again counts ids from the start again.
pub const ID: &str = "trunkline-id";
/// The header with the attempt's number: 1 for the first delivery from the queue.
pub const ATTEMPT: &str = "trunkline-attempt";
/// The header with the key, for brokers whose messages do not have keys.
pub const KEY: &str = "trunkline-key";
/// The name of the header, and of the metadata entry, for a body's media type.
pub(crate) const CONTENT_TYPE: &str = "content-type";

/// A message on its way to a broker.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Outgoing {
    /// The id, as in the header [`ID`].
    pub id: String,
    /// The number of deliveries so far, including this one.
    pub attempt: i32,
    /// The key, by which the broker partitions.
    pub key: Option<Arc<str>>,
    /// The topic, subject, stream or routing key that the route determines.
    pub to: Arc<str>,
    /// The metadata of the message in the queue.
    pub metadata: Metadata,
    /// `application/json` or another media type, if known.
    pub content_type: Option<&'static str>,
    /// The payload, or the envelope around it.
    pub body: Bytes,
}

impl Outgoing {
    /// Builds a message with an id, a destination and a body, for tests of sinks.
    #[must_use]
    pub fn new(id: impl Into<String>, to: impl Into<Arc<str>>, body: impl Into<Bytes>) -> Self {
        let (metadata, body) = (Metadata::new(), body.into());
        Self { id: id.into(), attempt: 1, key: None, to: to.into(), metadata, content_type: None, body }
    }

    /// Returns the headers that travel with the body: id, attempt, content type, and the metadata,
    /// including `traceparent`. Omits metadata under the relay's own names. The sink itself handles
    /// names that its broker acts on and values that its broker cannot carry.
    pub fn headers(&self) -> impl Iterator<Item = (&str, std::borrow::Cow<'_, str>)> {
        let own = [(ID, (&*self.id).into()), (ATTEMPT, self.attempt.to_string().into())];
        let content = self.content_type.map(|content_type| (CONTENT_TYPE, content_type.into()));
        let is_own = |name: &str| [ID, ATTEMPT, KEY].iter().any(|own| own.eq_ignore_ascii_case(name));
        let metadata = self.metadata.iter().filter(move |(name, _)| !is_own(name));
        own.into_iter().chain(content).chain(metadata.map(|(name, text)| (name, text.into())))
    }

    /// Returns true for a tombstone: Kafka's message without a value, which deletes a key. Such a
    /// message has a mark in its metadata and an empty payload.
    #[must_use]
    pub fn is_tombstone(&self) -> bool {
        self.metadata.get(header::TOMBSTONE) == Some(header::TRUE) && self.body.is_empty()
    }

    /// Returns the message's approximate size on the wire, in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        let metadata: usize = self.metadata.iter().map(|(name, text)| name.len() + text.len() + 4).sum();
        self.body.len() + self.to.len() + self.id.len() + metadata + 64
    }
}

/// Returns the common prefix of a queue's ids.
pub(crate) fn prefix(queue: &Description) -> String {
    let epoch = queue.created_at.duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
    format!("{}/{epoch:x}/", queue.name)
}

pub(crate) fn id(prefix: &str, message: &Message<Raw>) -> String {
    let mut id = String::with_capacity(prefix.len() + 20);
    id.push_str(prefix);
    let _ = write!(id, "{}", message.id); // cannot fail
    id
}

pub(crate) fn rfc3339(time: SystemTime) -> String {
    jiff::Timestamp::try_from(time).map(|time| time.to_string()).unwrap_or_default()
}
