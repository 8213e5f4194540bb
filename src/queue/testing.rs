//! Helpers for the tests of programs that use queues. They let time pass for a queue, and check
//! which messages were enqueued.
//!
//! With [`Worker::drain`](crate::Worker::drain), which works until nothing is due, a test needs no
//! pauses:
//!
//! ```no_run
//! use std::time::Duration;
//! use trunkline::{Draft, Failure, Queue, Worker};
//! use trunkline::testing::{assert_enqueued, assert_not_enqueued, shift};
//!
//! const HOUR: Duration = Duration::from_secs(3600);
//!
//! # async fn example(mails: Queue<String>) -> trunkline::Result<()> {
//! // What the program does …
//! mails.enqueue(Draft::new("ada@example.org: still there?".to_owned()).after(HOUR)).await?;
//!
//! // … and what the test expects of it.
//! let reminder = assert_enqueued(&mails, |mail| mail.payload.starts_with("ada@")).await;
//! assert_eq!(reminder.attempt, 0);
//! let worker = || Worker::new(mails.clone(), |_mail| async { Ok::<(), Failure>(()) });
//! assert_eq!(worker().drain().await?.done, 0, "it is not due yet");
//! shift(&mails, HOUR).await?;
//! assert_eq!(worker().drain().await?.done, 1);
//! assert_not_enqueued(&mails, |_any| true).await;
//! # Ok(()) }
//! ```
//!
//! The crate `trunkline-embedded` gives each test a database.

use std::{
    fmt::{Debug, Write},
    panic::Location,
    time::{Duration, SystemTime},
};

use tokio_postgres::error::SqlState;

use crate::{
    error::Result,
    postgres::wire::only,
    queue::{
        handle::{Queue, finish},
        message::{draft::Due, payload::Payload},
        verbs::stats::Peeked,
    },
};

/// Lets the time `by` pass for one queue, at most 36,500 days. Messages that would become due
/// within that time are due now, in the same order. Messages that are due later become due earlier
/// by that time. The queue stores leases, retries and delays as due times, so a lease that would
/// end within that time has expired. Returns the number of messages in the queue.
///
/// For [`Queue::prune`], the times of past events (enqueues, deaths, archivings) move back by `by`.
/// If the role may change schedules, the next ticks of the queue's schedules come earlier by `by`.
/// The call wakes waiting consumers and workers in every process. The clocks of the server and of
/// this process do not change, nor do a worker's own pauses and timeouts. A worker whose lease has
/// expired finds it lost when it renews or settles the lease.
///
/// The call waits for transactions that have taken messages of the queue. Commit any such
/// transaction of the same task first; otherwise the call never returns.
///
/// # Errors
/// A database error, or the time is out of bounds. The role must have the right to update the
/// tables of dead letters and of the archive, like an operator or the queue's owner.
///
/// ```no_run
/// # use std::time::Duration;
/// # async fn example(mails: trunkline::Queue<String>) -> trunkline::Result<()> {
/// trunkline::testing::shift(&mails, Duration::from_secs(3600)).await?;
/// # Ok(()) }
/// ```
pub async fn shift<T>(queue: &Queue<T>, by: Duration) -> Result<u64> {
    let (seconds, shared) = (Due::After(by).number()?, queue.shared.clone());
    // Wakes waiting consumers even if the caller stops waiting. No floor needs lowering: floors are
    // never above the current time, and the shift makes no message due before the current time.
    let work = async move {
        // Tries again after a deadlock, which has changed nothing. The statement locks the whole
        // queue, so it may deadlock with a worker.
        let rows = loop {
            match shared.query(&shared.sql.shift, &[&shared.name(), &seconds]).await {
                Err(error) if error.sqlstate() == Some(&SqlState::T_R_DEADLOCK_DETECTED) => {}
                answer => break answer?,
            }
        };
        shared.db.wake(&shared.channel);
        Ok(only(&rows)?.read::<i64>(0)?.unsigned_abs())
    };
    finish("a shift", work).await
}

/// Returns all messages in the queue, waiting and leased, in the order in which they were enqueued.
/// Messages of concurrent callers are in no particular order. Changes nothing.
///
/// # Errors
/// The errors of [`Queue::peek`].
///
/// ```no_run
/// # async fn example(mails: trunkline::Queue<String>) -> trunkline::Result<()> {
/// use trunkline::testing::enqueued;
/// let mails: Vec<String> =
///     enqueued(&mails).await?.into_iter().map(|mail| mail.payload).collect();
/// assert_eq!(mails, ["ada@example.org: hello", "bob@example.org: hello"]);
/// # Ok(()) }
/// ```
pub async fn enqueued<T: Payload>(queue: &Queue<T>) -> Result<Vec<Peeked<T>>> {
    let mut messages = queue.peek(usize::MAX).await?;
    messages.sort_by_key(|message| message.id);
    messages.dedup_by_key(|message| message.id); // a message may move between two pages while they are read
    Ok(messages)
}

/// Asserts that the queue contains a message for which `is_expected` returns true. Returns the
/// first such message, in the order in which they were enqueued.
///
/// # Panics
/// If there is no such message. The panic reports the caller's line and lists at most twenty
/// messages of the queue.
#[track_caller]
pub fn assert_enqueued<T: Payload + Debug>(
    queue: &Queue<T>,
    is_expected: impl Fn(&Peeked<T>) -> bool + Send,
) -> impl Future<Output = Peeked<T>> + Send {
    let caller = Location::caller();
    async move {
        let mut messages = messages_for(queue, caller).await;
        let Some(at) = messages.iter().position(is_expected) else {
            let name = &queue.description().name;
            fail(caller, &format!("no message in queue {name:?} is as expected; {}", List(&messages).text()))
        };
        messages.swap_remove(at)
    }
}

/// Asserts that the queue contains no message for which `is_unexpected` returns true.
///
/// # Panics
/// If there is such a message. The panic reports the caller's line and lists at most twenty such
/// messages.
#[track_caller]
pub fn assert_not_enqueued<T: Payload + Debug>(
    queue: &Queue<T>,
    is_unexpected: impl Fn(&Peeked<T>) -> bool + Send,
) -> impl Future<Output = ()> + Send {
    let caller = Location::caller();
    async move {
        let mut messages = messages_for(queue, caller).await;
        messages.retain(is_unexpected);
        if !messages.is_empty() {
            let name = &queue.description().name;
            fail(caller, &format!("queue {name:?} holds what it should not; of that kind {}", List(&messages).text()));
        }
    }
}

async fn messages_for<T: Payload>(queue: &Queue<T>, caller: &Location<'_>) -> Vec<Peeked<T>> {
    match enqueued(queue).await {
        Ok(messages) => messages,
        Err(error) => {
            fail(caller, &format!("the messages in queue {:?} cannot be read: {error}", queue.description().name))
        }
    }
}

/// Panics with the caller's position. A panic inside a future would report a line of this file.
fn fail(caller: &Location<'_>, text: &str) -> ! {
    panic!("{caller}: {text}")
}

/// The maximum number of messages in a list.
const LISTED: usize = 20;

struct List<'a, T>(&'a [Peeked<T>]);

impl<T: Debug> List<'_, T> {
    fn text(&self) -> String {
        let (now, all) = (SystemTime::now(), self.0);
        let mut text = match all.len() {
            0 => "it holds none".to_owned(),
            1 => "it holds 1 message:".to_owned(),
            count => format!("it holds {count} messages:"),
        };
        for message in all.iter().take(LISTED) {
            let Peeked { id, due_at, attempt, error, payload, metadata, .. } = message;
            let due = match due_at.duration_since(now) {
                Ok(later) => format!("due in {:.1} s", later.as_secs_f64()),
                Err(_) => "due".to_owned(),
            };
            // Writing to a string cannot fail.
            let _ = write!(text, "\n  {id}, {due}, attempt {attempt}: {payload:?}");
            if !metadata.is_empty() {
                let _ = write!(text, ", {metadata:?}");
            }
            if let Some(error) = error.as_ref().filter(|error| !error.is_empty()) {
                let _ = write!(text, ", failed: {error}");
            }
        }
        if all.len() > LISTED {
            let _ = write!(text, "\n  … and {} more", all.len() - LISTED);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::{message::metadata::Metadata, verbs::by_id::State};

    fn message(id: i64) -> Peeked<&'static str> {
        let at = SystemTime::UNIX_EPOCH;
        Peeked {
            id,
            state: State::Due,
            enqueued_at: at,
            due_at: at,
            attempt: 0,
            error: None,
            payload: "a",
            metadata: Metadata::new(),
            priority: 0,
            key: None,
        }
    }

    #[test]
    fn failure_lists_a_readable_number_of_messages() {
        assert_eq!(List::<()>(&[]).text(), "it holds none");
        let failed =
            Peeked { attempt: 2, error: Some("no".to_owned()), metadata: Metadata::new().with("k", "v"), ..message(7) };
        let text = List(&[message(1), failed]).text();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[..2], ["it holds 2 messages:", "  1, due, attempt 0: \"a\""]);
        assert!(lines[2].starts_with("  7, due, attempt 2: \"a\", ") && lines[2].ends_with(", failed: no"), "{text}");
        let many: Vec<_> = (0..100).map(message).collect();
        assert_eq!(List(&many).text().lines().last(), Some("  … and 80 more"));
    }
}
