//! The wait list of one queue. Waiting consumers of this process share one probe for the next due
//! message, one notification that wakes them, and one statement that dequeues. A hundred waiting
//! consumers therefore cost as much as one.
//!
//! A consumer enters the list as a waiter, and a poller runs while there are waiters
//! (`verbs/wait.rs`). When a message may be due, the poller dequeues for all waiters. A waiter that
//! receives no message stays in the list.

use std::sync::Arc;

use tokio::{
    sync::{Notify, watch},
    time::{Duration, Instant, sleep_until},
};

use crate::{
    error::Error,
    postgres::db::Heard,
    queue::{
        batch::{
            batcher::{Batcher, Permit, Running, Waiting},
            dequeues::{Batches, DequeueMode},
        },
        wait::{
            Pace, SAFETY_POLL, Wait,
            hooks::Hooks,
            probes::Probes,
            turns::Turns,
            waiter::{Armed, Waiter, WakeUp},
        },
    },
};

/// A sleep without a practical limit.
const FAR: Duration = Duration::from_secs(86_400);

/// The waiters of one queue, in order of arrival.
pub(crate) struct Waiters {
    list: Vec<Waiter>,
    /// Waiters whose consumers have left. Their hooks are the user's code, so they are dropped
    /// outside the lock.
    gone: Vec<Waiter>,
    arrived: u64,
    pace: Pace,
    swept: Option<Instant>,
}

impl Default for Waiters {
    fn default() -> Self {
        Self { list: Vec::new(), gone: Vec::new(), arrived: 0, pace: Pace::new(Wait::Notify), swept: None }
    }
}

impl Waiting for Waiters {
    type Call = Waiter;
    /// One round of the poller, for all waiters.
    type Work = ();

    fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    fn next(&mut self, _: &Running) -> Option<((), usize)> {
        self.gone.extend(self.list.extract_if(.., |waiter| waiter.answer.is_closed()));
        (!self.is_empty()).then_some(((), 0))
    }

    fn abandoned(&mut self) -> Vec<Waiter> {
        std::mem::take(&mut self.list)
    }

    /// Drops the waiter, which closes its channel. Its consumer then enters the list again.
    fn fail(waiter: Waiter) {
        drop(waiter);
    }
}

/// The waiting consumers of one queue.
#[derive(Default)]
pub(crate) struct WaitList {
    waiters: Arc<Batcher<Waiters>>,
    /// Notified when a waiter arrives, and when the last one leaves.
    changed: Arc<Notify>,
    /// The probes of waiters that have woken together.
    pub probes: Probes,
    /// The turns of waiters that take by themselves, once they have woken.
    pub turns: Arc<Turns>,
}

impl WaitList {
    /// Adds a waiter. If no poller runs, also returns a new one, which the caller must start.
    pub fn enter(&self, waiter: Waiter) -> (Entry, Option<Poller>) {
        let mut nr = 0;
        let permit = self.waiters.join(|waiters| {
            waiters.arrived += 1;
            nr = waiters.arrived;
            waiters.list.push(Waiter { nr, ..waiter });
        });
        self.changed.notify_one();
        let entry = Entry { waiters: self.waiters.clone(), changed: self.changed.clone(), nr };
        let poller = |permit| Poller { permit, changed: self.changed.clone(), heard: None, rings: None };
        (entry, permit.map(poller))
    }
}

/// A waiter's entry in the list. Dropping it removes the waiter.
pub(crate) struct Entry {
    waiters: Arc<Batcher<Waiters>>,
    changed: Arc<Notify>,
    nr: u64,
}

impl Entry {
    /// Removes the waiter. Returns `false` if the waiter is no longer in the list, because it was
    /// answered or because a statement for it is running.
    pub fn leave(&self) -> bool {
        let mut state = self.waiters.state();
        let list = &mut state.waiting.list;
        let at = list.iter().position(|waiter| waiter.nr == self.nr);
        let left = at.map(|at| list.remove(at));
        let is_last = list.is_empty();
        drop(state);
        if is_last && left.is_some() {
            self.changed.notify_one();
        }
        left.is_some()
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.leave();
    }
}

/// A poller for all waiters of a list. If it ends early, by a panic or with its runtime, its
/// waiters are answered and may start another poller.
pub(crate) struct Poller {
    permit: Permit<Waiters>,
    changed: Arc<Notify>,
    heard: Option<watch::Receiver<Heard>>,
    /// The number of notifications at the last call of `hear`.
    rings: Option<u64>,
}

impl Poller {
    /// Returns true if there are waiters. Otherwise the poller must end.
    pub fn goes_on(&mut self) -> bool {
        let goes_on = self.permit.next().is_some();
        let gone = std::mem::take(&mut self.permit.state().waiting.gone);
        drop(gone);
        goes_on
    }

    pub fn is_deserted(&self) -> bool {
        self.permit.state().waiting.is_empty()
    }

    /// Marks all notifications received so far as seen. A later notification ends the next sleep.
    pub fn hear(&mut self) {
        if self.heard.as_ref().is_none_or(|heard| heard.has_changed().is_err()) {
            self.heard = self.permit.state().waiting.list.iter().find_map(|waiter| match &waiter.alarm {
                Armed::Notification { heard, .. } => Some(heard.clone()),
                Armed::At { .. } => None,
            });
        }
        self.rings = self.heard.as_mut().map(|heard| heard.borrow_and_update().rings);
    }

    /// Returns true if a notification arrived between a consumer's last dequeue and its entry into
    /// the list, or if a consumer's poll interval has ended.
    pub fn missed(&self) -> bool {
        let now = Instant::now();
        self.permit.state().waiting.list.iter().any(|waiter| match waiter.alarm {
            Armed::Notification { before, .. } => Some(before) != self.rings,
            Armed::At { next, .. } => next <= now,
        })
    }

    /// Returns true if notifications wake any of the waiters.
    pub fn listens(&self) -> bool {
        self.permit.state().waiting.list.iter().any(Waiter::listens)
    }

    /// Returns true if a sweep is due. The caller must then sweep.
    pub fn claim_sweep(&mut self) -> bool {
        let (mut state, now) = (self.permit.state(), Instant::now());
        let is_due = now >= *state.waiting.swept.get_or_insert(now) + SAFETY_POLL;
        if is_due {
            state.waiting.swept = Some(now);
        }
        is_due
    }

    /// Wakes the waiters that dequeue by themselves, because a message may be due.
    pub fn wake_others(&mut self) {
        let mut state = self.permit.state();
        let (others, list) =
            std::mem::take(&mut state.waiting.list).into_iter().partition(|waiter| waiter.messages.is_none());
        state.waiting.list = list;
        drop(state);
        Vec::into_iter(others).for_each(|waiter: Waiter| waiter.answer(Ok(WakeUp::MayBeDue)));
    }

    /// Takes all waiters out of the list, grouped by their modes. [`Poller::answer`] puts them
    /// back.
    pub fn groups(&mut self) -> Vec<(DequeueMode, Vec<Waiter>)> {
        let waiters = std::mem::take(&mut self.permit.state().waiting.list);
        let mut groups: Vec<(DequeueMode, Vec<Waiter>)> = Vec::new();
        for waiter in waiters {
            let Some((_, how)) = waiter.messages.filter(|_| !waiter.answer.is_closed()) else { continue };
            match groups.iter_mut().find(|(known, _)| *known == how) {
                Some((_, waiters)) => waiters.push(waiter),
                None => groups.push((how, vec![waiter])),
            }
        }
        groups
    }

    /// Sends each waiter, in order, one part of the messages that a statement found. Waiters
    /// without a message return to the list if their time is not up.
    pub fn answer(&mut self, waiters: Vec<Waiter>, parts: Vec<Batches>, is_full: bool) {
        let drained = self.rings.filter(|_| !is_full);
        let (now, mut left, mut parts, mut found) = (Instant::now(), Vec::new(), parts.into_iter(), false);
        for mut waiter in waiters {
            match parts.next() {
                Some(part) if part.size > 0 => {
                    found = true;
                    waiter.answer(Ok(WakeUp::Messages(part, drained)));
                }
                _ => {
                    waiter.is_announced = false;
                    match &mut waiter.alarm {
                        Armed::At { next, every } => *next = now + *every,
                        Armed::Notification { before, .. } => *before = self.rings.unwrap_or(*before),
                    }
                    left.push(waiter);
                }
            }
        }
        let mut state = self.permit.state();
        let waiting = &mut state.waiting;
        if found {
            waiting.pace.found(now.into_std(), None);
        }
        // This check needs the lock. A consumer whose time ended while its waiter was out of the
        // list could not leave, so the check answers it. Consumers whose waiters are back in the
        // list can leave by themselves.
        let late: Vec<_> = left.extract_if(.., |waiter| waiter.until.is_some_and(|by| by <= Instant::now())).collect();
        left.append(&mut waiting.list); // newer waiters follow them
        waiting.list = left;
        drop(state);
        Vec::into_iter(late).for_each(|waiter: Waiter| waiter.answer(Ok(WakeUp::TimeIsUp)));
    }

    /// Answers all waiters with an error.
    pub fn fail(&mut self, error: &Error) {
        let waiters = std::mem::take(&mut self.permit.state().waiting.list);
        for waiter in waiters {
            waiter.answer(Err(error.clone()));
        }
    }

    /// Sleeps until a message may be due, or until the next probe. Returns true if a message may be
    /// due. According to the last probe, the next message is due in `due_in` seconds. There was a
    /// probe only if `listened` is true.
    pub async fn sleep(&mut self, listened: bool, due_in: Option<f64>) -> bool {
        let (until, then_due) = if listened {
            let hears = self.heard.as_ref().is_some_and(|heard| heard.borrow().hearing);
            let longest = self.permit.state().waiting.pace.looked(due_in, hears);
            (Instant::now() + longest, due_in.is_some_and(|due_in| due_in <= longest.as_secs_f64()))
        } else {
            (Instant::now() + FAR, false)
        };
        loop {
            let (mut next, mut hooks) = (None, Vec::new());
            {
                let mut state = self.permit.state();
                let list = &mut state.waiting.list;
                if list.is_empty() || list.iter().any(Waiter::listens) != listened {
                    return false;
                }
                for waiter in list {
                    match waiter.alarm {
                        Armed::At { next: at, .. } => next = Some(next.map_or(at, |next: Instant| next.min(at))),
                        Armed::Notification { .. } if !std::mem::replace(&mut waiter.is_announced, true) => {
                            hooks.push(waiter.hooks.clone());
                        }
                        Armed::Notification { .. } => {}
                    }
                }
            }
            hooks.iter().for_each(Hooks::before_wait);
            tokio::select! {
                still = notified(&mut self.heard) => return still,
                () = sleep_until(next.map_or(until, |next| next.min(until))) => {
                    return then_due || next.is_some_and(|next| next <= Instant::now());
                }
                () = self.changed.notified() => if self.missed() {
                    return true;
                },
            }
        }
    }
}

/// Waits for a notification. Returns `false` if the listener is gone.
async fn notified(heard: &mut Option<watch::Receiver<Heard>>) -> bool {
    match heard {
        Some(heard) => heard.changed().await.is_ok(),
        None => std::future::pending().await,
    }
}
