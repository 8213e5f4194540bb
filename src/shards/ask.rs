//! One dequeue of a sharded consumer, which dequeues from several shards at the same time.

use std::{io, time::Duration};

use futures_util::{StreamExt, stream::FuturesUnordered};
use tokio::time::{Instant, sleep_until, timeout_at};
use tracing::warn;

use crate::{
    error::{Error, Kind, Result},
    queue::{
        batch::dequeues::DequeueMode,
        consumer::offer::Offer,
        message::{Message, payload::Payload},
    },
    shards::{
        consumer::{Consumer, SILENCE, Seat},
        id::Sharded,
    },
};

/// The maximum of [`Seat::patience`].
const LONGEST_SILENCE: Duration = Duration::from_secs(64);
/// The pause between two dequeues on a shard that had nothing, while another shard does not answer.
const AGAIN: Duration = Duration::from_millis(100);

impl<T: Payload> Consumer<T> {
    /// Dequeues due messages on all shards that are up. If some shards return fewer messages than
    /// requested, requests the rest from the other shards. A message whose lease expired comes
    /// alone, and ends the call. Waits for a silent shard at most until `until`, but at least for
    /// [`SILENCE`].
    pub(super) async fn ask_all(
        &mut self,
        n: usize,
        how: DequeueMode,
        until: Option<Instant>,
    ) -> Result<Vec<Sharded<Message<T>>>> {
        let all = self.awake();
        self.next = all.first().map_or(0, |first| first + 1);
        // Collects the offers, which are accepted only after the last await. If the call is dropped
        // earlier, the messages go back.
        let (mut offers, mut failed) = (Vec::new(), Vec::new());
        let count = |offers: &[Sharded<Offer<T>>]| offers.iter().map(|offer| offer.of.len()).sum::<usize>();
        let is_alone = |offers: &[Sharded<Offer<T>>]| offers.iter().any(|offer| offer.of.is_apart());
        for mut order in self.groups(&all) {
            while count(&offers) < n && !order.is_empty() && !is_alone(&offers) {
                let rest = n - count(&offers);
                let asked: Vec<(usize, usize)> = order.iter().copied().zip(shares(rest, order.len())).collect();
                let not_asked = order.split_off(asked.len());
                // After this round, the next one dequeues from shards that may have more messages,
                // and from shards that were left out because `n` is less than the number of shards.
                order = self.ask(&asked, &all, (how, until), &mut offers, &mut failed).await;
                let not_yet: Vec<usize> = not_asked.into_iter().filter(|at| !order.contains(at)).collect();
                order.extend(not_yet);
            }
            if !offers.is_empty() {
                break;
            }
        }
        if let Some(at) = offers.iter().position(|offer| offer.of.is_apart()) {
            offers = vec![offers.swap_remove(at)]; // dropping the others gives their messages back
        }
        let mut found = Vec::with_capacity(count(&offers));
        for Sharded { shard, of } in offers {
            if found.len() + of.len() > n {
                continue; // the offers contain more than `n` messages; dropping this one gives its messages back
            }
            match of.accept(Ok) {
                Ok(messages) => found.extend(messages.into_iter().map(|of| Sharded { shard, of })),
                Err(error) => failed.push((shard.to_string(), error)),
            }
        }
        if found.is_empty() && !failed.is_empty() {
            return Err(Error::of_shards(failed));
        }
        for (shard, error) in failed {
            warn!(queue = self.queue.shared.name, shard, %error, "a shard failed to answer a dequeue; other shards answered");
        }
        Ok(found)
    }

    /// Groups the shards that a call dequeues from at the same time. A call dequeues from a group
    /// if the groups before it have no messages. A shard that returned an expired message is a
    /// group of its own: its next one would send the messages of the other shards back. It comes
    /// first in its own turn, and last in the turns of the others.
    fn groups(&self, all: &[usize]) -> Vec<Vec<usize>> {
        let (apart, others): (Vec<usize>, Vec<usize>) = all.iter().copied().partition(|at| self.seats[*at].has_expired);
        let mut groups: Vec<Vec<usize>> = apart.iter().map(|at| vec![*at]).collect();
        let is_its_turn = !apart.is_empty() && apart.first() == all.first();
        groups.insert(usize::from(is_its_turn), others);
        groups
    }

    /// Dequeues from several shards at the same time. While no shard has a message and some shards
    /// do not answer, dequeues from all other shards, too. Returns the shards that may have more
    /// messages: they returned as many as requested, or all shards found nothing and they stopped
    /// after many burials.
    async fn ask(
        &mut self,
        asked: &[(usize, usize)],
        all: &[usize],
        (how, until): (DequeueMode, Option<Instant>),
        found: &mut Vec<Sharded<Offer<T>>>,
        failed: &mut Vec<(String, Error)>,
    ) -> Vec<usize> {
        let mut silent: Vec<(usize, Duration)> = asked.iter().map(|(at, _)| (*at, self.seats[*at].patience)).collect();
        // Asks other shards a little later than the end of the first wait, so that a call that ends
        // then starts no dequeue on them.
        let (begun, others_from) = (Instant::now(), Instant::now() + SILENCE + AGAIN);
        let part = |at: usize| match asked.iter().find(|(asked, _)| *asked == at) {
            Some((_, n)) => Some((*n, begun)),
            None => all.contains(&at).then_some((1, others_from)),
        };
        let seats = self.seats.iter_mut().enumerate().filter_map(|(at, seat)| Some((at, seat, part(at)?)));
        let mut answers: FuturesUnordered<_> =
            seats.map(|(at, seat, (n, from))| ask_one(at, seat, n, how, from)).collect();
        let (mut full, mut stopped) = (Vec::new(), Vec::new());
        while !silent.is_empty() {
            let waits = found.is_empty() && failed.is_empty();
            let longest = silent.iter().map(|(_, patience)| *patience).max().filter(|_| waits).unwrap_or(SILENCE);
            let deadline = until.map_or(begun + longest, |until| until.max(begun + SILENCE).min(begun + longest));
            let Ok(Some((at, seat, n, outcome))) = timeout_at(deadline, answers.next()).await else { break };
            silent.retain(|(silent, _)| *silent != at);
            match outcome {
                Ok(Some(offer)) if !offer.is_empty() => {
                    seat.has_expired = offer.is_apart();
                    if offer.len() == n {
                        full.push(at);
                    }
                    found.push(Sharded { shard: seat.shard.id, of: offer });
                }
                Ok(Some(offer)) if offer.has_stopped() => {
                    seat.has_expired = false;
                    stopped.push(at);
                }
                Ok(_) => {
                    seat.has_expired = false;
                    let again = Instant::now() + AGAIN;
                    answers.push(ask_one(at, seat, n, how, again.max(others_from)));
                }
                Err(error) if error.is_closed() => seat.shard.lost(&error),
                Err(error) => failed.push((seat.shard.id.to_string(), error)),
            }
        }
        drop(answers);
        if found.is_empty() && until.is_none_or(|until| Instant::now() < until) {
            full.append(&mut stopped);
        }
        for (at, _) in asked {
            let seat = &mut self.seats[*at];
            if !silent.iter().any(|(silent, _)| silent == at) {
                seat.patience = SILENCE;
                continue;
            }
            let waited = begun.elapsed();
            let told = io::Error::new(io::ErrorKind::TimedOut, format!("no answer to a dequeue in {waited:.1?}"));
            seat.shard.lost(&Error::new(Kind::Unreachable(told)));
            seat.patience = (2 * seat.patience).min(LONGEST_SILENCE);
        }
        full
    }
}

/// Dequeues from one shard at the given time.
async fn ask_one<T: Payload>(
    at: usize,
    seat: &mut Seat<T>,
    n: usize,
    how: DequeueMode,
    from: Instant,
) -> (usize, &mut Seat<T>, usize, Result<Option<Offer<T>>>) {
    sleep_until(from).await;
    let outcome = seat.consumer.due_now(n, how).await;
    (at, seat, n, outcome)
}

/// Splits `n` into at most `parts` nearly equal parts, none of them empty.
fn shares(n: usize, parts: usize) -> impl Iterator<Item = usize> {
    (0..parts.min(n)).map(move |at| n / parts + usize::from(at < n % parts))
}

#[cfg(test)]
mod tests {
    use super::shares;

    #[test]
    fn shares_are_equal_and_are_all_of_it() {
        for (n, parts, expected) in
            [(10, 3, &[4, 3, 3][..]), (3, 3, &[1, 1, 1]), (2, 5, &[1, 1]), (1, 1, &[1]), (0, 2, &[])]
        {
            assert_eq!(shares(n, parts).collect::<Vec<_>>(), expected);
        }
    }
}
