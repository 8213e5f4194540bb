//! Consumers of one queue that wait in this process share a lookout: one look at what is due next,
//! one notification that wakes, one statement for all of them. So a hundred that wait cost what one
//! costs.
//!
//! A consumer takes a seat, and a watch is kept while there are seats (`watch.rs`). When something
//! may be due, the watch dequeues for all of them together; a consumer that gets nothing keeps its
//! seat.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::{
    sync::{Notify, oneshot, watch},
    time::{Duration, Instant, sleep_until},
};

use crate::{
    error::{Error, Result},
    postgres::db::{Heard, Subscription},
    queue::{
        batch::share::{Batches, Dequeue, PAGE},
        wait::{Pace, SAFETY_POLL, Wait, hooks::Hooks},
    },
};

/// As good as never.
const FAR: Duration = Duration::from_secs(86_400);

/// A consumer that is about to wait.
pub(crate) struct Waiter<'a> {
    /// Messages to dequeue for it, and how; none where it only wants to know that something may be
    /// due.
    pub wants: Option<(usize, Dequeue)>,
    pub wakes: Wakes<'a>,
    pub hooks: &'a Hooks,
}

/// What ends its wait.
pub(crate) enum Wakes<'a> {
    /// The end of an interval, again and again.
    Every(Duration),
    /// A notification that was not among those heard before its last dequeue, which left nothing
    /// due.
    Ring(&'a Subscription, u64),
}

/// How a wait ended.
#[derive(Debug)]
pub(crate) enum Woken {
    /// By messages. Unless more may be due: notifications heard before the dequeue, which left
    /// nothing.
    With(Batches, Option<u64>),
    /// Something may be due.
    Told,
    /// The time is up.
    Late,
}

/// A consumer's place.
pub(crate) struct Seat {
    nr: u64,
    wants: Option<(usize, Dequeue)>,
    wakes: Wake,
    until: Option<Instant>,
    hooks: Hooks,
    /// Its hooks know that it waits.
    is_told: bool,
    answer: oneshot::Sender<Result<Woken>>,
}

enum Wake {
    At { next: Instant, every: Duration },
    Ring { heard: watch::Receiver<Heard>, before: u64 },
}

impl Seat {
    pub fn of(waiter: Waiter<'_>, until: Option<Instant>, answer: oneshot::Sender<Result<Woken>>) -> Self {
        let Waiter { wants, wakes, hooks } = waiter;
        let wakes = match wakes {
            Wakes::Every(every) => Wake::At { next: Instant::now() + every, every },
            Wakes::Ring(subscription, before) => Wake::Ring { heard: subscription.heard.clone(), before },
        };
        let wants = wants.map(|(n, how)| (n.min(PAGE), how));
        Self { nr: 0, wants, wakes, until, hooks: hooks.clone(), is_told: false, answer }
    }

    /// Messages that it asks for.
    pub fn n(&self) -> usize {
        self.wants.map_or(0, |(n, _)| n)
    }

    pub fn answer(self, answer: Result<Woken>) {
        let _ = self.answer.send(answer); // dropped there, given back
    }

    fn listens(&self) -> bool {
        matches!(self.wakes, Wake::Ring { .. })
    }
}

/// The consumers of one queue that wait.
pub(crate) struct Lookout {
    state: Mutex<State>,
    /// Told of each new seat, and when the last one is left.
    changed: Notify,
}

struct State {
    /// In the order of arrival.
    seats: Vec<Seat>,
    seated: u64,
    is_watched: bool,
    pace: Pace,
    swept: Option<Instant>,
}

impl Default for Lookout {
    fn default() -> Self {
        let state =
            State { seats: Vec::new(), seated: 0, is_watched: false, pace: Pace::new(Wait::Notify), swept: None };
        Self { state: Mutex::new(state), changed: Notify::new() }
    }
}

impl Lookout {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a seat, and the watch if nobody keeps it: then the caller has to start it.
    pub(crate) fn sit(self: &Arc<Self>, seat: Seat) -> (Place, Option<Watch>) {
        let mut state = self.state();
        state.seated += 1;
        let nr = state.seated;
        state.seats.push(Seat { nr, ..seat });
        let starts = !std::mem::replace(&mut state.is_watched, true);
        drop(state);
        self.changed.notify_one();
        let watch = starts.then(|| Watch { lookout: self.clone(), heard: None, rings: None, is_over: false });
        (Place { lookout: self.clone(), nr }, watch)
    }
}

/// A taken seat; left when this is dropped.
pub(crate) struct Place {
    lookout: Arc<Lookout>,
    nr: u64,
}

impl Place {
    /// Says whether it was still there: else a statement for it is under way, or it was answered.
    pub fn leave(&self) -> bool {
        let mut state = self.lookout.state();
        let at = state.seats.iter().position(|seat| seat.nr == self.nr);
        let left = at.map(|at| state.seats.remove(at));
        let is_last = state.seats.is_empty();
        drop(state);
        if is_last && left.is_some() {
            self.lookout.changed.notify_one();
        }
        left.is_some()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.leave();
    }
}

/// The watch for the seats of a lookout. However it ends, with its runtime or by a panic, whoever
/// waits is told and may begin another.
pub(crate) struct Watch {
    lookout: Arc<Lookout>,
    heard: Option<watch::Receiver<Heard>>,
    /// Notifications heard when it listened last.
    rings: Option<u64>,
    is_over: bool,
}

impl Drop for Watch {
    fn drop(&mut self) {
        if !self.is_over {
            let mut state = self.lookout.state();
            state.is_watched = false;
            let seats = std::mem::take(&mut state.seats);
            drop(state);
            drop(seats); // each is told
        }
    }
}

impl Watch {
    /// Whether anybody waits. If not, the watch is over.
    pub fn goes_on(&mut self) -> bool {
        let mut state = self.lookout.state();
        let (gone, seats) = std::mem::take(&mut state.seats).into_iter().partition(|seat| seat.answer.is_closed());
        state.seats = seats;
        self.is_over = state.seats.is_empty();
        state.is_watched = !self.is_over;
        drop(state);
        drop::<Vec<Seat>>(gone); // with hooks of the user's, which may do anything
        !self.is_over
    }

    pub fn is_deserted(&self) -> bool {
        self.lookout.state().seats.is_empty()
    }

    /// Takes note of what was heard so far; what is heard from now on ends the next sleep.
    pub fn hear(&mut self) {
        if self.heard.as_ref().is_none_or(|heard| heard.has_changed().is_err()) {
            self.heard = self.lookout.state().seats.iter().find_map(|seat| match &seat.wakes {
                Wake::Ring { heard, .. } => Some(heard.clone()),
                Wake::At { .. } => None,
            });
        }
        self.rings = self.heard.as_mut().map(|heard| heard.borrow_and_update().rings);
    }

    /// Whether a notification came between somebody's last dequeue and the seat, or an interval has
    /// ended.
    pub fn missed(&self) -> bool {
        let now = Instant::now();
        self.lookout.state().seats.iter().any(|seat| match seat.wakes {
            Wake::Ring { before, .. } => Some(before) != self.rings,
            Wake::At { next, .. } => next <= now,
        })
    }

    /// Whether notifications wake anybody.
    pub fn listens(&self) -> bool {
        self.lookout.state().seats.iter().any(Seat::listens)
    }

    /// Whether it is time for a sweep; if so, the caller makes it.
    pub fn claim_sweep(&mut self) -> bool {
        let (mut state, now) = (self.lookout.state(), Instant::now());
        let is_due = now >= *state.swept.get_or_insert(now) + SAFETY_POLL;
        if is_due {
            state.swept = Some(now);
        }
        is_due
    }

    /// Tells those that do not dequeue here that something may be due.
    pub fn tell(&mut self) {
        let mut state = self.lookout.state();
        let (told, others) = std::mem::take(&mut state.seats).into_iter().partition(|seat| seat.wants.is_none());
        state.seats = others;
        drop(state);
        Vec::into_iter(told).for_each(|seat: Seat| seat.answer(Ok(Woken::Told)));
    }

    /// All seats, by the way in which they dequeue. They are away until [`Watch::deal`].
    pub fn calls(&mut self) -> Vec<(Dequeue, Vec<Seat>)> {
        let seats = std::mem::take(&mut self.lookout.state().seats);
        let mut calls: Vec<(Dequeue, Vec<Seat>)> = Vec::new();
        for seat in seats {
            let Some((_, how)) = seat.wants.filter(|_| !seat.answer.is_closed()) else { continue };
            match calls.iter_mut().find(|(known, _)| *known == how) {
                Some((_, seats)) => seats.push(seat),
                None => calls.push((how, vec![seat])),
            }
        }
        calls
    }

    /// Hands out what a statement found: a share for each of the first seats. Those without a
    /// message are seats again, if they have time left.
    pub fn deal(&mut self, seats: Vec<Seat>, shares: Vec<Batches>, is_full: bool) {
        let drained = self.rings.filter(|_| !is_full);
        let (now, mut left, mut shares, mut found) = (Instant::now(), Vec::new(), shares.into_iter(), false);
        for mut seat in seats {
            match shares.next() {
                Some(share) if share.size > 0 => {
                    found = true;
                    seat.answer(Ok(Woken::With(share, drained)));
                }
                _ => {
                    seat.is_told = false;
                    match &mut seat.wakes {
                        Wake::At { next, every } => *next = now + *every,
                        Wake::Ring { before, .. } => *before = self.rings.unwrap_or(*before),
                    }
                    left.push(seat);
                }
            }
        }
        let mut state = self.lookout.state();
        if found {
            state.pace.found(now.into_std());
        }
        // Asked while nobody can leave: whoever could not, because the seat was away, is told; and
        // whoever sits down again can.
        let late: Vec<_> = left.extract_if(.., |seat| seat.until.is_some_and(|by| by <= Instant::now())).collect();
        left.append(&mut state.seats); // whoever came meanwhile sits behind
        state.seats = left;
        drop(state);
        Vec::into_iter(late).for_each(|seat: Seat| seat.answer(Ok(Woken::Late)));
    }

    /// Tells everybody of an error.
    pub fn fail(&mut self, error: &Error) {
        let seats = std::mem::take(&mut self.lookout.state().seats);
        for seat in seats {
            seat.answer(Err(error.clone()));
        }
    }

    /// Sleeps until something may be due, or until it is time to look again. Says whether something
    /// may be due. The next message is due in so many seconds, going by a look; not known where
    /// nobody listens.
    pub async fn sleep(&mut self, due_in: Option<f64>) -> bool {
        let listened = self.listens();
        let (until, then_due) = if listened {
            let hears = self.heard.as_ref().is_some_and(|heard| heard.borrow().hearing);
            let longest = self.lookout.state().pace.looked(due_in, hears);
            (Instant::now() + longest, due_in.is_some_and(|due_in| due_in <= longest.as_secs_f64()))
        } else {
            (Instant::now() + FAR, false)
        };
        loop {
            let (mut next, mut hooks) = (None, Vec::new());
            {
                let mut state = self.lookout.state();
                if state.seats.is_empty() || state.seats.iter().any(Seat::listens) != listened {
                    return false;
                }
                for seat in &mut state.seats {
                    match seat.wakes {
                        Wake::At { next: at, .. } => next = Some(next.map_or(at, |next: Instant| next.min(at))),
                        Wake::Ring { .. } if !std::mem::replace(&mut seat.is_told, true) => {
                            hooks.push(seat.hooks.clone());
                        }
                        Wake::Ring { .. } => {}
                    }
                }
            }
            hooks.iter().for_each(Hooks::before_wait);
            tokio::select! {
                still = rung(&mut self.heard) => return still,
                () = sleep_until(next.map_or(until, |next| next.min(until))) => {
                    return then_due || next.is_some_and(|next| next <= Instant::now());
                }
                () = self.lookout.changed.notified() => if self.missed() {
                    return true;
                },
            }
        }
    }
}

/// Until a notification comes, or, then it is not so, nobody hears any more.
async fn rung(heard: &mut Option<watch::Receiver<Heard>>) -> bool {
    match heard {
        Some(heard) => heard.changed().await.is_ok(),
        None => std::future::pending().await,
    }
}
