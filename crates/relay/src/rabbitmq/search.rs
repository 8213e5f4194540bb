//! The search for the messages for which the broker closed a channel. The broker closes the channel
//! for all messages on it, and does not report which of them it refused.
//!
//! The search sends the messages again in parts, and the messages of a refused part one by one. So
//! a message is sent at most three times. With one refused message in a batch of 1,000, the search
//! sends 64 times, on several channels at once.

use std::{collections::VecDeque, time::Duration};

use futures_util::{StreamExt, stream::FuturesUnordered};
use tokio::time::{Instant, timeout_at};

use crate::sink::Outcome;

/// The maximum number of channels on which searches send at the same time.
pub(super) const CHANNELS: usize = 16;

/// The positions of messages that are sent together.
pub(super) struct Probe {
    pub places: Vec<usize>,
    /// The end of the search, if the messages are sent again because a part that contained them was
    /// refused.
    pub end: Option<Instant>,
}

impl Probe {
    pub fn is_again(&self) -> bool {
        self.end.is_some()
    }
}

/// The answer to a message of a part.
pub(super) enum Verdict {
    Known(Outcome),
    /// The broker refused this message or another message of the part.
    Suspect,
    /// The broker did not answer, or the connection broke.
    Lost(String),
}

/// Sends a batch, and searches it if the broker refuses it. Returns the outcomes in order: those
/// that are known after the search has taken the time `limit`. Takes the messages' destinations:
/// messages with the same destination share parts, because the broker probably refuses all of them
/// or none.
pub(super) async fn search<F>(to: &[&str], limit: Duration, send: impl Fn(Probe) -> F) -> Vec<Option<Outcome>>
where
    F: Future<Output = Vec<(usize, Verdict)>>,
{
    let mut outcomes = vec![None; to.len()];
    let mut parts = VecDeque::new();
    let mut in_flight = FuturesUnordered::new();
    if !to.is_empty() {
        parts.push_back(Probe { places: (0..to.len()).collect(), end: None });
    }
    let mut end = None;
    loop {
        while in_flight.len() < CHANNELS
            && let Some(part) = parts.pop_front()
        {
            let (again, sending) = (part.is_again(), send(part));
            in_flight.push(async move { (again, sending.await) });
        }
        let next = match end {
            Some(end) => timeout_at(end, in_flight.next()).await.ok().flatten(),
            None => in_flight.next().await,
        };
        let Some((again, answers)) = next else { return outcomes };
        let end = *end.get_or_insert_with(|| Instant::now() + limit);
        let (mut suspects, mut lost) = (Vec::new(), false);
        for (at, verdict) in answers {
            match verdict {
                Verdict::Known(outcome) => outcomes[at] = Some(outcome),
                Verdict::Suspect => suspects.push(at),
                Verdict::Lost(why) => {
                    outcomes[at] = Some(Outcome::RefusedForNow(why));
                    lost = true;
                }
            }
        }
        if lost {
            parts.clear(); // a broker that hangs would store each copy later
            continue;
        }
        suspects.sort_by_key(|at| to[*at]);
        let size = if again { 1 } else { suspects.len().isqrt().max(1) };
        parts.extend(suspects.chunks(size).map(|places| Probe { places: places.to_vec(), end: Some(end) }));
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    /// Searches a batch whose messages have the destination `yes`, except for some. Returns the
    /// outcomes, and the number of times that each message was sent.
    async fn searched(
        (messages, limit): (usize, Duration),
        is_bad: impl Fn(usize) -> bool,
        answers: impl AsyncFn(&Probe) -> Option<Verdict>,
    ) -> (Vec<Option<Outcome>>, Vec<usize>) {
        let to: Vec<_> = (0..messages).map(|at| if is_bad(at) { "no" } else { "yes" }).collect();
        let copies = RefCell::new(vec![0; messages]);
        let send = async |part: Probe| {
            part.places.iter().for_each(|at| copies.borrow_mut()[*at] += 1);
            let answer = answers(&part).await;
            let is_refused = part.places.iter().any(|at| is_bad(*at));
            let verdict = || match &answer {
                Some(Verdict::Lost(why)) => Verdict::Lost(why.clone()),
                Some(Verdict::Known(outcome)) => Verdict::Known(outcome.clone()),
                _ if is_refused && part.places.len() > 1 => Verdict::Suspect,
                _ if is_refused => Verdict::Known(Outcome::RefusedForGood(String::new())),
                _ => Verdict::Known(Outcome::Confirmed),
            };
            part.places.iter().map(|at| (*at, verdict())).collect()
        };
        let outcomes = search(&to, limit, send).await;
        (outcomes, copies.into_inner())
    }

    #[tokio::test]
    async fn refused_messages_are_found_with_three_copies_at_most() {
        for (messages, bad) in [(0, 1), (1, 1), (1, 2), (2, 1), (3, 2), (1000, 1000), (1000, 37), (1000, 2), (1000, 1)]
        {
            let (outcomes, sent) = searched((messages, LONG), |at| at % bad == bad - 1, async |_| None).await;
            for (at, outcome) in outcomes.iter().enumerate() {
                let good = *outcome == Some(Outcome::Confirmed);
                let refused = matches!(outcome, Some(Outcome::RefusedForGood(_)));
                assert!(if at % bad == bad - 1 { refused } else { good }, "{at} of {messages}: {outcome:?}");
            }
            assert!(sent.iter().all(|copies| (1..=3).contains(copies)), "{sent:?}");
        }
        let (_, sent) = searched((1000, LONG), |at| at == 500, async |_| None).await;
        assert!(sent.iter().filter(|copies| **copies == 3).count() <= 32, "{sent:?}");
    }

    #[tokio::test]
    async fn known_outcomes_are_returned_at_the_deadline() {
        let hangs = async |part: &Probe| {
            if part.is_again() && part.places.contains(&7) {
                std::future::pending::<()>().await;
            }
            None
        };
        let (outcomes, _) = searched((100, Duration::from_millis(100)), |at| at == 7, hangs).await;
        let unknown = outcomes.iter().filter(|outcome| outcome.is_none()).count();
        assert_eq!((unknown, outcomes[7].as_ref()), (10, None));
        assert!(outcomes.iter().flatten().all(|outcome| *outcome == Outcome::Confirmed));
    }

    #[tokio::test]
    async fn lost_broker_ends_the_search() {
        let lost = async |part: &Probe| part.is_again().then(|| Verdict::Lost("no answer".to_owned()));
        let (_, sent) = searched((1000, LONG), |at| at == 7, lost).await;
        let again = sent.iter().filter(|copies| **copies == 2).count();
        assert!(sent.iter().all(|copies| *copies <= 2) && again <= CHANNELS * 31, "{sent:?}");
    }
}
