//! The main loop of a queue's runner: lease, start, handle, settle.

use std::{
    panic::AssertUnwindSafe,
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use futures_util::FutureExt;
use tokio::{task::JoinSet, time::timeout};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::{
    error::{Result, text_of},
    queue::{consumer::Consumer, message::payload::Payload, wait::linger::Linger},
    worker::{
        exchange::StepExchange, hand::Hand, hands::Reserved, lanes::Ear, outage::Outage, release::Unclosed,
        station::Station,
    },
};

/// The time without a reply after which the worker reports the database as unreachable, although it
/// still waits for the reply.
const SILENCE: Duration = Duration::from_secs(2);
/// The pause after a panic of a task beside the runner. It is short, because handlers lose their
/// leases while no heartbeat runs.
const AFTER_PANIC: Duration = Duration::from_millis(100);

impl<T: Payload> Station<T> {
    /// Runs until this runner or all runners are stopped, or until a permanent error. Then shuts
    /// down gracefully.
    pub async fn live(self: Arc<Self>, stop: CancellationToken) -> Result<()> {
        let _end = self.gauges.until_end();
        let unclosed = Unclosed::of(&self);
        let (mut running, mut beside) = (JoinSet::new(), JoinSet::new());
        beside.spawn(self.clone().keep_running("the heartbeat", Self::heartbeat));
        if self.holder.is_some() {
            beside.spawn(self.clone().keep_running("the timer of limited keys", Self::open));
        }
        if self.report.is_some() {
            beside.spawn(self.clone().keep_running("the report of the status", Self::report));
        }
        let limit = CancellationToken::new();
        let (stopped, longest, over) = (stop.clone(), self.options.shutdown_after, limit.clone());
        beside.spawn(async move {
            stopped.cancelled().await;
            tokio::time::sleep(longest).await;
            over.cancel();
        });
        let outcome = self.work(&mut running, &stop, &limit).await;
        stop.cancel();
        unclosed.close();
        self.close(running, &limit).await;
        self.leave().await;
        self.report_end().await;
        outcome
    }

    /// Runs one of the tasks beside the runner. Runs it again after a panic, because without it the
    /// runner would lose leases or stop in silence.
    async fn keep_running<F: Future<Output = ()>>(self: Arc<Self>, name: &'static str, task: impl Fn(Arc<Self>) -> F) {
        while let Err(panic) = AssertUnwindSafe(task(self.clone())).catch_unwind().await {
            let panic = text_of(panic);
            warn!(queue = self.name(), panic, "{name} panicked; trying again");
            tokio::time::sleep(AFTER_PANIC).await;
        }
    }

    /// Runs one step after another, and pauses while the database is unreachable.
    async fn work(
        self: &Arc<Self>,
        running: &mut JoinSet<()>,
        stop: &CancellationToken,
        limit: &CancellationToken,
    ) -> Result<()> {
        let mut consumer = self.queue.consumer(self.options.wait).watched(self.options.hooks.clone());
        let mut ear = self.ear();
        let (mut outage, mut is_away) = (Outage::default(), false);
        let mut knows_per_key = self.holder.is_none();
        while !stop.is_cancelled() {
            let work = async {
                if !knows_per_key {
                    self.read_per_key().await?;
                    knows_per_key = true;
                }
                self.step(&mut consumer, &mut ear, running, stop, is_away).await
            };
            let outcome = tokio::select! {
                outcome = work => outcome,
                () = limit.cancelled() => return Ok(()),
            };
            match outcome {
                Ok(Asked::Nothing) => {}
                Ok(Asked::Something) => {
                    outage.over(self.name());
                    self.gauges.connected(true);
                    is_away = false;
                }
                Err(error) if error.is_final() => return Err(error),
                // Ends only if the worker has never worked, because a revoked right may be granted
                // again.
                Err(error) if error.lacks_right() && !self.has_worked.load(Ordering::Relaxed) => return Err(error),
                Err(error) => {
                    self.gauges.connected(false);
                    is_away = !error.is_refusal(); // the server is reachable if it refused the statement
                    let pause = tokio::time::sleep(outage.pause(self.name(), &error));
                    tokio::select! {
                        () = pause => {}
                        // The server may refuse the end of one message alone. The others go on.
                        () = self.changed.notified(), if error.is_refusal() => {}
                        () = stop.cancelled() => {}
                    }
                }
            }
        }
        Ok(())
    }

    /// Settles finished messages, leases messages that can start soon, and starts them. If there is
    /// nothing to do, waits.
    async fn step(
        self: &Arc<Self>,
        consumer: &mut Consumer<T>,
        ear: &mut Option<Ear>,
        running: &mut JoinSet<()>,
        stop: &CancellationToken,
        is_away: bool,
    ) -> Result<Asked> {
        if self.held().hands() > 0 {
            tokio::task::yield_now().await; // handlers that are about to finish share the statement
        }
        let rings = consumer.heard();
        let lane_rings = ear.as_mut().and_then(Ear::heard);
        let mut free = self.hands.reserve(self.nr);
        self.start(&mut free, running);
        if is_away {
            self.keep_one(&mut free);
        }
        let began = Instant::now();
        let (settling, n) = {
            let mut held = self.held();
            held.fetching(began);
            (held.settle(), self.queue.shared.fitting(held.room(free.count(), self.handler.each)))
        };
        if settling.is_empty() && n == 0 {
            drop(free);
            self.held().leased(Vec::new(), Vec::new(), began);
            let _ = stop.run_until_cancelled(self.changed.notified()).await;
            return Ok(Asked::Nothing);
        }
        // A handler that ends while the statement runs may give its message back too late for this
        // reply to include it.
        let was_idle = settling.is_empty() && running.is_empty() && self.held().is_given_back();
        let linger = consumer.linger(rings).filter(|_| !self.options.drains && !stop.is_cancelled() && ear.is_none());
        let paused = linger.as_ref().map(Linger::rings);
        let mut exchange = StepExchange::new(self, settling, n, linger);
        let mut is_silent = false;
        let (dequeued, arrived, outcome) = if let Ok(exchanged) = timeout(SILENCE, &mut exchange).await {
            exchanged
        } else {
            is_silent = true;
            self.gauges.connected(false);
            self.keep_one(&mut free);
            exchange.await
        };
        let (found, is_short, has_stopped) = (dequeued.count(), dequeued.is_short_of(n), dequeued.has_stopped);
        {
            let mut held = self.held();
            held.leased(dequeued.messages, dequeued.unreadable, arrived);
            held.ahead.leased(n, found, began.elapsed());
            if held.opens_sooner() {
                self.sooner.notify_one();
            }
        }
        self.start(&mut free, running);
        drop(free);
        if ear.is_some() {
            self.give_back().await;
        }
        outcome?;
        self.has_worked.store(true, Ordering::Relaxed);
        let rings = consumer.dequeued(rings, paused.as_ref(), is_short);
        if found > 0 {
            consumer.found();
        }
        if n > 0 {
            self.hands.found(self.nr, found > 0);
        }
        // The next step leases again after many burials, or reserves more tasks for these messages.
        if has_stopped || (is_silent || is_away) && found > 0 {
            return Ok(Asked::Something);
        }
        if self.options.drains {
            if found == 0 {
                let rests = if n > 0 { self.rests().await? } else { None };
                self.drained(was_idle, rests, running, stop).await;
            }
        } else if found < n {
            // Waits: no other message is due. The worker sends the next lease after the next
            // acknowledgement or at the end of a wait.
            tokio::select! {
                outcome = consumer.idle(rings), if ear.is_none() => outcome?,
                outcome = self.hear(ear, lane_rings) => outcome?,
                () = self.until_news(false) => {}
                () = stop.cancelled() => {}
            }
        }
        Ok(Asked::Something)
    }

    /// Keeps one task, and gives the others to the other queues, because this queue's database does
    /// not answer.
    fn keep_one(&self, free: &mut Reserved<'_>) {
        self.hands.found(self.nr, false);
        free.keep(1);
    }

    /// Continues a draining worker after a lease that found no message. Ends the runner if no
    /// handler is left that could enqueue or fail; otherwise waits.
    async fn drained(
        &self,
        was_idle: bool,
        rests: Option<Duration>,
        running: &mut JoinSet<()>,
        stop: &CancellationToken,
    ) {
        let (is_empty, gives_back) = {
            let held = self.held();
            (held.is_empty(), !held.is_given_back())
        };
        if running.is_empty() && rests.is_none() {
            if was_idle && is_empty {
                stop.cancel();
            }
            if is_empty || self.holder.is_none() && !gives_back {
                return;
            } // a message still waits for the bucket of its key, or for its release
        }
        tokio::select! {
            Some(_) = running.join_next() => {}
            () = self.until_news(gives_back) => {}
            () = tokio::time::sleep(rests.unwrap_or_default()), if rests.is_some() => {}
            () = stop.cancelled() => {}
        }
    }

    fn start(self: &Arc<Self>, free: &mut Reserved<'_>, running: &mut JoinSet<()>) {
        while running.try_join_next().is_some() {}
        let (waiting, numbers) = {
            let mut held = self.held();
            let (waiting, ready) = (held.waiting(), held.ready(Instant::now()));
            let starting = ready.div_ceil(self.handler.each).min(free.count());
            (waiting, (0..starting).map(|_| held.hand()).collect::<Vec<_>>())
        };
        let begun = numbers.len().saturating_mul(self.handler.each);
        for nr in numbers {
            let hand = Hand::new(self.clone(), nr);
            free.start(1);
            running.spawn(hand.run());
        }
        self.gauges.prefetched(waiting.saturating_sub(begun));
    }

    /// Waits until a message can be settled, a waiting message may start, or, if `gives_back` is
    /// true, no release is running.
    async fn until_news(&self, gives_back: bool) {
        let is_news = || {
            let held = self.held();
            held.is_settling() || gives_back && held.is_given_back()
        };
        while !is_news() {
            self.changed.notified().await;
            if self.held().ready(Instant::now()) > 0 {
                return;
            }
        }
    }
}

/// The result of a step: whether it sent a statement. A reply shows that the database is reachable.
enum Asked {
    Nothing,
    Something,
}
