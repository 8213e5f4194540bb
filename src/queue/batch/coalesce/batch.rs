//! A row that gathers, and its callers' places in it.

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
    /// Committed; the first message's id.
    Stored(i64),
    /// Not stored as a whole: what became of each message, or its own error.
    Each(Vec<Result<Enqueued, Error>>),
    /// Nothing is stored, or the outcome is unknown.
    Failed(Error),
}

/// Messages that become one row.
pub(crate) struct Batch {
    /// When they are due: seconds from now, or a negative time (see
    /// [`Due::number`](crate::queue::message::draft::Due::number)).
    pub due: f64,
    /// Of their priority, or their keys.
    pub lane: u16,
    pub count: usize,
    /// The elements as they go over the wire.
    pub elements: BytesMut,
    /// Made when the first message joins that has any.
    pub metadata: Option<Stamped>,
    /// Their keys, as elements of an array; empty where they have none.
    pub keys: BytesMut,
    /// Their unique keys, in a coalescer of messages that have some.
    pub claims: Claims,
    outcome: Outcome,
    /// Bytes that its messages were counted for when they joined; subtracted when it leaves.
    pub(super) counted: usize,
}

impl Batch {
    pub(super) fn new(due: f64, lane: u16) -> Self {
        let (elements, keys, claims) = (BytesMut::new(), BytesMut::new(), Claims::default());
        let outcome = Outcome(Arc::new(SetOnce::new()));
        Self { due, lane, count: 0, elements, metadata: None, keys, claims, outcome, counted: 0 }
    }

    /// The receipt of the message that joined last.
    pub(super) fn receipt(&self) -> Receipt {
        Receipt { outcome: self.outcome.0.clone(), at: self.count - 1 }
    }

    /// Answers all callers.
    pub fn answer(&self, insertion: Insertion) {
        let _ = self.outcome.0.set(insertion); // the first answer stands
    }

    pub(super) fn bytes(&self) -> usize {
        self.elements.len() + self.metadata.as_ref().map_or(0, Stamped::len) + self.keys.len()
    }
}

/// Where the callers wait. A batch that is dropped without an answer was in an insert of unknown
/// outcome.
struct Outcome(Arc<SetOnce<Insertion>>);

impl Drop for Outcome {
    fn drop(&mut self) {
        if !self.0.initialized() {
            let _ = self.0.set(Insertion::Failed(Error::ended("an enqueue", true))); // not set: just asked
        }
    }
}

/// A caller's place in a batch.
pub(crate) struct Receipt {
    pub(super) outcome: Arc<SetOnce<Insertion>>,
    at: usize,
}

impl Receipt {
    /// What became of the message, once its row is committed.
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
