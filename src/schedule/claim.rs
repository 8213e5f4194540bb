//! Locks due schedules, and decides how many of them one transaction processes.

use std::time::Duration;

use jiff::Timestamp;

use super::{draft::Missed, expression::Expression, ticks::Ticks};
use crate::{
    error::Result,
    postgres::{db::Db, time::Time, transaction::Transaction},
};

/// The maximum number of messages in one transaction. Until it ends, the transaction locks its
/// schedules and keeps every floor from rising.
const MESSAGES: usize = 1000;
/// The stored time of the next tick if there is none.
const NEVER: Time = Time(i64::MAX);

/// A locked schedule, and its ticks to run.
pub(super) struct Claimed {
    pub tid: String,
    pub name: String,
    pub queue: String,
    /// The tick that is due, or the time after which the ticks begin, as the row stores it.
    pub first: Time,
    pub ticks: Vec<Timestamp>,
    pub next: Time,
    pub problem: Option<String>,
    /// False if this process cannot read the schedule's columns. Another process may be able to,
    /// because it has a later version or more time zones.
    pub is_read: bool,
    /// True if there are ticks that are left out, because too many were missed.
    pub has_dropped: bool,
    /// The lag of the first tick.
    pub late: Duration,
}

pub(super) type ClaimedRow = (String, String, String, String, String, String, bool, Time, Time);

/// Locks up to `most` schedules that became due at or after `since`, the earliest first.
pub(super) async fn claim(transaction: &Transaction, db: &Db, since: Time, most: usize) -> Result<Vec<ClaimedRow>> {
    let sql = db.statement("claim_schedules", include_str!("../../sql/statements/claim_schedules.sql"));
    transaction.send_text::<Vec<ClaimedRow>>(&sql.text, &[&since, &(most as i32)]).await?.await
}

/// Returns the first schedules whose messages fit in one transaction, at least one. Stops at the
/// first schedule that does not fit, so the ticks of at most one schedule are computed needlessly.
pub(super) fn fitting(all: impl IntoIterator<Item = Claimed>) -> Vec<Claimed> {
    let (mut fitting, mut messages): (Vec<Claimed>, usize) = (Vec::new(), 0);
    for claimed in all {
        messages += claimed.ticks.len();
        if messages > MESSAGES && !fitting.is_empty() {
            break;
        }
        fitting.push(claimed);
    }
    fitting
}

impl Claimed {
    /// Computes the ticks of a schedule. An expression that cannot be parsed affects only this
    /// schedule.
    pub fn of((tid, name, queue, expression, zone, missed, placed, first, clock): ClaimedRow) -> Self {
        let (ticks, late) = (Vec::new(), Duration::ZERO);
        let (problem, is_read, has_dropped) = (None, true, false);
        let mut claimed = Self { tid, name, queue, first, ticks, next: NEVER, problem, is_read, has_dropped, late };
        let now = timestamp(clock);
        match (Expression::parse(&expression, &zone), Missed::of(&missed)) {
            (Ok(expression), Ok(missed)) => {
                // If no next tick has been computed yet (`placed` is false), `first` is the time at
                // which the schedule was set, changed or resumed.
                let first = timestamp(first);
                let first = if placed { Some(first) } else { expression.next(first) };
                let ticks = match first {
                    Some(first) if first <= now => expression.ticks(missed, first, now),
                    next => Ticks { now: Vec::new(), has_dropped: false, next },
                };
                claimed.has_dropped = ticks.has_dropped;
                claimed.next = ticks.next.map_or(NEVER, time_of);
                claimed.late =
                    ticks.now.first().map_or(Duration::ZERO, |tick| now.duration_since(*tick).unsigned_abs());
                claimed.ticks = ticks.now;
            }
            (Err(error), _) | (_, Err(error)) => {
                claimed.is_read = false;
                claimed.problem = Some(error.to_string());
            }
        }
        if claimed.next == NEVER && claimed.problem.is_none() {
            claimed.problem = Some("it never ticks again: there is no such date".to_owned());
        }
        claimed
    }
}

/// The number of microseconds between 1970 and 2000, the year from which Postgres counts.
const BETWEEN_US: i64 = 946_684_800_000_000;

fn timestamp(time: Time) -> Timestamp {
    Timestamp::from_microsecond(time.0.saturating_add(BETWEEN_US)).unwrap_or(Timestamp::MAX)
}

pub(super) fn time_of(timestamp: Timestamp) -> Time {
    Time(timestamp.as_microsecond() - BETWEEN_US)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the numbers of schedules that were taken and that were inspected, for these numbers
    /// of missed ticks.
    fn looked_at(missed: &[usize]) -> (usize, usize) {
        let mut looked = 0;
        let all = missed.iter().map(|ticks| {
            looked += 1;
            let (tid, name, queue) = Default::default();
            let ticks = vec![Timestamp::UNIX_EPOCH; *ticks];
            let (problem, is_read, late) = (None, true, Duration::ZERO);
            Claimed { tid, name, queue, first: NEVER, ticks, next: NEVER, problem, is_read, has_dropped: false, late }
        });
        let fitting = fitting(all).len();
        (fitting, looked)
    }

    #[test]
    fn transaction_makes_a_bounded_number_of_messages_without_wasted_work() {
        assert_eq!(looked_at(&[]), (0, 0));
        assert_eq!(looked_at(&[1000, 1000, 1000]), (1, 2));
        assert_eq!(looked_at(&[400, 400, 200, 1, 1]), (3, 4));
        assert_eq!(looked_at(&[1; 500]), (500, 500));
        assert_eq!(looked_at(&[0, 1001, 5]), (1, 2));
        assert_eq!(looked_at(&[1001, 5]), (1, 2), "one at least");
    }
}
