//! The time limits of a call. The event loop begins handlers, and a handler that blocks the loop
//! delays all others. So the time limit of a handler counts from its beginning, and a call whose
//! handler has not begun for a lease time is withdrawn. The outcome of a handler also waits for the
//! loop, so the handler itself ends the limit, in its coroutine or in its thread.

use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::Duration,
};

use tokio::time::Instant;

/// The minimum time that a call waits for its handler, however short the leases are.
const LEAST: Duration = Duration::from_secs(1);
/// The maximum of each limit: thirty years. Adding it to the current time does not overflow.
const MOST: Duration = Duration::from_secs(86_400 * 365 * 30);

/// The minimum time between checks of a call whose handler has not begun.
const PAUSE: Duration = Duration::from_millis(10);

#[derive(Debug, Clone, Copy)]
pub struct CallLimits {
    /// The time that a call waits for the beginning of its handler.
    wait: Duration,
    /// The time limit of the handler.
    pub timeout: Option<Duration>,
    /// True if the event loop decides how the messages of a handler that took too long end.
    pub asks: bool,
}

impl CallLimits {
    pub fn of(lease: Duration, timeout: Option<Duration>, asks: bool) -> Self {
        Self { wait: lease.clamp(LEAST, MOST), timeout: timeout.map(|timeout| timeout.min(MOST)), asks }
    }
}

/// The state of a call whose handler has not begun.
const WAITS: u64 = 0;
/// The state of a call that the worker gave up before its handler began.
const GIVEN_UP: u64 = u64::MAX - 1;
/// The state of a call that waited too long for its handler, and releases its messages.
const WITHDRAWN: u64 = u64::MAX;

/// The beginning of a handler. The event loop and the call share it.
pub struct Beginning {
    called: Instant,
    /// `WAITS`, `GIVEN_UP`, `WITHDRAWN`, or the nanoseconds from the call to the beginning.
    state: AtomicU64,
    /// True once the handler has ended. Its outcome may still wait for the loop.
    has_ended: AtomicBool,
}

/// The next step of a call that has no answer yet.
pub enum NextStep {
    /// Checks the limits again at this time.
    CheckAt(Instant),
    /// Waits for the answer without a limit.
    WaitForAnswer,
    /// Gives up the call, because its handler has not begun, and will not begin.
    Withdraw,
    /// Gives up the call, or asks the event loop, because its handler has taken too long.
    TimeOut,
}

impl Beginning {
    pub fn new() -> Self {
        Self { called: Instant::now(), state: AtomicU64::new(WAITS), has_ended: AtomicBool::new(false) }
    }

    /// Records that the handler begins. Returns false if the call was given up or withdrawn.
    pub fn begin(&self) -> bool {
        let after = (self.called.elapsed().as_nanos() as u64).clamp(WAITS + 1, GIVEN_UP - 1);
        !matches!(self.leave_wait(after), Err(GIVEN_UP | WITHDRAWN))
    }

    /// Keeps the handler from beginning, because the worker no longer waits for it. Has no effect
    /// once the handler has begun.
    pub fn give_up(&self) {
        let _ = self.leave_wait(GIVEN_UP);
    }

    /// Ends the time limit, because the handler has ended. Handlers in processes have no limit
    /// here, because Python limits them.
    pub fn end(&self) {
        self.has_ended.store(true, Ordering::Release);
    }

    /// Returns true if the call waited too long for its handler.
    pub fn is_withdrawn(&self) -> bool {
        self.state.load(Ordering::Acquire) == WITHDRAWN
    }

    pub fn next_step(&self, limits: &CallLimits) -> NextStep {
        let now = Instant::now();
        let begun = match self.state.load(Ordering::Acquire) {
            WAITS => None,
            GIVEN_UP => return NextStep::WaitForAnswer, // its messages are being released
            WITHDRAWN => return NextStep::Withdraw,
            after => Some(self.called + Duration::from_nanos(after)),
        };
        let until = self.called + limits.wait;
        match (begun, limits.timeout) {
            (None, None) if now < until => NextStep::CheckAt(until),
            (None, Some(timeout)) if now < until => {
                // A handler that begins later exceeds its limit then, or a `PAUSE` earlier.
                let first = self.called + timeout;
                let next = if now < first { first } else { now + timeout.max(PAUSE) };
                NextStep::CheckAt(next.min(until))
            }
            (None, _) => match self.leave_wait(WITHDRAWN) {
                Ok(_) => NextStep::Withdraw,
                Err(_) => NextStep::CheckAt(now), // it has begun just now
            },
            (Some(_), None) => NextStep::WaitForAnswer,
            (Some(_), Some(_)) if self.has_ended.load(Ordering::Acquire) => NextStep::WaitForAnswer,
            (Some(begun), Some(timeout)) if begun + timeout <= now => NextStep::TimeOut,
            (Some(begun), Some(timeout)) => NextStep::CheckAt(begun + timeout),
        }
    }

    /// Sets the state, if the handler has not begun. Returns the state before that.
    fn leave_wait(&self, state: u64) -> Result<u64, u64> {
        self.state.compare_exchange(WAITS, state, Ordering::AcqRel, Ordering::Acquire)
    }
}
