//! Stores values that cost the server much to read. All visitors share them, so the cost does not
//! grow with the number of open pages.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

/// The minimum age of a value before another reading.
const FRESH: Duration = Duration::from_secs(10);
/// The maximum number of old values that stay in memory.
const OLD: usize = 100;

/// The latest values, by name.
#[derive(Debug)]
pub struct Shared<V>(Mutex<HashMap<String, Arc<Slot<V>>>>);

#[derive(Debug)]
struct Slot<V> {
    /// Locked while a page reads the value.
    reading: tokio::sync::Mutex<()>,
    last: Mutex<Option<Read<V>>>,
}

#[derive(Debug)]
struct Read<V> {
    value: Arc<V>,
    ended: Instant,
    took: Duration,
}

impl<V> Default for Shared<V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<V> Shared<V> {
    /// Returns the latest value. Reads it if it is old, unless another page is doing so. Only a
    /// page without any value waits for that page.
    pub async fn of(&self, name: &str, read: impl Future<Output = V>) -> Arc<V> {
        let slot = self.slot(name);
        if let Some(fresh) = slot.last(Read::is_fresh) {
            return fresh;
        }
        let _reading = match slot.reading.try_lock() {
            Ok(reading) => reading,
            Err(_) => match slot.last(|_| true) {
                Some(old) => return old,
                None => slot.reading.lock().await,
            },
        };
        // Another page may have read the value in the meantime.
        if let Some(fresh) = slot.last(Read::is_fresh) {
            return fresh;
        }
        let began = Instant::now();
        let value = Arc::new(read.await);
        let read = Read { value: Arc::clone(&value), ended: Instant::now(), took: began.elapsed() };
        *slot.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(read);
        value
    }

    fn slot(&self, name: &str) -> Arc<Slot<V>> {
        let mut slots = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if slots.len() >= OLD {
            slots.retain(|_, slot| Arc::strong_count(slot) > 1 || slot.last(Read::is_fresh).is_some());
        }
        let slot = || Arc::new(Slot { reading: tokio::sync::Mutex::default(), last: Mutex::default() });
        Arc::clone(slots.entry(name.to_owned()).or_insert_with(slot))
    }
}

impl<V> Slot<V> {
    fn last(&self, suits: impl FnOnce(&Read<V>) -> bool) -> Option<Arc<V>> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.as_ref().filter(|last| suits(last)).map(|last| Arc::clone(&last.value))
    }
}

impl<V> Read<V> {
    fn is_fresh(&self) -> bool {
        is_fresh(self.ended.elapsed(), self.took, FRESH)
    }
}

/// Returns true if a value of this age is not read again: until `least`, or ten times as long as
/// its reading took.
pub fn is_fresh(age: Duration, took: Duration, least: Duration) -> bool {
    age < least.max(took * 10)
}

#[cfg(test)]
mod tests {
    use std::{
        future::pending,
        sync::atomic::{AtomicUsize, Ordering},
    };

    use tokio::time::{advance, sleep, timeout};

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn value_is_read_once_for_all_pages_of_ten_seconds() {
        let (shared, reads) = (Shared::default(), AtomicUsize::new(0));
        let page = async |name: &str| *shared.of(name, async { reads.fetch_add(1, Ordering::SeqCst) }).await;
        assert_eq!((page("q").await, page("q").await, page("other").await), (0, 0, 1));
        advance(9 * SECOND).await;
        assert_eq!(page("q").await, 0);
        advance(SECOND).await;
        assert_eq!((page("q").await, page("q").await), (2, 2));
    }

    #[tokio::test(start_paused = true)]
    async fn value_that_takes_long_is_read_rarely() {
        let (shared, reads) = (Shared::default(), AtomicUsize::new(0));
        let page = async || {
            let read = async {
                sleep(2 * SECOND).await;
                reads.fetch_add(1, Ordering::SeqCst)
            };
            *shared.of("q", read).await
        };
        assert_eq!(page().await, 0);
        advance(19 * SECOND).await; // less than ten times its duration
        assert_eq!(page().await, 0);
        advance(2 * SECOND).await;
        assert_eq!(page().await, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn pages_show_the_old_value_while_one_of_them_reads() {
        let shared = Shared::default();
        assert_eq!(*shared.of("q", async { 1 }).await, 1);
        advance(FRESH).await;
        let mut reads = Box::pin(shared.of("q", pending()));
        assert!(timeout(Duration::ZERO, &mut reads).await.is_err());
        assert_eq!(*shared.of("q", async { 2 }).await, 1);
        drop(reads); // a page that is given up
        assert_eq!(*shared.of("q", async { 3 }).await, 3);
    }

    #[tokio::test(start_paused = true)]
    async fn old_values_do_not_collect() {
        let shared = Shared::default();
        for name in 0..2 * OLD {
            shared.of(&name.to_string(), async {}).await;
            advance(FRESH).await;
        }
        assert!(shared.0.lock().expect("not poisoned").len() <= OLD);
    }
}
