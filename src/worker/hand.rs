//! A hand: a task that handles message after message, until none waits.

use std::{sync::Arc, time::Instant};

use tokio::task::coop::consume_budget;
use tracing::{Instrument, info, warn};

use super::{groups::Answer, held::Start, line::Line, tally::Outcome};
use crate::{
    attempt::{Attempt, OwnEnd},
    failure::Failure,
    message::Lease,
    metric::{End, Watch},
    payload::Payload,
    retry_policy::random,
    span,
};

impl<T: Payload> Line<T> {
    pub async fn hand(self: Arc<Self>, nr: usize) {
        let mut answers = Vec::new();
        let (metrics, mut watch) = (&self.queue.shared.metrics, Watch::start());
        let runs = metrics.running();
        while let Some(start) = self.next(nr, answers, watch.now) {
            metrics.delivered(&start.messages, &watch);
            answers = self.handle(nr, start).await;
            metrics.handled(end_of(&answers), watch.lap());
            consume_budget().await; // a handler that never waits must not keep the thread for ever
        }
        drop(runs);
        self.hands.give_back(self.nr, 1);
        self.changed.notify_one();
    }

    /// Notes the answers to what the hand held, and gives it more. Cheap, because every job passes here.
    fn next(&self, nr: usize, answers: Vec<Answer>, now: Instant) -> Option<Start<T>> {
        let goes_on = self.hands.goes_on(self.nr);
        let (start, lost, settles) = {
            let mut held = self.held();
            let settled_before = held.is_settling();
            let lost = held.finish(nr, answers, now);
            let start = if goes_on { held.next(nr, self.handler.each, self.handler.is_told, now) } else { None };
            if start.is_none() {
                held.hand_ended(nr);
            }
            (start, lost, held.is_settling() && !settled_before)
        };
        self.lose(lost);
        if lost > 0 {
            self.queue.shared.metrics.lost(lost);
        }
        if settles || start.as_ref().is_some_and(|start| start.low) {
            self.changed.notify_one();
        }
        start
    }

    /// Calls the handler, and decides what becomes of each message.
    async fn handle(&self, nr: usize, start: Start<T>) -> Vec<Answer> {
        let Some(first) = start.messages.first().map(crate::Message::lease) else { return Vec::new() };
        let span = span::handle(self.name(), &start.messages);
        let told = start.told;
        let attempt = told.clone().map(|told| Attempt::new(self.queue.clone(), first, told));
        let work = self.handler.answers(start.messages, attempt, self.options.timeout);
        let answers = work.instrument(span.clone()).await;
        let own_end = told.map_or(OwnEnd::None, |told| told.own_end());
        if own_end == OwnEnd::None && answers.iter().all(Result::is_ok) {
            span.record("outcome", "done");
            return answers.iter().map(|_| Answer::Done).collect();
        }
        let _entered = span.enter();
        let leases: Vec<Lease> = self.held().leases(nr).collect();
        let decided: Vec<Answer> =
            leases.into_iter().zip(answers).map(|(lease, answer)| self.answer(lease, own_end, answer)).collect();
        let any = |kind: fn(&Answer) -> bool| decided.iter().any(kind);
        let outcome = match () {
            () if any(|answer| matches!(answer, Answer::Bury(_))) => "dead",
            () if any(|answer| matches!(answer, Answer::Retry(..))) => "retry",
            () => "done",
        };
        span.record("outcome", outcome);
        decided
    }

    /// What becomes of a message after what its handler said and did.
    fn answer(&self, lease: Lease, own_end: OwnEnd, answer: Result<(), Failure>) -> Answer {
        let Lease { id, attempt } = lease;
        match (own_end, answer) {
            (OwnEnd::None, Ok(())) => Answer::Done,
            (OwnEnd::Committed, answer) => {
                if let Err(failure) = answer {
                    let reason = failure.reason();
                    warn!(
                        queue = self.name(),
                        id, attempt, reason, "a handler failed after its commit; the message is done"
                    );
                }
                self.tally.add(Outcome::Done, 1);
                Answer::Settled
            }
            (OwnEnd::Assumed, Ok(())) => {
                self.tally.add(Outcome::Done, 1);
                Answer::Settled
            }
            (OwnEnd::Released, _) => {
                self.tally.add(Outcome::Released, 1);
                Answer::Settled
            }
            (OwnEnd::Open, _) => {
                warn!(
                    queue = self.name(),
                    id, attempt, "a handler ended before the transaction that acknowledges its message"
                );
                self.tally.add(Outcome::Lost, 1);
                Answer::Settled
            }
            (OwnEnd::Undone, Ok(())) => self.decide(
                lease,
                &Failure::retry("the handler did not commit the transaction that acknowledges its message"),
            ),
            (OwnEnd::None | OwnEnd::Assumed | OwnEnd::Undone, Err(failure)) => self.decide(lease, &failure),
        }
    }

    fn decide(&self, lease: Lease, failure: &Failure) -> Answer {
        let (Lease { id, attempt }, reason) = (lease, failure.reason());
        if let Some(after) = self.options.retry.decide(attempt.unsigned_abs(), failure, random()) {
            info!(queue = self.name(), id, attempt, outcome = "retry", ?after, reason, "a handler failed");
            Answer::Retry(after, reason.to_owned())
        } else {
            warn!(queue = self.name(), id, attempt, outcome = "dead", reason, "a handler failed for good");
            Answer::Bury(reason.to_owned())
        }
    }
}

/// What metrics call it; of several, the worst.
fn end_of(answers: &[Answer]) -> End {
    let mut end = End::Done;
    for answer in answers {
        match answer {
            Answer::Bury(_) => return End::Dead,
            Answer::Retry(..) => end = End::Retried,
            Answer::Done | Answer::Settled => {}
        }
    }
    end
}
