//! A hand is a task of the worker. It handles one message after another until no message is
//! waiting.

use std::{
    panic::AssertUnwindSafe,
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::FutureExt;
use tokio::task::coop::consume_budget;
use tracing::{Instrument, info, warn};

use crate::worker::{groups::Decision, held::Start, station::Station};
use crate::{
    error::text_of,
    queue::{
        message::{
            Lease,
            failure::{Failure, Verdict},
            payload::Payload,
        },
        observe::{
            metric::{End, Watch},
            span,
        },
    },
    worker::{
        attempt::{Attempt, OwnEnd},
        retry_policy::random,
    },
};

/// One task of the worker. The task counts as used until it ends or is stopped, which drops this
/// value.
pub(super) struct Hand<T: Payload> {
    station: Arc<Station<T>>,
    nr: usize,
    /// True if the task has no messages, and its number is free.
    has_ended: bool,
}

impl<T: Payload> Drop for Hand<T> {
    fn drop(&mut self) {
        // When a worker shuts down, it stops this task and gives the messages back. After a panic,
        // the task has to give them back itself.
        if !self.has_ended && std::thread::panicking() {
            let lost = {
                let mut held = self.station.held();
                let failed = Decision::Retry(AFTER_PANIC, "the worker panicked while it held the message".to_owned());
                let answers = vec![failed; held.leases(self.nr).count()];
                let lost = held.finish(self.nr, answers, Instant::now());
                held.hand_ended(self.nr);
                lost
            };
            self.station.lose(lost);
            self.station.queue.shared.metrics.lost(lost);
        }
        self.station.hands.give_back(self.station.nr, 1);
        self.station.changed.notify_one();
    }
}

/// The retry delay of messages whose task panicked in the worker's own code.
const AFTER_PANIC: Duration = Duration::from_secs(1);

impl<T: Payload> Hand<T> {
    pub fn new(station: Arc<Station<T>>, nr: usize) -> Self {
        Self { station, nr, has_ended: false }
    }

    pub async fn run(mut self) {
        let (station, nr) = (self.station.clone(), self.nr);
        let mut answers = Vec::new();
        let (metrics, mut watch) = (&station.queue.shared.metrics, Watch::start());
        let _runs = metrics.running();
        while let Some(start) = station.next(nr, answers, watch.now) {
            metrics.delivered(&start.messages, &watch);
            // Dropping the handler's future may also panic.
            answers = match AssertUnwindSafe(station.handle(nr, start)).catch_unwind().await {
                Ok(answers) => answers,
                Err(panic) => station.all_failed(nr, &format!("the handler panicked: {}", text_of(panic))),
            };
            let lap = watch.lap();
            if let Some(report) = &station.report {
                report.calls.ended(&answers, lap.took());
            }
            metrics.handled(end_of(&answers), lap);
            consume_budget().await; // yields now and then: a handler that never waits must not block the thread
        }
        self.has_ended = true;
    }
}

impl<T: Payload> Station<T> {
    fn all_failed(&self, nr: usize, reason: &str) -> Vec<Decision> {
        let leases: Vec<(Lease, u32)> = self.held().leases(nr).collect();
        let failure = Failure::retry(reason);
        self.options.hooks.after_attempt(leases.iter().map(|(lease, _)| (*lease, Err(&failure))));
        leases.into_iter().map(|lease| self.decide(lease, &failure)).collect()
    }

    /// Records the decisions about the task's messages, and returns its next messages. This method
    /// must be cheap, because it runs before every handler call.
    fn next(&self, nr: usize, answers: Vec<Decision>, now: Instant) -> Option<Start<T>> {
        let goes_on = self.hands.goes_on(self.nr);
        let counted = answers.iter().filter(|answer| matches!(answer, Decision::Lost)).count();
        let (start, lost, settles, opens_sooner, ends_alone) = {
            let mut held = self.held();
            let (settled_before, ran_alone) = (held.is_settling(), held.runs_alone());
            let lost = held.finish(nr, answers, now);
            let ends_alone = ran_alone && !held.runs_alone();
            let start = if goes_on { held.next(nr, self.handler.each, self.handler.is_told, now) } else { None };
            if start.is_none() {
                held.hand_ended(nr);
            }
            (start, lost, held.is_settling() && !settled_before, held.opens_sooner(), ends_alone)
        };
        if opens_sooner {
            self.sooner.notify_one();
        }
        self.lose(lost);
        if lost > counted {
            self.queue.shared.metrics.lost(lost - counted); // a release has counted the others
        }
        if settles || ends_alone || start.as_ref().is_some_and(|start| start.low) {
            self.changed.notify_one();
        }
        start
    }

    async fn handle(&self, nr: usize, start: Start<T>) -> Vec<Decision> {
        let Some(first) = start.messages.first().map(crate::Message::lease) else { return Vec::new() };
        let span = span::handle(self.name(), &start.messages);
        let told = start.told;
        let attempt = told.clone().map(|told| Attempt::new(self.queue.clone(), first, told));
        let limit = self.options.timeout.map(|longest| (Instant::now(), longest));
        let work = self.handler.answers(start.messages, attempt, self.options.timeout);
        let answers = work.instrument(span.clone()).await;
        let mut own_end = told.map_or(OwnEnd::None, |told| told.own_end());
        // A handler that took too long may have left its transaction open, for example in a thread.
        // Settling the message would wait for that transaction.
        let is_late = || limit.is_some_and(|(began, longest)| began.elapsed() >= longest);
        if own_end == OwnEnd::Assumed && answers.iter().any(Result::is_err) && is_late() {
            own_end = OwnEnd::Open;
        }
        let hooks = &self.options.hooks;
        if hooks.watch_attempts() {
            let leases: Vec<Lease> = self.held().leases(nr).map(|(lease, _)| lease).collect();
            hooks.after_attempt(leases.into_iter().zip(answers.iter().map(|answer| answer.as_ref().copied())));
        }
        if own_end == OwnEnd::None && answers.iter().all(Result::is_ok) {
            span.record("outcome", End::Done.name());
            return answers.iter().map(|_| Decision::Done).collect();
        }
        let _entered = span.enter();
        let leases: Vec<(Lease, u32)> = self.held().leases(nr).collect();
        let decided: Vec<Decision> =
            leases.into_iter().zip(answers).map(|(lease, answer)| self.answer(lease, own_end, answer)).collect();
        span.record("outcome", end_of(&decided).name());
        decided
    }

    /// Decides how to settle a message, from the handler's result and from what the handler itself
    /// has settled.
    fn answer(&self, (lease, charged): (Lease, u32), own_end: OwnEnd, answer: Result<(), Failure>) -> Decision {
        let Lease { id, attempt } = lease;
        match (own_end, answer) {
            (OwnEnd::None, Ok(())) => Decision::Done,
            (OwnEnd::Committed, answer) => {
                if let Err(failure) = answer {
                    let reason = failure.reason();
                    warn!(
                        queue = self.name(),
                        id, attempt, reason, "handler failed after its commit; the message is done"
                    );
                }
                self.done_elsewhere();
                Decision::Settled
            }
            (OwnEnd::Assumed, Ok(())) => {
                self.done_elsewhere();
                Decision::Settled
            }
            (OwnEnd::Released, _) => {
                self.tally.add(End::Released, 1);
                Decision::Released
            }
            (OwnEnd::Open, _) => {
                warn!(
                    queue = self.name(),
                    id, attempt, "handler ended before the transaction that acknowledges its message"
                );
                self.tally.add(End::Lost, 1);
                Decision::Released
            }
            (OwnEnd::Undone, Ok(())) => self.decide(
                (lease, charged),
                &Failure::retry("the handler did not commit the transaction that acknowledges its message"),
            ),
            (OwnEnd::ReleaseFailed, Ok(())) => self
                .decide((lease, charged), &Failure::retry("the handler gave the message back, and the release failed")),
            (OwnEnd::None | OwnEnd::Assumed | OwnEnd::Undone | OwnEnd::ReleaseFailed, Err(failure)) => {
                self.decide((lease, charged), &failure)
            }
        }
    }

    /// Counts a message that the handler's own transaction has acknowledged, and wakes consumers
    /// that may be waiting for its lease to end, in this process too.
    fn done_elsewhere(&self) {
        self.tally.add(End::Done, 1);
        self.queue.shared.make_room();
    }

    fn decide(&self, (Lease { id, attempt }, charged): (Lease, u32), failure: &Failure) -> Decision {
        match failure.verdict {
            Verdict::Released => {
                self.tally.add(End::Released, 1);
                return Decision::Released;
            }
            Verdict::Lost => return Decision::Lost,
            Verdict::ByPolicy | Verdict::After(_) | Verdict::Dead => {}
        }
        let reason = failure.reason();
        if let Some(after) = self.options.retry.decide(charged, failure, random()) {
            info!(
                queue = self.name(),
                id,
                attempt,
                attempts = charged,
                outcome = "retried",
                ?after,
                reason,
                "handler failed"
            );
            Decision::Retry(after, reason.to_owned())
        } else {
            warn!(
                queue = self.name(),
                id,
                attempt,
                attempts = charged,
                outcome = "dead",
                reason,
                "dead letter: the handler failed"
            );
            Decision::Bury(reason.to_owned())
        }
    }
}

/// Returns the worst outcome, for metrics, spans and the summary.
fn end_of(answers: &[Decision]) -> End {
    let mut end = End::Done;
    for answer in answers {
        match answer {
            Decision::Bury(_) => return End::Dead,
            Decision::Retry(..) => end = End::Retried,
            Decision::Done | Decision::Settled | Decision::Released | Decision::Lost => {}
        }
    }
    end
}
