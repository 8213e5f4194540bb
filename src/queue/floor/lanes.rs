//! The floors of a queue, one for each of its lanes. Most queues have a single lane; a queue with
//! priorities has one lane per priority. With separate floors, a backlog in one lane does not hold
//! down the floor of another lane.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::{Duration, Instant},
};

use bytes::BytesMut;
use postgres_types::{IsNull, ToSql, Type, to_sql_checked};

use crate::{
    postgres::{db::Db, time::Time},
    queue::floor::{Floor, Look},
};

/// The floors of one queue in one process, by lane. The first floor's timers decide when to probe,
/// to sweep and to store.
#[derive(Debug)]
pub(crate) struct Lanes(Vec<Floor>);

/// The floors in the form that the queue's functions accept: one time, or one time per lane.
#[derive(Debug, Clone)]
pub(crate) enum Reached {
    One(Time),
    Each(Vec<Time>),
}

impl Reached {
    pub fn ty(&self) -> Type {
        match self {
            Self::One(_) => Type::TIMESTAMPTZ,
            Self::Each(_) => Type::TIMESTAMPTZ_ARRAY,
        }
    }
}

impl ToSql for Reached {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match self {
            Self::One(time) => time.to_sql(ty, out),
            Self::Each(times) => times.to_sql(ty, out),
        }
    }

    fn accepts(ty: &Type) -> bool {
        *ty == Type::TIMESTAMPTZ || *ty == Type::TIMESTAMPTZ_ARRAY
    }

    to_sql_checked!();
}

impl Lanes {
    fn new(now: Instant, reached: Time, lanes: usize) -> Self {
        Self((0..lanes.max(1)).map(|_| Floor::new(now, reached)).collect())
    }

    pub fn reached(&self) -> Reached {
        match &*self.0 {
            [only] => Reached::One(only.floor()),
            all => Reached::Each(all.iter().map(Floor::floor).collect()),
        }
    }

    /// Returns true if a probe is due. The caller must then probe.
    pub fn claim_look(&mut self, now: Instant) -> bool {
        self.0.first_mut().is_some_and(|first| first.claim_look(now))
    }

    /// Returns true if a sweep is due. The caller must then sweep.
    pub fn claim_sweep(&mut self, now: Instant) -> bool {
        self.0.first_mut().is_some_and(|first| first.claim_sweep(now))
    }

    /// Returns the lowest floor, if it is due to be stored for other processes.
    pub fn claim_keep(&mut self, now: Instant) -> Option<Time> {
        let lowest = self.0.iter().map(Floor::floor).min()?;
        (lowest > Time::EARLIEST && self.0.first_mut()?.claim_keep(now)).then_some(lowest)
    }

    /// Updates the floors after a probe. `looks` has one entry per lane; `cost` is the time that
    /// the probe took on the server.
    pub fn saw(&mut self, looks: &[Look], now: Instant, cost: Duration) {
        #[cfg(trunkline_mutant)]
        let urgent: Vec<Look> = looks.iter().map(|_| looks[looks.len() - 1]).collect();
        #[cfg(trunkline_mutant)]
        let looks = if crate::error::mutant::is("one-floor-for-all-lanes") { &*urgent } else { looks };
        for (floor, look) in self.0.iter_mut().zip(looks) {
            floor.saw(*look, now, cost);
        }
    }

    /// Updates the floors after a part of a sweep. Lowers each floor that is above `stray` to that
    /// time. Returns the pause before the next part.
    pub fn swept(&mut self, stray: Option<Time>, now: Instant, cost: Duration) -> Duration {
        self.0.iter_mut().map(|floor| floor.swept(stray, now, cost)).max().unwrap_or_default()
    }
}

#[derive(Default)]
struct Queues(Mutex<HashMap<String, Weak<Mutex<Lanes>>>>);

impl Db {
    /// Returns the floors of a queue in this process. They start at the floor that another process
    /// stored.
    pub(crate) fn lanes_of(&self, queue: &str, reached: Time, lanes: usize) -> Arc<Mutex<Lanes>> {
        let queues = self.attached::<Queues>();
        let mut queues = queues.0.lock().unwrap_or_else(PoisonError::into_inner);
        queues.retain(|_, lanes| lanes.strong_count() > 0);
        // Ignores the floors of a dropped queue with the same name and a different number of lanes.
        let known = queues.get(queue).and_then(Weak::upgrade);
        let is_same = |known: &Arc<Mutex<Lanes>>| known.lock().unwrap_or_else(PoisonError::into_inner).0.len() == lanes;
        if let Some(known) = known.filter(is_same) {
            return known;
        }
        let new = Arc::new(Mutex::new(Lanes::new(Instant::now(), reached, lanes)));
        queues.insert(queue.to_owned(), Arc::downgrade(&new));
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_lane_has_its_floor_and_the_lowest_is_kept() {
        let now = Instant::now();
        let mut lanes = Lanes::new(now, Time(0), 2);
        let look = |oldest, clock: i64| Look {
            oldest: Some(Time(oldest)),
            candidate: Time(clock.min(oldest)),
            running: 9,
            next: 9,
        };
        // The first lane has a backlog, and messages flow through the second lane.
        for clock in [100, 200, 300] {
            lanes.saw(&[look(50, clock), look(clock - 1, clock)], now, Duration::ZERO);
        }
        assert!(matches!(lanes.reached(), Reached::Each(times) if times == [Time(50), Time(199)]));
        assert_eq!(lanes.claim_keep(now), Some(Time(50)));
        assert_eq!(lanes.claim_keep(now), None, "just now");
        lanes.swept(Some(Time(60)), now, Duration::ZERO);
        assert!(matches!(lanes.reached(), Reached::Each(times) if times == [Time(50), Time(60)]));
        assert!(matches!(Lanes::new(now, Time(7), 1).reached(), Reached::One(Time(7))));
    }
}
