//! A message on its way to a broker.

use std::{
    fmt::Write,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use bytes::Bytes;
use trunkline::{Description, Message, Metadata};

use crate::{header, payload::Raw};

/// The header with the message's id, which is the same each time it is sent, and no other
/// message's: `QUEUE/EPOCH/ID`.
///
/// EPOCH is when the queue was created, in hexadecimal microseconds: a queue that is dropped and
/// created again counts from the start again.
pub const ID: &str = "trunkline-id";
/// The header with the attempt: 1 for the first delivery out of the queue.
pub const ATTEMPT: &str = "trunkline-attempt";
/// The header with the key, where the broker has no place of its own for it.
pub const KEY: &str = "trunkline-key";
/// The header, and the metadata's name, of a body's media type.
pub(crate) const CONTENT_TYPE: &str = "content-type";

/// A message on its way to a broker.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Outgoing {
    /// Its id, as the header [`ID`] has it.
    pub id: String,
    /// Deliveries so far, this one included.
    pub attempt: i32,
    /// Its key: what the broker partitions by.
    pub key: Option<Arc<str>>,
    /// The topic, subject, stream or routing key, as the route says.
    pub to: Arc<str>,
    /// What was enqueued with it.
    pub metadata: Metadata,
    /// `application/json` or another media type, where it is known.
    pub content_type: Option<&'static str>,
    /// The payload, or the envelope around it.
    pub body: Bytes,
}

impl Outgoing {
    /// A message with nothing but these: for tests of sinks.
    #[must_use]
    pub fn new(id: impl Into<String>, to: impl Into<Arc<str>>, body: impl Into<Bytes>) -> Self {
        let (metadata, body) = (Metadata::new(), body.into());
        Self { id: id.into(), attempt: 1, key: None, to: to.into(), metadata, content_type: None, body }
    }

    /// Names and texts that travel beside the body: id, attempt, content type, and the metadata,
    /// `traceparent` included. A name of the metadata that is one of the relay's own is left out. A
    /// broker that obeys some names, or cannot have some texts, has to see to that itself.
    pub fn headers(&self) -> impl Iterator<Item = (&str, std::borrow::Cow<'_, str>)> {
        let own = [(ID, (&*self.id).into()), (ATTEMPT, self.attempt.to_string().into())];
        let content = self.content_type.map(|content_type| (CONTENT_TYPE, content_type.into()));
        let is_own = |name: &str| [ID, ATTEMPT, KEY].iter().any(|own| own.eq_ignore_ascii_case(name));
        let metadata = self.metadata.iter().filter(move |(name, _)| !is_own(name));
        own.into_iter().chain(content).chain(metadata.map(|(name, text)| (name, text.into())))
    }

    /// Whether it stands for no value, as Kafka has them for keys that are deleted: the metadata
    /// says so, and there is no payload.
    #[must_use]
    pub fn is_tombstone(&self) -> bool {
        self.metadata.get(header::TOMBSTONE) == Some(header::TRUE) && self.body.is_empty()
    }

    /// About as many bytes as it takes on the wire.
    #[must_use]
    pub fn size(&self) -> usize {
        let metadata: usize = self.metadata.iter().map(|(name, text)| name.len() + text.len() + 4).sum();
        self.body.len() + self.to.len() + self.id.len() + metadata + 64
    }
}

/// What all ids of a queue begin with.
pub(crate) fn prefix(queue: &Description) -> String {
    let epoch = queue.created_at.duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
    format!("{}/{epoch:x}/", queue.name)
}

/// A message's id.
pub(crate) fn id(prefix: &str, message: &Message<Raw>) -> String {
    let mut id = String::with_capacity(prefix.len() + 20);
    id.push_str(prefix);
    let _ = write!(id, "{}", message.id); // a String takes everything
    id
}

/// A time as RFC 3339 has it.
pub(crate) fn rfc3339(time: SystemTime) -> String {
    jiff::Timestamp::try_from(time).map(|time| time.to_string()).unwrap_or_default()
}
