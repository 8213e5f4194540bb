//! Errors of a queue on several servers, and the error of a drained server.

use super::{Error, Kind, advice};

impl Error {
    /// Creates an error from the errors of one or more shards, each with the shard's name.
    pub(crate) fn of_shards(parts: Vec<(String, Self)>) -> Self {
        Self::new(Kind::Shards(parts))
    }

    /// Returns the names and the errors of the shards on which the call failed. Returns an empty
    /// slice if the queue is not on several servers. The names have the form in which
    /// [`shards::Id`](crate::shards::Id) is printed. The call succeeded on all other shards.
    #[must_use]
    pub fn shards(&self) -> &[(String, Self)] {
        match &*self.0 {
            Kind::Shards(parts) => parts,
            _ => &[],
        }
    }

    /// Returns true if the queue on this server has been drained and accepts no more messages. The
    /// call had no effect. A queue on several servers skips a drained server automatically.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.is_or_has(|kind| matches!(kind, Kind::Server { error, .. } | Kind::Statement { error, .. } if advice::is_drained(error)))
    }

    /// Returns true if the enqueue had no effect, and another shard may accept the message. The
    /// cause is then the server and not the payload. For example, the server could not be reached,
    /// accepts no writes, or does not have the queue.
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
