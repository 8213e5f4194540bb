//! Where messages go: what a broker is to the relay.

use futures_util::future::BoxFuture;

use crate::outgoing::Outgoing;

/// A broker that takes messages.
///
/// One sink serves all batches of a relay, several of them at the same time. Dropping a call of
/// [`Sink::produce`] may leave its messages stored: the relay sends them again, with the same id.
pub trait Sink: Send + Sync + 'static {
    /// The broker, for people: an address without credentials.
    fn broker(&self) -> &str;

    /// What stands between the parts of a subject or the like, if it has parts: a place of a route
    /// is filled with one part.
    fn separator(&self) -> Option<char> {
        None
    }

    /// Hands a batch over and waits for the broker's word on each message, at the strength that was
    /// asked for when the sink was made.
    ///
    /// Returns an [`Outcome`] for each message, in their order; one that is missing counts as
    /// [`Outcome::RefusedForNow`]. No two messages of a batch, nor of two batches that are under
    /// way at the same time, have the same key, where the queue keeps the order of keys.
    fn produce<'a>(&'a self, batch: &'a [Outgoing]) -> BoxFuture<'a, Vec<Outcome>>;
}

/// The broker's word on a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Stored, at the strength that was asked for.
    Confirmed,
    /// It will never take this message: too large, no such topic, no permission. It becomes a dead
    /// letter with these words.
    RefusedForGood(String),
    /// Not now, or not known: away, full, no answer. It is tried again, uncharged, for as long
    /// as it takes.
    RefusedForNow(String),
}
