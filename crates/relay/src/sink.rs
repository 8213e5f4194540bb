//! Destinations: the interface of a broker that accepts messages.

use std::time::Duration;

use futures_util::future::BoxFuture;

use crate::outgoing::Outgoing;

/// The time after which a sink that the broker answers, or that searches a batch, returns the
/// outcomes that it knows.
pub(crate) const ENOUGH: Duration = Duration::from_secs(50);
/// The time that the relay waits longer for a sink than the sink waits for the broker.
pub(crate) const MARGIN: Duration = Duration::from_secs(10);

/// A broker that accepts messages.
///
/// One sink serves all batches of a relay, several at the same time. If a call of [`Sink::produce`]
/// is dropped, its messages may still be stored. The relay sends them again, with the same ids.
pub trait Sink: Send + Sync + 'static {
    /// Returns the broker's address without credentials, for logs and errors.
    fn broker(&self) -> &str;

    /// Returns the separator between the parts of a destination's name, if it has parts. A field of
    /// a route then fills exactly one part.
    fn separator(&self) -> Option<char> {
        None
    }

    /// Sends a batch and waits for the outcome of each message, at the durability that the caller
    /// chose for the sink.
    ///
    /// Returns an [`Outcome`] for each message, in order; a missing outcome counts as
    /// [`Outcome::RefusedForNow`]. If the queue keeps the order of keys, two messages that are in
    /// flight at the same time never have the same key.
    fn produce<'a>(&'a self, batch: &'a [Outgoing]) -> BoxFuture<'a, Vec<Outcome>>;

    /// Returns the time after which the relay stops waiting for a batch, if at most `batches`
    /// batches are in flight. Then it sends all messages of the batch again, also those that were
    /// confirmed.
    #[doc(hidden)]
    fn longest(&self, _batches: usize) -> Duration {
        ENOUGH + MARGIN
    }
}

/// The outcome of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The broker has stored the message, at the durability that the caller chose.
    Confirmed,
    /// The broker will never accept this message: it is too large, there is no such topic, or
    /// permission is missing. The message becomes a dead letter with this reason.
    RefusedForGood(String),
    /// The broker is unavailable or full, or has not answered. The relay tries the message again,
    /// without counting an attempt and without a limit.
    RefusedForNow(String),
}
