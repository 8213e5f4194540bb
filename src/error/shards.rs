//! Errors of several servers that hold the same queue, and of one that does no more.

use super::{Error, Kind, advice};

impl Error {
    /// Of calls to several shards, or of one: each with its name.
    pub(crate) fn of_shards(parts: Vec<(String, Self)>) -> Self {
        Self::new(Kind::Shards(parts))
    }

    /// Where the call was about a queue on several servers: the shards that erred, by the name that
    /// [`shards::Id`](crate::shards::Id) prints, each with its own error. What is not named here
    /// went well.
    #[must_use]
    pub fn shards(&self) -> &[(String, Self)] {
        match &*self.0 {
            Kind::Shards(parts) => parts,
            _ => &[],
        }
    }

    /// The queue was drained on this server, and takes no messages any more; nothing of the call
    /// has happened. A queue on several servers passes it over by itself.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.is_or_has(|kind| matches!(kind, Kind::Server { error, .. } if advice::is_drained(error)))
    }

    /// Whether nothing of an enqueue has happened, for a reason of the server's and not of the
    /// payload's, so that another can have it: it was not reached, has no room, takes no writes,
    /// lacks a right or the queue.
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
