//! The answers that the clients received, in chronological order.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use trunkline::{Error, Lease, Message};

/// A kind of call. The report has a row for each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stream {
    /// Enqueues by `Queue::enqueue`.
    Enqueue,
    /// Enqueues by `Queue::enqueue_in`, together with a row of the caller.
    EnqueueIn,
    /// Handlers of a `Worker`.
    Work,
    /// `Consumer::lease`, followed by `Queue::ack`.
    LeaseAck,
    /// `Consumer::take_with`, which writes into a ledger.
    Ledger,
    /// Takes by `Consumer::take`.
    Take,
    /// A consumer that waits for notifications.
    Bell,
    /// Messages from `Queue::send_direct` to `Consumer::receive_direct`.
    Hand,
}

impl Stream {
    pub const ALL: [(Self, &'static str); 8] = [
        (Self::Enqueue, "enqueue"),
        (Self::EnqueueIn, "enqueue_in"),
        (Self::Work, "worker"),
        (Self::LeaseAck, "lease, ack"),
        (Self::Ledger, "exactly once"),
        (Self::Take, "take"),
        (Self::Bell, "bell"),
        (Self::Hand, "handed over"),
    ];

    fn name(self) -> &'static str {
        Self::ALL.iter().find(|(stream, _)| *stream == self).map_or("", |(_, name)| name)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// The call succeeded, with this message id.
    Ok(i64),
    /// The server did nothing.
    Failed,
    /// The outcome is unknown.
    Unknown,
}

#[derive(Debug, Clone)]
pub struct Sent {
    pub payload: i64,
    pub told: Told,
    pub at: Instant,
}

#[derive(Debug, Clone)]
pub struct Delivery {
    pub payload: i64,
    pub lease: Lease,
    pub at: Instant,
}

#[derive(Debug, Clone)]
pub struct Acked {
    pub lease: Lease,
    pub told: Told,
}

/// Everything that happened in one queue.
#[derive(Debug, Default)]
pub struct Trail {
    pub sent: Vec<Sent>,
    pub delivered: Vec<Delivery>,
    pub acked: Vec<Acked>,
}

pub const QUEUES: [&str; 6] = ["work", "acked", "ledger", "taken", "bell", "hand"];

#[derive(Default)]
pub struct History {
    trails: [Mutex<Trail>; QUEUES.len()],
    went_on: Mutex<BTreeMap<Stream, Vec<Instant>>>,
    errors: Mutex<BTreeMap<(Stream, bool, String), usize>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl History {
    pub fn of(&self, queue: &str) -> MutexGuard<'_, Trail> {
        let at = QUEUES.iter().position(|name| *name == queue);
        locked(&self.trails[at.expect("a queue of the list")])
    }

    pub fn sent(&self, queue: &str, payload: i64, told: Told) {
        self.of(queue).sent.push(Sent { payload, told, at: Instant::now() });
    }

    pub fn delivered(&self, queue: &str, message: &Message<i64>) {
        let (payload, lease) = (message.payload, message.lease());
        self.of(queue).delivered.push(Delivery { payload, lease, at: Instant::now() });
    }

    /// Records that a call of this kind succeeded.
    pub fn goes_on(&self, stream: Stream) {
        locked(&self.went_on).entry(stream).or_default().push(Instant::now());
    }

    /// Records an error. `unknown` is true if the caller does not know the outcome.
    pub fn erred(&self, stream: Stream, unknown: bool, error: &Error) {
        *locked(&self.errors).entry((stream, unknown, shortened(&error.to_string()))).or_default() += 1;
    }

    /// Returns each kind of error as a tuple: its stream, a flag for an unknown outcome, its text,
    /// and its count.
    pub fn errors(&self) -> Vec<(&'static str, bool, String, usize)> {
        let all = locked(&self.errors);
        all.iter().map(|((stream, unknown, text), count)| (stream.name(), *unknown, text.clone(), *count)).collect()
    }

    /// Returns the time of the first success after `since`.
    pub fn first(&self, stream: Stream, since: Instant) -> Option<Instant> {
        let all = locked(&self.went_on);
        let of = all.get(&stream)?;
        of.get(of.partition_point(|at| *at <= since)).copied()
    }

    /// Returns the longest time between two consecutive successes. Considers pairs whose second
    /// success came after `since`, and no later than `until`.
    pub fn gap(&self, stream: Stream, since: Instant, until: Instant) -> Duration {
        let all = locked(&self.went_on);
        let Some(of) = all.get(&stream) else { return Duration::ZERO };
        let from = of.partition_point(|at| *at <= since).saturating_sub(1);
        let to = of.partition_point(|at| *at <= until);
        of[from..to].windows(2).map(|two| two[1] - two[0]).max().unwrap_or_default()
    }
}

/// Returns a text without the numbers that differ from run to run, such as ports and process ids.
fn shortened(text: &str) -> String {
    let mut short = String::new();
    for letter in text.chars() {
        match letter.is_ascii_digit() {
            true if short.ends_with('N') => {}
            true => short.push('N'),
            false => short.push(letter),
        }
    }
    short.chars().take(240).collect()
}
