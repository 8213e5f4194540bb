//! The confirmations of a batch, and the time for which the relay waits for them.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures_util::{FutureExt, Stream, StreamExt, stream::FuturesUnordered};
use lapin::{Channel, Confirmation, PublisherConfirm};
use tokio::time::{Instant, timeout_at};

use crate::{gather::transfer, sink::ENOUGH};

/// The maximum time without a confirmation. A large message gets the time of its transfer, too.
const SILENCE: Duration = Duration::from_secs(10);

/// The batches and requests in flight, by their numbers in order of their begin. They share a
/// connection, so the broker receives each of them after the earlier ones.
#[derive(Default)]
pub(super) struct InFlight(Mutex<BTreeMap<u64, Flight>>);

struct Flight {
    /// The time of the last confirmation of this batch or of an earlier one.
    last: Instant,
    patience: Duration,
}

/// A batch or a request in flight.
struct Entry<'a> {
    all: &'a InFlight,
    number: u64,
    /// The maximum time without a confirmation: its own or that of an earlier batch.
    patience: Duration,
}

impl InFlight {
    fn all(&self) -> MutexGuard<'_, BTreeMap<u64, Flight>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(&self, patience: Duration) -> Entry<'_> {
        let mut all = self.all();
        let number = all.last_key_value().map_or(0, |(last, _)| last + 1);
        let longest = all.values().map(|earlier| earlier.patience).max().unwrap_or_default();
        all.insert(number, Flight { last: Instant::now(), patience });
        Entry { all: self, number, patience: patience.max(longest) }
    }

    /// Waits for the answer to a request. Renews the time limit as long as the batches before it
    /// are confirmed.
    pub async fn answered<T>(&self, patience: Duration, asked: impl Future<Output = T>) -> Option<T> {
        let entry = self.enter(patience);
        let mut asked = std::pin::pin!(asked);
        loop {
            match timeout_at(entry.deadline(), &mut asked).await {
                Ok(answer) => return Some(answer),
                Err(_) if Instant::now() < entry.deadline() => {} // an earlier batch goes on
                Err(_) => return None,
            }
        }
    }

    /// Waits for the answers to a batch: as long as confirmations arrive, but not beyond `end`.
    /// Without an end, the batch may take [`ENOUGH`] from its first confirmation. Before that, it
    /// waits for earlier batches. Takes the messages as they are sent, and the size of the largest
    /// one.
    pub async fn collect(
        &self,
        (channel, messages, largest): (&Channel, usize, usize),
        sent: impl Stream<Item = (usize, lapin::Result<PublisherConfirm>)>,
        mut end: Option<Instant>,
    ) -> Vec<Option<lapin::Result<Confirmation>>> {
        let entry = self.enter(SILENCE + transfer(largest));
        let mut answers: Vec<_> = (0..messages).map(|_| None).collect();
        let mut sent = std::pin::pin!(sent.fuse());
        let mut confirms = FuturesUnordered::new();
        loop {
            let deadline = entry.deadline_until(end);
            let next = async {
                tokio::select! {
                    Some((at, sent)) = sent.next() => match sent {
                        Ok(confirm) => confirms.push(confirm.map(move |confirmed| (at, confirmed))),
                        Err(error) => answers[at] = Some(Err(error)),
                    },
                    Some((at, confirmed)) = confirms.next() => {
                        if lapin::Result::is_ok(&confirmed) {
                            entry.go_on();
                            end = end.or_else(|| Some(Instant::now() + ENOUGH));
                        }
                        answers[at] = Some(confirmed);
                    }
                    else => return false,
                }
                true
            };
            match timeout_at(deadline, next).await {
                Ok(true) => {}
                Ok(false) => break,
                Err(_) if Instant::now() < entry.deadline_until(end) => {} // an earlier batch goes on
                Err(_) => {
                    // The client may attach a returned message to the confirmation of another
                    // message, which it resolves under the same lock. This call takes that lock, so
                    // all confirmations that belong together have been resolved after it.
                    let mut is_all = false;
                    while !is_all {
                        let _ = channel.wait_for_confirms().now_or_never();
                        is_all = true;
                        while let Some(Some((at, confirmed))) = confirms.next().now_or_never() {
                            answers[at] = Some(confirmed);
                            is_all = false;
                        }
                    }
                    break;
                }
            }
        }
        answers
    }
}

impl Entry<'_> {
    /// Returns the time at which the relay stops waiting, unless confirmations arrive.
    fn deadline(&self) -> Instant {
        self.all.all().get(&self.number).map_or_else(Instant::now, |flight| flight.last) + self.patience
    }

    fn deadline_until(&self, end: Option<Instant>) -> Instant {
        end.into_iter().fold(self.deadline(), Instant::min)
    }

    /// Records a confirmation of the batch.
    fn go_on(&self) {
        let now = Instant::now();
        self.all.all().range_mut(self.number..).for_each(|(_, flight)| flight.last = now);
    }
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        self.all.all().remove(&self.number);
    }
}
