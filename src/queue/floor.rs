//! The floor of every scan: a time before which no message is left to dequeue.
//!
//! Deleted rows stay in the index until no old snapshot can see them. A scan that starts at the
//! floor skips them. The floor follows commits: a candidate becomes the floor only when every
//! transaction that could still commit an older row has ended. If such a transaction has inserted
//! older rows, the floor rises only up to these rows.

pub(super) mod compaction;
pub(super) mod lanes;

use std::time::{Duration, Instant};

use crate::{
    error::Result,
    postgres::{time::Time, wire::Row},
};

/// The result of a single probe of the queue, from one snapshot.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Look {
    /// The oldest due time at or above the floor, including locked rows.
    pub oldest: Option<Time>,
    /// The smaller of `oldest` and the server's time before the snapshot.
    pub candidate: Time,
    /// The oldest transaction that is still running. All earlier transactions have ended.
    pub running: i64,
    /// The next transaction id, or an earlier one. Every transaction that may insert a row below
    /// the candidate has a lower id.
    pub next: i64,
}

impl Look {
    /// Reads a row of `sql/statements/look.sql`.
    pub fn of(row: &Row) -> Result<Self> {
        Ok(Self { oldest: row.read(0)?, candidate: row.read(1)?, running: row.read(3)?, next: row.read(4)? })
    }

    /// Returns true if the oldest message is due by the server's clock.
    pub fn is_due(&self) -> bool {
        self.oldest.is_some_and(|oldest| oldest <= self.candidate)
    }
}

/// The minimum time between probes.
const EVERY: Duration = Duration::from_millis(100);
/// The minimum time between sweeps, which search for rows below the floor.
const SWEEP_EVERY: Duration = Duration::from_secs(5);
/// The ratio of the pause after a probe or a sweep to its cost. Once there is a floor, probes take
/// at most 1 % of the server's time, and so do sweeps.
const SHARE: u32 = 100;
/// The minimum time between updates of the stored floor, from which new processes start.
const KEEP_EVERY: Duration = Duration::from_secs(10);
/// The distance by which the floor is lowered if the server's clock has stepped back. It is
/// measured from the earliest time that the clock may have shown since the last probe.
const MARGIN: Duration = Duration::from_secs(1);
/// The maximum pause after a probe or a sweep. The measured cost can have any value if the clock
/// steps during the measurement.
const SELDOM: Duration = Duration::from_secs(3600);

/// The floor of one queue in one process.
#[derive(Debug)]
pub(crate) struct Floor {
    reached: Time,
    /// A candidate, and a transaction id: the candidate becomes the floor once all earlier
    /// transactions have ended.
    pending: Option<(Time, i64)>,
    looked: Instant,
    next: Instant,
    next_sweep: Instant,
    next_keep: Instant,
}

impl Floor {
    /// Creates a floor at `reached`, the floor that another process stored.
    pub fn new(now: Instant, reached: Time) -> Self {
        Self { reached, pending: None, looked: now, next: now, next_sweep: now + SWEEP_EVERY, next_keep: now }
    }

    pub fn floor(&self) -> Time {
        self.reached
    }

    /// Returns true if a probe is due. The caller must then probe, because no other caller will.
    pub fn claim_look(&mut self, now: Instant) -> bool {
        let due = now >= self.next;
        if due {
            self.next = now + EVERY;
        }
        due
    }

    /// Returns true if a sweep is due. The caller must then sweep. If it does not, the claim
    /// expires, and another caller can sweep.
    pub fn claim_sweep(&mut self, now: Instant) -> bool {
        let due = now >= self.next_sweep;
        if due {
            self.next_sweep = now + SWEEP_EVERY;
        }
        due
    }

    /// Returns true if the stored floor is due for an update. The caller must then update it.
    pub fn claim_keep(&mut self, now: Instant) -> bool {
        let due = now >= self.next_keep && self.reached > Time::EARLIEST;
        if due {
            self.next_keep = now + KEEP_EVERY;
        }
        due
    }

    /// Updates the floor after a probe that took the time `cost` on the server.
    pub fn saw(&mut self, look: Look, now: Instant, cost: Duration) {
        // Without a floor, every dequeue passes over the dead rows, as this probe did. A second
        // probe soon afterwards is therefore worth its cost.
        let rest = if self.reached == Time::EARLIEST { cost.min(SELDOM) } else { rest(cost) };
        self.next = now + EVERY.max(rest);
        let since = now.saturating_duration_since(std::mem::replace(&mut self.looked, now));
        if look.oldest.is_some_and(|oldest| oldest < self.reached) {
            // Lowers the floor, because another consumer's probe started later but ended earlier.
            self.lower(look.oldest.unwrap_or(self.reached));
        } else if look.candidate < self.reached {
            // Lowers the floor, because the server's clock stepped back. A time that it has shown
            // since the last probe may be below the floor.
            self.lower(look.candidate.before(since + MARGIN));
        }
        match self.pending {
            Some((candidate, next)) if look.running >= next => {
                // All transactions that could write below the candidate have ended, and this
                // snapshot shows their rows.
                let reached = look.oldest.map_or(candidate, |oldest| candidate.min(oldest));
                self.reached = self.reached.max(reached);
                self.pending = Some((look.candidate, look.next));
            }
            // Starts again, because another server may count transactions from a lower id, for
            // example one that was restored. The id in `next` could be years away there.
            Some((_, next)) if look.next < next => self.pending = Some((look.candidate, look.next)),
            Some(_) => {}
            None => self.pending = Some((look.candidate, look.next)),
        }
    }

    /// Updates the floor after a part of a sweep that took the time `cost` on the server. `stray`
    /// is the due time of the oldest row found below the floor. Returns the pause before the next
    /// part.
    pub fn swept(&mut self, stray: Option<Time>, now: Instant, cost: Duration) -> Duration {
        let pause = rest(cost);
        self.next_sweep = now + pause + SWEEP_EVERY;
        if let Some(stray) = stray.filter(|stray| *stray < self.reached) {
            self.lower(stray);
        }
        pause
    }

    fn lower(&mut self, to: Time) {
        self.reached = self.reached.min(to);
        self.pending = None;
    }
}

/// Returns the pause after a probe or sweep of this cost.
fn rest(cost: Duration) -> Duration {
    cost.saturating_mul(SHARE).min(SELDOM)
}

#[cfg(test)]
#[path = "../../tests/models/floor.rs"]
mod model;

#[cfg(test)]
mod tests {
    use super::*;

    fn new() -> Floor {
        Floor::new(Instant::now(), Time::EARLIEST)
    }

    fn saw(floor: &mut Floor, oldest: Option<i64>, clock: i64, running: i64, next: i64) -> i64 {
        let candidate = Time(oldest.map_or(clock, |oldest| oldest.min(clock)));
        floor.saw(Look { oldest: oldest.map(Time), candidate, running, next }, floor.looked, Duration::ZERO);
        floor.floor().0
    }

    #[test]
    fn it_moves_once_every_writer_of_the_time_has_ended() {
        let mut floor = new();
        assert_eq!(saw(&mut floor, None, 100, 5, 9), i64::MIN, "5 to 8 may still commit a row due before 100");
        assert_eq!(saw(&mut floor, None, 200, 8, 12), i64::MIN, "8 is still there");
        assert_eq!(saw(&mut floor, None, 300, 9, 12), 100);
        assert_eq!(saw(&mut floor, None, 400, 12, 12), 300);
    }

    #[test]
    fn row_of_a_late_writer_keeps_the_floor_down() {
        let mut floor = new();
        saw(&mut floor, Some(150), 200, 5, 9);
        assert_eq!(saw(&mut floor, Some(120), 300, 9, 9), 120, "the row of the late writer, not the candidate");
    }

    #[test]
    fn a_future_row_does_not_lift_it_over_the_clock() {
        let mut floor = new();
        saw(&mut floor, Some(900), 100, 9, 9);
        assert_eq!(saw(&mut floor, Some(900), 200, 9, 9), 100);
    }

    #[test]
    fn a_row_below_brings_it_back() {
        let mut floor = new();
        saw(&mut floor, None, 100, 9, 9);
        saw(&mut floor, None, 200, 9, 9);
        assert_eq!(floor.floor(), Time(100));
        floor.swept(Some(Time(40)), Instant::now(), Duration::ZERO);
        assert_eq!(floor.floor(), Time(40));
    }

    #[test]
    fn a_clock_that_stepped_back_takes_it_along() {
        let mut floor = new();
        saw(&mut floor, None, 10_000_000, 9, 9);
        saw(&mut floor, None, 20_000_000, 9, 9);
        assert_eq!(floor.floor(), Time(10_000_000));
        assert_eq!(saw(&mut floor, None, 5_000_000, 9, 9), 4_000_000, "a second below what the clock showed");
    }

    #[test]
    fn transaction_ids_that_run_backwards_do_not_stop_it() {
        let mut floor = new();
        saw(&mut floor, None, 100, 900, 900);
        assert_eq!(saw(&mut floor, None, 200, 5, 5), i64::MIN, "another server, whose ids are lower");
        assert_eq!(saw(&mut floor, None, 300, 5, 6), 200);
    }

    #[test]
    fn second_probe_follows_soon_without_a_kept_floor() {
        let (mut floor, now, cost) = (new(), Instant::now(), Duration::from_secs(5));
        assert!(floor.claim_look(now));
        let look = |clock| Look { oldest: None, candidate: Time(clock), running: 1, next: 1 };
        floor.saw(look(1), now, cost);
        assert!(!floor.claim_look(now + cost / 2), "it takes half of the time at most");
        assert!(floor.claim_look(now + cost));
        floor.saw(look(2), now + cost, cost);
        assert_eq!(floor.floor(), Time(1));
        assert!(floor.claim_look(now + 2 * cost), "the third one begins at that floor, and costs what it should");
    }

    #[test]
    fn probes_and_sweeps_take_at_most_one_percent_of_time() {
        let mut floor = Floor::new(Instant::now(), Time(0));
        let now = Instant::now();
        assert!(floor.claim_look(now) && !floor.claim_look(now));
        let look = Look { oldest: None, candidate: Time(1), running: 1, next: 1 };
        floor.saw(look, now, Duration::from_millis(30));
        assert!(!floor.claim_look(now + Duration::from_millis(2_999)));
        assert!(floor.claim_look(now + Duration::from_secs(3)));
        assert_eq!(floor.swept(None, now, Duration::from_millis(30)), Duration::from_secs(3));
        floor.saw(look, now, Duration::MAX);
        assert!(!floor.claim_look(now + SELDOM / 2) && floor.claim_look(now + SELDOM));
    }

    #[test]
    fn a_sweep_that_died_is_followed_by_another() {
        let mut floor = new();
        let now = Instant::now();
        assert!(floor.claim_sweep(now + SWEEP_EVERY) && !floor.claim_sweep(now + SWEEP_EVERY));
        assert!(floor.claim_sweep(now + 2 * SWEEP_EVERY));
    }
}
