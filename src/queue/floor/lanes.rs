//! The floors of a queue's lanes. Most queues have one; one with priorities has a lane for each,
//! and a floor of its own for each, because a backlog in one lane must not hold the floor down in
//! another.

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

/// The floors of one queue in one process, by lane. The first one's clock tells when to look, to
/// sweep, and to keep.
#[derive(Debug)]
pub(crate) struct Lanes(Vec<Floor>);

/// How far the floors have reached, as the queue's functions take it: a time, or one for each lane.
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

    /// Whether a look is due; if so, the caller makes it.
    pub fn claim_look(&mut self, now: Instant) -> bool {
        self.0.first_mut().is_some_and(|first| first.claim_look(now))
    }

    /// Whether a sweep is due; if so, the caller makes it.
    pub fn claim_sweep(&mut self, now: Instant) -> bool {
        self.0.first_mut().is_some_and(|first| first.claim_sweep(now))
    }

    /// The lowest floor, if it should be kept for others now.
    pub fn claim_keep(&mut self, now: Instant) -> Option<Time> {
        let lowest = self.0.iter().map(Floor::floor).min()?;
        (lowest > Time::EARLIEST && self.0.first_mut()?.claim_keep(now)).then_some(lowest)
    }

    /// Learns from a look, which has a part for each lane and took the server `cost`.
    pub fn saw(&mut self, looks: &[Look], now: Instant, cost: Duration) {
        #[cfg(trunkline_mutant)]
        let urgent: Vec<Look> = looks.iter().map(|_| looks[looks.len() - 1]).collect();
        #[cfg(trunkline_mutant)]
        let looks = if crate::error::mutant::is("one-floor-for-all-lanes") { &*urgent } else { looks };
        for (floor, look) in self.0.iter_mut().zip(looks) {
            floor.saw(*look, now, cost);
        }
    }

    /// Learns from a part of a sweep: no lane's floor may lie above a row that was found below its
    /// own. Returns how long the next part has to wait.
    pub fn swept(&mut self, stray: Option<Time>, now: Instant, cost: Duration) -> Duration {
        self.0.iter_mut().map(|floor| floor.swept(stray, now, cost)).max().unwrap_or_default()
    }
}

/// The floors of every queue that has a handle, shared by its handles.
#[derive(Default)]
struct Queues(Mutex<HashMap<String, Weak<Mutex<Lanes>>>>);

impl Db {
    /// The floors of a queue in this process, begun where another process left them.
    pub(crate) fn lanes_of(&self, queue: &str, reached: Time, lanes: usize) -> Arc<Mutex<Lanes>> {
        let queues = self.attached::<Queues>();
        let mut queues = queues.0.lock().unwrap_or_else(PoisonError::into_inner);
        queues.retain(|_, lanes| lanes.strong_count() > 0);
        // One of that name that was dropped may have had more or fewer.
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
        // A backlog in the first lane, traffic in the second.
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
