//! A batch of messages that become one row, and the receipts of the callers that enqueued them.

use std::sync::Arc;

use bytes::BytesMut;
use tokio::sync::SetOnce;

use crate::{
    error::Error,
    queue::message::{
        metadata::Stamped,
        unique::{Claims, Enqueued},
    },
};

/// The result of a batch's insert.
pub(crate) enum Insertion {
    /// The row is committed; the number is the first message's id.
    Stored(i64),
    /// Each message has its own outcome or error, because the messages are not stored as one row.
    Each(Vec<Result<Enqueued, Error>>),
    /// Nothing is stored, or the outcome is unknown.
    Failed(Error),
}

/// Messages that become one row.
pub(crate) struct Batch {
    /// The messages' due time: seconds from now, or a negative time (see
    /// [`Due::number`](crate::queue::message::draft::Due::number)).
    pub due: f64,
    /// The number of the priority or partition.
    pub lane: u16,
    /// The values of columns that users added, which all messages of the row have.
    pub columns: Option<Box<str>>,
    pub count: usize,
    /// The elements of the payloads, in the wire format.
    pub elements: BytesMut,
    /// The metadata, once a message with metadata has joined.
    pub metadata: Option<Stamped>,
    /// The keys, as elements of an array; empty if the messages have no keys.
    pub keys: BytesMut,
    /// The unique keys, if all messages of the coalescer have unique keys.
    pub claims: Claims,
    outcome: Outcome,
    /// The number of bytes that were counted when the messages joined. It is subtracted when the
    /// batch leaves.
    pub(super) counted: usize,
}

impl Batch {
    pub(super) fn new(due: f64, lane: u16, columns: Option<Box<str>>) -> Self {
        let (elements, keys, claims) = (BytesMut::new(), BytesMut::new(), Claims::default());
        let outcome = Outcome(Arc::new(SetOnce::new()));
        Self { due, lane, columns, count: 0, elements, metadata: None, keys, claims, outcome, counted: 0 }
    }

    /// Returns the receipt of the message that joined last.
    pub(super) fn receipt(&self) -> Receipt {
        Receipt { outcome: self.outcome.0.clone(), at: self.count - 1 }
    }

    /// Answers all callers.
    pub fn answer(&self, insertion: Insertion) {
        let _ = self.outcome.0.set(insertion); // the first answer is kept
    }

    pub(super) fn bytes(&self) -> usize {
        self.elements.len() + self.metadata.as_ref().map_or(0, Stamped::len) + self.keys.len()
    }
}

/// The answer to the callers. If the batch is dropped without an answer, its insert has an unknown
/// outcome.
struct Outcome(Arc<SetOnce<Insertion>>);

impl Drop for Outcome {
    fn drop(&mut self) {
        if !self.0.initialized() {
            // cannot fail, because no outcome is set
            let _ = self.0.set(Insertion::Failed(Error::ended("an enqueue", true)));
        }
    }
}

/// The position of a caller's message in a batch.
pub(crate) struct Receipt {
    pub(super) outcome: Arc<SetOnce<Insertion>>,
    at: usize,
}

impl Receipt {
    /// Waits until the row is committed, and returns the outcome of the message.
    pub async fn outcome(self) -> Result<Enqueued, Error> {
        match self.outcome.wait().await {
            Insertion::Stored(first) => Ok(Enqueued::New(first + self.at as i64)),
            Insertion::Each(each) => {
                each.get(self.at).cloned().unwrap_or_else(|| Err(Error::ended("an enqueue", true)))
            }
            Insertion::Failed(error) => Err(error.clone()),
        }
    }
}
