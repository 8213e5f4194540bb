//! The turns of consumers that take in transactions of their own.
//!
//! A notification wakes all waiting consumers, although there may be a single message. Each
//! transaction needs a connection, so the woken consumers try one after another. A try that takes a
//! message allows one more try at the same time: if there are many messages, they soon reach many
//! consumers. If a try finds nothing, the consumers that were waiting for their turns would find
//! nothing either. They do not try, and all of them pause for the same time.

use std::{
    collections::VecDeque,
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::{
    sync::oneshot,
    time::{Duration, Instant, timeout},
};

use super::{LOCKED, Pace};

/// The time after which a try no longer holds up others. It may wait for a lock or for a lost
/// server, or its task may not poll it.
const TURN: Duration = Duration::from_secs(1);

/// The turns of one queue.
#[derive(Debug, Default)]
pub(crate) struct Turns(Mutex<TurnState>);

#[derive(Debug, Default)]
struct TurnState {
    /// The number of events so far: consumers that arrived, and tries that began.
    events: u64,
    /// The number of tries that may run beside the first one.
    more: usize,
    running: Vec<RunningTry>,
    /// The consumers that wait for their turns, in order of arrival.
    waiting: VecDeque<WaitingTry>,
    /// The number of pauses since a try took a message.
    pauses: u32,
    /// The end of the last pause.
    until: Option<Instant>,
}

#[derive(Debug)]
struct WaitingTry {
    number: u64,
    /// Sends true for a turn, and false if a try is useless.
    answer: oneshot::Sender<bool>,
}

#[derive(Debug)]
struct RunningTry {
    number: u64,
    began: u64,
    since: Instant,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TryEnd {
    Took,
    FoundNothing,
    /// The try failed, or its caller has left.
    Unknown,
}

/// The right to try. Dropping it ends the turn.
#[derive(Debug)]
pub(crate) struct Turn {
    turns: Arc<Turns>,
    /// The number of the consumer's arrival; 0 if it has not waited.
    number: u64,
    end: TryEnd,
}

impl Turns {
    fn state(&self) -> MutexGuard<'_, TurnState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a turn without waiting, for a consumer that has not woken with others.
    pub fn at_once(self: &Arc<Self>) -> Turn {
        Turn { turns: self.clone(), number: 0, end: TryEnd::Unknown }
    }

    /// Waits for a turn. Returns a pause instead if a try that began after this call found nothing.
    pub async fn next(self: &Arc<Self>) -> Result<Turn, Duration> {
        let (answer, mut answered) = oneshot::channel();
        let number = self.state().arrive(answer, Instant::now());
        let turn = Turn { turns: self.clone(), number, end: TryEnd::Unknown };
        loop {
            match timeout(TURN, &mut answered).await {
                Ok(Ok(true)) => return Ok(turn),
                Ok(_) => return Err(self.pause()),
                Err(_) => self.state().start(Instant::now()), // a try may have lasted for too long
            }
        }
    }

    /// Returns the time that is left of the pause.
    fn pause(&self) -> Duration {
        let until = self.state().until;
        until.map_or(Duration::ZERO, |until| until.saturating_duration_since(Instant::now()))
    }
}

impl Turn {
    /// Ends the turn after a try that has taken a message.
    pub fn took(mut self) {
        self.end = TryEnd::Took;
    }

    /// Ends the turn after a try that found nothing. Returns the pause before the next try.
    pub fn found_nothing(mut self) -> Duration {
        self.end = TryEnd::FoundNothing;
        let turns = self.turns.clone();
        drop(self);
        turns.pause()
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.turns.state().end(self.number, self.end, Instant::now());
    }
}

impl TurnState {
    /// Adds a waiting consumer. Returns its number.
    fn arrive(&mut self, answer: oneshot::Sender<bool>, now: Instant) -> u64 {
        self.events += 1;
        let number = self.events;
        self.waiting.push_back(WaitingTry { number, answer });
        self.start(now);
        number
    }

    /// Gives turns to the consumers that have waited longest.
    fn start(&mut self, now: Instant) {
        self.running.retain(|running| now.duration_since(running.since) < TURN);
        while self.running.len() <= self.more
            && let Some(WaitingTry { number, answer }) = self.waiting.pop_front()
        {
            self.events += 1;
            if answer.send(true).is_ok() {
                self.running.push(RunningTry { number, began: self.events, since: now });
            }
        }
    }

    fn end(&mut self, number: u64, end: TryEnd, now: Instant) {
        self.waiting.retain(|waiting| waiting.number != number);
        let at = self.running.iter().position(|running| running.number == number);
        let began = at.map(|at| self.running.swap_remove(at).began);
        match end {
            TryEnd::Took => {
                self.more += 1;
                (self.pauses, self.until) = (0, None);
            }
            TryEnd::FoundNothing => {
                self.more = 0;
                self.lengthen(now);
                self.dismiss(began.unwrap_or_default());
            }
            TryEnd::Unknown if began.is_some() => self.more = 0,
            TryEnd::Unknown => {} // a consumer that has not tried
        }
        if self.running.is_empty() && self.waiting.is_empty() {
            self.more = 0;
        }
        self.start(now);
    }

    /// Begins the next pause, unless one is still running. Pauses grow; after a rest of more than
    /// `LOCKED.1` they start short again.
    fn lengthen(&mut self, now: Instant) {
        if self.until.is_some_and(|until| now < until) {
            return;
        }
        let is_first = self.until.is_none_or(|until| now.duration_since(until) > LOCKED.1);
        self.pauses = if is_first { 1 } else { self.pauses + 1 };
        self.until = Some(now + Pace::held(self.pauses));
    }

    /// Answers the consumers that arrived before a try began which has found nothing.
    fn dismiss(&mut self, began: u64) {
        let count = self.waiting.partition_point(|waiting| waiting.number < began);
        let later = self.waiting.split_off(count);
        for waiting in mem::replace(&mut self.waiting, later) {
            let _ = waiting.answer.send(false); // the consumer may have left
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::{Pin, pin};

    use futures_util::FutureExt;

    use super::*;

    fn polled<F: Future>(waiting: &mut Pin<&mut F>) -> Option<F::Output> {
        waiting.now_or_never()
    }

    #[tokio::test(start_paused = true)]
    async fn tries_run_one_after_another_until_they_take_messages() {
        let turns = Arc::new(Turns::default());
        let first = turns.next().await.expect("none is running");
        let mut second = pin!(turns.next());
        let mut third = pin!(turns.next());
        let mut fourth = pin!(turns.next());
        assert!(polled(&mut second).is_none() && polled(&mut third).is_none() && polled(&mut fourth).is_none());
        first.took();
        let second = polled(&mut second).expect("its turn").expect("a turn");
        let third = polled(&mut third).expect("one more").expect("a turn");
        assert!(polled(&mut fourth).is_none(), "two are running");
        second.took();
        let fourth = polled(&mut fourth).expect("its turn").expect("a turn");
        third.took();
        fourth.took();
        let _next = turns.next().await.expect("none is running");
        assert!(polled(&mut pin!(turns.next())).is_none(), "the number has come down by itself");
    }

    #[tokio::test(start_paused = true)]
    async fn try_that_finds_nothing_answers_the_consumers_that_waited_when_it_began() {
        let turns = Arc::new(Turns::default());
        let first = turns.next().await.expect("none is running");
        let mut second = pin!(turns.next());
        let mut third = pin!(turns.next());
        assert!(polled(&mut second).is_none() && polled(&mut third).is_none());
        assert_eq!(first.found_nothing(), LOCKED.0);
        let second = polled(&mut second).expect("its turn").expect("it came after the first try began");
        assert!(polled(&mut third).is_none());
        let mut fourth = pin!(turns.next());
        assert!(polled(&mut fourth).is_none());
        assert_eq!(second.found_nothing(), LOCKED.0, "the pause goes on");
        assert_eq!(polled(&mut third).expect("answered").expect_err("useless"), LOCKED.0);
        assert!(polled(&mut fourth).expect("its turn").is_ok(), "it came after the second try began");
    }

    #[tokio::test(start_paused = true)]
    async fn pause_grows_with_each_pause_until_a_try_takes_a_message() {
        let turns = Arc::new(Turns::default());
        let mut pauses = Vec::new();
        for _ in 0..12 {
            // Two consumers try at the same time, as after work on a message.
            let pause = turns.at_once().found_nothing();
            assert_eq!(turns.at_once().found_nothing(), pause);
            pauses.push(pause);
            tokio::time::advance(pause).await;
        }
        assert!(pauses.is_sorted() && pauses[0] == LOCKED.0 && pauses[11] == LOCKED.1, "{pauses:?}");
        turns.at_once().took();
        assert_eq!(turns.at_once().found_nothing(), LOCKED.0);
        tokio::time::advance(LOCKED.0).await;
        assert_eq!(turns.at_once().found_nothing(), 2 * LOCKED.0);
        tokio::time::advance(2 * LOCKED.1).await;
        assert_eq!(turns.at_once().found_nothing(), LOCKED.0, "that was long ago");
    }

    #[tokio::test(start_paused = true)]
    async fn consumers_that_leave_or_hang_hold_up_no_other() {
        let turns = Arc::new(Turns::default());
        let failed = turns.next().await.expect("none is running");
        let mut second = pin!(turns.next());
        {
            let mut leaves = pin!(turns.next());
            assert!(polled(&mut leaves).is_none() && polled(&mut second).is_none());
        }
        drop(failed);
        let _hangs = polled(&mut second).expect("its turn").expect("a turn");
        let mut unpolled = pin!(turns.next());
        assert!(polled(&mut unpolled).is_none());
        let (began, third) = (Instant::now(), turns.next());
        let _third = timeout(3 * TURN, third).await.expect("in time").expect("a turn");
        assert!(began.elapsed() >= 2 * TURN, "one more for each time");
    }
}
