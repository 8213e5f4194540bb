//! Limits on connections. Admitted visitors have priority. All other visitors are strangers. The
//! strangers from one address share a fixed part of the connections, each for a limited time.

use std::{
    collections::BTreeMap,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio::{
    sync::{Notify, OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

/// Strangers from one address may have 1/`SHARE` of all connections.
const SHARE: usize = 8;
/// The minimum share of connections for strangers from one address.
const LEAST: usize = 4;
/// A stranger counts toward the share of its address only after this time. A proxy in front of the
/// console may open many connections at once.
const GRACE: Duration = Duration::from_secs(2);
/// A connection ends after this time if no visitor was admitted on it.
const LIFE: Duration = Duration::from_secs(60);
/// While all slots are taken, the oldest stranger loses its slot once per this interval.
const AGAIN: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub struct Door {
    share: usize,
    grace: Duration,
    free: Arc<Semaphore>,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    last: u64,
    /// The slots, in the order of arrival.
    seats: BTreeMap<u64, Place>,
}

#[derive(Debug)]
struct Place {
    from: IpAddr,
    /// The time since which the visitor has been a stranger; `None` if the visitor is admitted.
    stranger_since: Option<Instant>,
    ends: Arc<Notify>,
}

/// A connection's slot. Dropping the value frees the slot.
#[derive(Debug)]
pub struct Seat {
    door: Arc<Door>,
    number: u64,
    ends: Arc<Notify>,
    _permit: OwnedSemaphorePermit,
}

impl Door {
    pub fn new(connections: usize) -> Self {
        let share = (connections / SHARE).max(LEAST);
        Self { share, grace: GRACE, free: Arc::new(Semaphore::new(connections)), taken: Mutex::default() }
    }

    /// Waits for a slot. If the address already has its share of strangers, the oldest of them
    /// loses its slot. If no slot is free, the oldest of all strangers loses its slot.
    pub async fn admit(self: &Arc<Self>, from: IpAddr) -> Option<Seat> {
        let counts = |entry: &Place| {
            entry.from == from && entry.stranger_since.is_some_and(|since| since.elapsed() >= self.grace)
        };
        if self.taken().strangers().filter(|(_, entry)| counts(entry)).count() >= self.share {
            self.end_oldest(counts);
        }
        let permit = loop {
            if let Ok(permit) = Arc::clone(&self.free).try_acquire_owned() {
                break permit;
            }
            self.end_oldest(|_| true);
            if let Ok(permit) = timeout(AGAIN, Arc::clone(&self.free).acquire_owned()).await {
                break permit.ok()?;
            }
        };
        let ends = Arc::new(Notify::new());
        let mut taken = self.taken();
        taken.last += 1;
        let number = taken.last;
        let entry = Place { from, stranger_since: Some(Instant::now()), ends: Arc::clone(&ends) };
        taken.seats.insert(number, entry);
        drop(taken);
        Some(Seat { door: Arc::clone(self), number, ends, _permit: permit })
    }

    fn end_oldest(&self, which: impl Fn(&Place) -> bool) {
        let mut taken = self.taken();
        let oldest = taken.strangers().find(|(_, entry)| which(entry)).map(|(number, _)| *number);
        if let Some(entry) = oldest.and_then(|number| taken.seats.remove(&number)) {
            entry.ends.notify_one();
        }
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Taken {
    fn strangers(&self) -> impl Iterator<Item = (&u64, &Place)> {
        self.seats.iter().filter(|(_, entry)| entry.stranger_since.is_some())
    }
}

impl Seat {
    /// Records whether an admitted visitor sent the last request.
    pub fn of(&self, is_known: bool) {
        if let Some(entry) = self.door.taken().seats.get_mut(&self.number) {
            entry.stranger_since = match (is_known, entry.stranger_since) {
                (true, _) => None,
                (false, since) => since.or_else(|| Some(Instant::now())),
            };
        }
    }

    /// Waits until another visitor receives the slot.
    pub async fn taken(&self) {
        self.ends.notified().await;
    }

    /// Returns true if a stranger has held the slot for `LIFE`.
    pub fn is_over(&self) -> bool {
        let taken = self.door.taken();
        let since = taken.seats.get(&self.number).and_then(|entry| entry.stranger_since);
        since.is_some_and(|since| since.elapsed() >= LIFE)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.door.taken().seats.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn ended(seat: &Seat) -> bool {
        timeout(Duration::ZERO, seat.taken()).await.is_ok()
    }

    #[tokio::test]
    async fn strangers_of_one_address_make_room_for_themselves_alone() {
        let door = Arc::new(Door { grace: Duration::ZERO, ..Door::new(64) });
        let [one, other] = ["10.0.0.1", "10.0.0.2"].map(|text| text.parse().expect("an address"));
        let neighbour = door.admit(other).await.expect("a place");
        let mut seats = Vec::new();
        for _ in 0..20 {
            seats.push(door.admit(one).await.expect("a place"));
        }
        let mut left = 0;
        for seat in &seats {
            left += usize::from(!ended(seat).await);
        }
        assert_eq!((left, ended(&neighbour).await), (8, false));
    }

    #[tokio::test]
    async fn full_console_keeps_known_visitors_and_ends_the_oldest_stranger() {
        let door = Arc::new(Door::new(2));
        let of = |n: u8| IpAddr::from([10, 0, 0, n]);
        let known = door.admit(of(1)).await.expect("a place");
        known.of(true);
        let stranger = door.admit(of(2)).await.expect("a place");
        let waits = tokio::spawn({
            let door = Arc::clone(&door);
            async move { door.admit(of(3)).await }
        });
        stranger.taken().await;
        drop(stranger);
        let third = waits.await.expect("no panic").expect("a place");
        assert!(!ended(&known).await && !ended(&third).await);
        third.of(true);
        let none = timeout(Duration::from_millis(10), door.admit(of(4))).await;
        assert!(none.is_err() && !ended(&known).await && !ended(&third).await, "known visitors are not sent away");
    }
}
