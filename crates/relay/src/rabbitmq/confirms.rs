//! The confirmations of a batch, and the time for which the relay waits for them.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures_util::{FutureExt, Stream, StreamExt, stream::FuturesUnordered};
use lapin::{Channel, Confirmation, PublisherConfirm};
use tokio::time::{Instant, timeout_at};

use super::connect::silent;

/// The maximum time without a confirmation.
const SILENCE: Duration = Duration::from_secs(10);
/// The number of bytes per second that the slowest link carries. A large message gets the time that
/// this link takes, in addition to [`SILENCE`].
const SLOWEST: u64 = 64 << 10;

/// The batches in flight, by their numbers in order of their begin, each with the time of the last
/// confirmation of it or of an earlier batch. Batches share a connection, so the broker receives a
/// batch after the earlier ones.
#[derive(Default)]
pub(super) struct InFlight(Mutex<BTreeMap<u64, Instant>>);

/// A batch in flight.
struct Entry<'a> {
    all: &'a InFlight,
    number: u64,
    patience: Duration,
}

impl InFlight {
    fn batches(&self) -> MutexGuard<'_, BTreeMap<u64, Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(&self, largest: usize) -> Entry<'_> {
        let mut batches = self.batches();
        let number = batches.last_key_value().map_or(0, |(last, _)| last + 1);
        batches.insert(number, Instant::now());
        let patience = SILENCE + Duration::from_secs(largest as u64 / SLOWEST);
        Entry { all: self, number, patience }
    }

    /// Waits for the answers to a batch: as long as confirmations arrive, but not beyond `end`.
    /// Takes the messages as they are sent, and the size of the largest one. Returns an error in
    /// place of each missing answer.
    pub async fn collect(
        &self,
        (channel, messages, largest): (&Channel, usize, usize),
        sent: impl Stream<Item = (usize, lapin::Result<PublisherConfirm>)>,
        end: Instant,
    ) -> Vec<lapin::Result<Confirmation>> {
        let entry = self.enter(largest);
        let mut answers: Vec<_> = (0..messages).map(|_| None).collect();
        let mut sent = std::pin::pin!(sent.fuse());
        let mut confirms = FuturesUnordered::new();
        loop {
            let next = async {
                tokio::select! {
                    Some((at, sent)) = sent.next() => match sent {
                        Ok(confirm) => confirms.push(confirm.map(move |confirmed| (at, confirmed))),
                        Err(error) => answers[at] = Some(Err(error)),
                    },
                    Some((at, confirmed)) = confirms.next() => {
                        if lapin::Result::is_ok(&confirmed) {
                            entry.go_on();
                        }
                        answers[at] = Some(confirmed);
                    }
                    else => return false,
                }
                true
            };
            match timeout_at(entry.deadline().min(end), next).await {
                Ok(true) => {}
                Ok(false) => break,
                Err(_) if Instant::now() < entry.deadline().min(end) => {} // an earlier batch goes on
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
        answers.into_iter().map(|answer| answer.unwrap_or_else(|| Err(silent()))).collect()
    }
}

impl Entry<'_> {
    /// Returns the time at which the relay stops waiting for the batch, unless confirmations
    /// arrive.
    fn deadline(&self) -> Instant {
        self.all.batches().get(&self.number).copied().unwrap_or_else(Instant::now) + self.patience
    }

    /// Records a confirmation of the batch.
    fn go_on(&self) {
        let now = Instant::now();
        self.all.batches().range_mut(self.number..).for_each(|(_, last)| *last = now);
    }
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        self.all.batches().remove(&self.number);
    }
}
