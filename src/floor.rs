//! The floor under every scan: a time before which nothing is left to dequeue.
//!
//! Deleted rows stay in the index until no old snapshot can see them; a scan that starts at the floor does not meet
//! them. The floor follows commits: a candidate becomes the floor only when every transaction that could still commit
//! an older row has ended, and then only as far as what those transactions left behind.

use std::time::{Duration, Instant};

use bytes::{BufMut, BytesMut};
use postgres_types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

/// A `timestamptz` as Postgres sends it: microseconds since 2000. The smallest is `-infinity`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Time(pub i64);

impl Time {
    pub const EARLIEST: Self = Self(i64::MIN);

    /// Of microseconds since 1970.
    pub fn of_unix(us: u64) -> Self {
        const BETWEEN_US: i64 = 946_684_800_000_000;
        Self(i64::try_from(us).unwrap_or(i64::MAX - 1).saturating_sub(BETWEEN_US))
    }
}

impl ToSql for Time {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        out.put_i64(self.0);
        Ok(IsNull::No)
    }

    fn accepts(ty: &Type) -> bool {
        *ty == Type::TIMESTAMPTZ
    }

    to_sql_checked!();
}

impl FromSql<'_> for Time {
    fn from_sql(_: &Type, raw: &[u8]) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Self(i64::from_be_bytes(raw.try_into()?)))
    }

    fn accepts(ty: &Type) -> bool {
        *ty == Type::TIMESTAMPTZ
    }
}

/// What one look at the queue saw, all of it in one snapshot.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Look {
    /// The oldest due time at or above the floor, of any row, locked ones included.
    pub oldest: Option<Time>,
    /// `oldest`, or the clock before the snapshot where that is earlier.
    pub candidate: Time,
    /// The oldest transaction that is still running: every one below has ended.
    pub running: i64,
    /// The next transaction id to be given out, or an earlier one, but later than the clock of the candidate.
    pub next: i64,
}

/// While messages flow, a look is made this often …
const EVERY: Duration = Duration::from_millis(100);
/// … and one from the far left this often, both less often where a look takes long: at most 1 % of the time.
const FAR_EVERY: Duration = Duration::from_secs(5);
const SHARE: u32 = 100;
/// … and at least this often: a clock that steps during a look makes its cost anything.
const SELDOM: Duration = Duration::from_secs(3600);

/// The floor of one queue in one process.
#[derive(Debug)]
pub(crate) struct Floor {
    reached: Time,
    /// A candidate, and the transaction before which all have to end first.
    pending: Option<(Time, i64)>,
    next: Instant,
    next_far: Instant,
}

/// What kind of look is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Due {
    /// From the floor on.
    Near,
    /// From the far left: finds what a clock that stepped back, or a hand in the table, put below the floor.
    Far,
}

impl Floor {
    pub fn new(now: Instant) -> Self {
        Self { reached: Time::EARLIEST, pending: None, next: now, next_far: now + FAR_EVERY }
    }

    pub fn floor(&self) -> Time {
        self.reached
    }

    /// Whether a look is due; if so, the caller makes it and nobody else does meanwhile.
    pub fn claim(&mut self, now: Instant) -> Option<Due> {
        if now >= self.next_far {
            self.next_far = now + FAR_EVERY;
            Some(Due::Far)
        } else if now >= self.next {
            self.next = now + EVERY;
            Some(Due::Near)
        } else {
            None
        }
    }

    /// Where a look of this kind starts.
    pub fn start(&self, due: Due) -> Time {
        match due {
            Due::Near => self.reached,
            Due::Far => Time::EARLIEST,
        }
    }

    /// Learns from a look that took the server `cost`.
    pub fn saw(&mut self, due: Due, look: Look, now: Instant, cost: Duration) {
        let rest = cost.saturating_mul(SHARE).min(SELDOM);
        match due {
            Due::Near => self.next = now + EVERY.max(rest),
            Due::Far => self.next_far = now + FAR_EVERY.max(rest),
        }
        if look.oldest.is_some_and(|oldest| oldest < self.reached) {
            // Below the floor: a look from the far left found it, or another consumer's look overtook this one.
            self.reached = look.oldest.unwrap_or(self.reached);
            self.pending = None;
        }
        match self.pending {
            Some((candidate, next)) if look.running >= next => {
                // All writers of that time have ended, and this snapshot shows what they left.
                let reached = look.oldest.map_or(candidate, |oldest| candidate.min(oldest));
                self.reached = self.reached.max(reached);
                self.pending = Some((look.candidate, look.next));
            }
            Some(_) => {}
            None => self.pending = Some((look.candidate, look.next)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn saw(floor: &mut Floor, oldest: Option<i64>, clock: i64, running: i64, next: i64) -> i64 {
        let candidate = Time(oldest.map_or(clock, |oldest| oldest.min(clock)));
        let look = Look { oldest: oldest.map(Time), candidate, running, next };
        floor.saw(Due::Near, look, Instant::now(), Duration::ZERO);
        floor.floor().0
    }

    #[test]
    fn it_moves_once_every_writer_of_the_time_has_ended() {
        let mut floor = Floor::new(Instant::now());
        assert_eq!(saw(&mut floor, None, 100, 5, 9), i64::MIN, "5 to 8 may still commit a row due before 100");
        assert_eq!(saw(&mut floor, None, 200, 8, 12), i64::MIN, "8 is still there");
        assert_eq!(saw(&mut floor, None, 300, 9, 12), 100);
        assert_eq!(saw(&mut floor, None, 400, 12, 12), 300);
    }

    #[test]
    fn what_a_late_writer_left_keeps_it_down() {
        let mut floor = Floor::new(Instant::now());
        saw(&mut floor, Some(150), 200, 5, 9);
        assert_eq!(saw(&mut floor, Some(120), 300, 9, 9), 120, "the row of the late writer, not the candidate");
    }

    #[test]
    fn a_future_row_does_not_lift_it_over_the_clock() {
        let mut floor = Floor::new(Instant::now());
        saw(&mut floor, Some(900), 100, 9, 9);
        assert_eq!(saw(&mut floor, Some(900), 200, 9, 9), 100);
    }

    #[test]
    fn a_row_below_brings_it_back() {
        let mut floor = Floor::new(Instant::now());
        saw(&mut floor, None, 100, 9, 9);
        saw(&mut floor, None, 200, 9, 9);
        assert_eq!(floor.floor(), Time(100));
        let look = Look { oldest: Some(Time(40)), candidate: Time(40), running: 9, next: 9 };
        floor.saw(Due::Far, look, Instant::now(), Duration::ZERO);
        assert_eq!(floor.floor(), Time(40));
    }

    #[test]
    fn looks_take_one_percent_of_the_time_at_most() {
        let now = Instant::now();
        let mut floor = Floor::new(now);
        assert_eq!(floor.claim(now), Some(Due::Near));
        let look = Look { oldest: None, candidate: Time(1), running: 1, next: 1 };
        floor.saw(Due::Near, look, now, Duration::from_millis(30));
        assert_eq!(floor.claim(now + Duration::from_millis(2_999)), None);
        assert_eq!(floor.claim(now + Duration::from_secs(3)), Some(Due::Near));
        for due in [Due::Near, Due::Far] {
            floor.saw(due, look, now, Duration::MAX);
        }
        assert_eq!(floor.claim(now + SELDOM / 2), None);
        assert_eq!(floor.claim(now + SELDOM), Some(Due::Far));
    }
}
