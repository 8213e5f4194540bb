//! Errors from several servers that hold the same queue, and from a server that no longer does.

use super::{Error, Kind, advice};

impl Error {
    /// Creates the error of calls to one or more shards, each with its shard's name.
    pub(crate) fn of_shards(parts: Vec<(String, Self)>) -> Self {
        Self::new(Kind::Shards(parts))
    }

    /// Returns the shards that failed in a call to a queue on several servers, each with its own
    /// error. Their names have the form in which [`shards::Id`](crate::shards::Id) is printed. The
    /// call succeeded on all other shards.
    #[must_use]
    pub fn shards(&self) -> &[(String, Self)] {
        match &*self.0 {
            Kind::Shards(parts) => parts,
            _ => &[],
        }
    }

    /// Returns true if the queue on this server has been drained and accepts no more messages. The
    /// call has had no effect. A queue on several servers skips such a server by itself.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.is_or_has(|kind| matches!(kind, Kind::Server { error, .. } if advice::is_drained(error)))
    }

    /// Returns true if another shard can accept the message. The enqueue had no effect, and the
    /// cause is the server and not the payload: it was not reached, has no room, accepts no writes,
    /// or lacks a right or the queue.
    pub(crate) fn is_for_another(&self) -> bool {
        if self.is_outcome_unknown() {
            return false;
        }
        let is_of_the_server = matches!(&*self.0, Kind::Server { .. }) && !self.is_bad_payload();
        self.is_closed() && self.may_pass() || self.is_drained() || is_of_the_server || self.is_no_queue()
    }

    pub(super) fn is_or_has(&self, is: impl Fn(&Kind) -> bool + Copy) -> bool {
        is(&self.0) || self.shards().iter().any(|(_, error)| error.is_or_has(is))
    }
}
