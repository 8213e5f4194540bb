//! Stores values that cost the server much to read. All visitors share them, so the cost does not
//! grow with the number of open pages.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::time::{Instant, timeout};

/// The minimum age of a value before another reading.
const FRESH: Duration = Duration::from_secs(10);
/// The time after which a reading is given up although the server limits its statements: the
/// network has forgotten the connection.
const LONGEST: Duration = Duration::from_secs(100);
/// The maximum number of old values that stay in memory.
const OLD: usize = 100;

/// The latest values, by name.
#[derive(Debug)]
pub struct Shared<V> {
    slots: Mutex<HashMap<String, Arc<Slot<V>>>>,
    /// Returns false for a value that lacks something which the next reading may find.
    is_whole: fn(&V) -> bool,
}

#[derive(Debug)]
struct Slot<V> {
    /// Locked while a task reads the value.
    reading: Arc<tokio::sync::Mutex<()>>,
    last: Mutex<Option<Read<V>>>,
}

#[derive(Debug)]
struct Read<V> {
    value: Arc<V>,
    ended: Instant,
    took: Duration,
    is_whole: bool,
}

impl<V> Shared<V> {
    pub fn new(is_whole: fn(&V) -> bool) -> Self {
        Self { slots: Mutex::default(), is_whole }
    }

    /// Drops the value with this name, and also one that is being read: it may be from before a
    /// change.
    pub fn forget(&self, name: &str) {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
    }

    fn slot(&self, name: &str) -> Arc<Slot<V>> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        if slots.len() >= OLD {
            slots.retain(|_, slot| Arc::strong_count(slot) > 1 || slot.last(Read::is_fresh).is_some());
        }
        let slot = || Arc::new(Slot { reading: Arc::default(), last: Mutex::default() });
        Arc::clone(slots.entry(name.to_owned()).or_insert_with(slot))
    }
}

impl<V: Send + Sync + 'static> Shared<V> {
    /// Returns the latest value. If it is old, starts a task that reads it, unless another task is
    /// doing so. Only a page without any value waits for that task. The task outlives its page, so
    /// that a reading that takes longer than a page may take is not repeated for each page.
    /// Returns `None` if the reading panics or is given up.
    pub async fn of(&self, name: &str, read: impl Future<Output = V> + Send + 'static) -> Option<Arc<V>> {
        let slot = self.slot(name);
        if let Some(fresh) = slot.last(Read::is_fresh) {
            return Some(fresh);
        }
        let reading = match Arc::clone(&slot.reading).try_lock_owned() {
            Ok(reading) => reading,
            Err(_) => match slot.last(|_| true) {
                Some(old) => return Some(old),
                None => Arc::clone(&slot.reading).lock_owned().await,
            },
        };
        // Another page may have read the value in the meantime.
        if let Some(fresh) = slot.last(Read::is_fresh) {
            return Some(fresh);
        }
        let is_whole = self.is_whole;
        let task = tokio::spawn(async move {
            let _reading = reading; // unlocked when the task ends, even by a panic
            slot.read(read, is_whole).await
        });
        task.await.ok().flatten()
    }
}

impl<V> Slot<V> {
    fn last(&self, suits: impl FnOnce(&Read<V>) -> bool) -> Option<Arc<V>> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.as_ref().filter(|last| suits(last)).map(|last| Arc::clone(&last.value))
    }

    /// Reads the value, and stores it.
    async fn read(&self, read: impl Future<Output = V>, is_whole: fn(&V) -> bool) -> Option<Arc<V>> {
        let began = Instant::now();
        let value = Arc::new(timeout(LONGEST, read).await.ok()?);
        let (ended, took, is_whole) = (Instant::now(), began.elapsed(), is_whole(&value));
        let read = Read { value: Arc::clone(&value), ended, took, is_whole };
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(read);
        Some(value)
    }
}

impl<V> Read<V> {
    fn is_fresh(&self) -> bool {
        is_fresh(self.ended.elapsed(), self.took, FRESH, self.is_whole)
    }
}

/// Returns true if a value of this age is not read again: until `least`, or ten times as long as
/// its reading took. A failure is stored only as long as its reading took: the server may have
/// spent none of that time, and may have recovered.
pub fn is_fresh(age: Duration, took: Duration, least: Duration, is_whole: bool) -> bool {
    age < least.max(if is_whole { took * 10 } else { took })
}

#[cfg(test)]
mod tests {
    use std::{
        future::pending,
        sync::atomic::{AtomicUsize, Ordering},
    };

    use tokio::time::{advance, sleep};

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn value_is_read_once_for_all_pages_of_ten_seconds() {
        let (shared, reads) = (Shared::new(|_| true), Arc::new(AtomicUsize::new(0)));
        let page = async |name: &str| {
            let reads = Arc::clone(&reads);
            *shared.of(name, async move { reads.fetch_add(1, Ordering::SeqCst) }).await.expect("read")
        };
        assert_eq!((page("q").await, page("q").await, page("other").await), (0, 0, 1));
        advance(9 * SECOND).await;
        assert_eq!(page("q").await, 0);
        advance(SECOND).await;
        assert_eq!((page("q").await, page("q").await), (2, 2));
    }

    #[tokio::test(start_paused = true)]
    async fn value_that_takes_long_is_read_rarely() {
        let (shared, reads) = (Shared::new(|_| true), Arc::new(AtomicUsize::new(0)));
        let page = async || {
            let reads = Arc::clone(&reads);
            let read = async move {
                sleep(2 * SECOND).await;
                reads.fetch_add(1, Ordering::SeqCst)
            };
            *shared.of("q", read).await.expect("read")
        };
        assert_eq!(page().await, 0);
        advance(19 * SECOND).await; // less than ten times its duration
        assert_eq!(page().await, 0);
        advance(2 * SECOND).await;
        assert_eq!(page().await, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn value_that_lacks_something_is_soon_read_again() {
        let shared = Shared::new(|is_whole: &bool| *is_whole);
        let page = async |is_whole: bool| {
            let read = async move {
                sleep(20 * SECOND).await;
                is_whole
            };
            *shared.of("q", read).await.expect("read")
        };
        assert!(!page(false).await);
        advance(19 * SECOND).await;
        assert!(!page(true).await, "the server rests as long as it has worked");
        advance(2 * SECOND).await;
        assert!(page(true).await);
        advance(199 * SECOND).await;
        assert!(page(false).await);
    }

    #[tokio::test(start_paused = true)]
    async fn forgotten_value_is_read_again_although_it_is_being_read() {
        let shared = Shared::new(|_| true);
        let page = async |value: u32| {
            let read = async move {
                sleep(SECOND).await;
                value
            };
            *shared.of("q", read).await.expect("read")
        };
        let (before, after) = tokio::join!(page(1), async {
            shared.forget("q");
            page(2).await
        });
        assert_eq!((before, after, page(3).await), (1, 2, 2));
        shared.forget("q");
        assert_eq!(page(4).await, 4);
    }

    #[tokio::test(start_paused = true)]
    async fn pages_that_are_given_up_do_not_end_the_reading() {
        let shared = Shared::new(|_| true);
        let page = async |nth: u32| {
            sleep(nth * 10 * SECOND).await;
            let read = async move {
                sleep(if nth == 0 { 31 * SECOND } else { 12 * SECOND }).await;
                nth
            };
            timeout(30 * SECOND, shared.of("q", read)).await.ok().flatten().map(|value| *value)
        };
        let pages = tokio::join!(page(0), page(1), page(2), page(3));
        assert_eq!(pages, (None, Some(0), Some(0), Some(0)));
    }

    #[tokio::test(start_paused = true)]
    async fn pages_show_the_old_value_while_one_of_them_reads() {
        let shared = Shared::new(|_| true);
        let page = async |value: u32| *shared.of("q", async move { value }).await.expect("read");
        assert_eq!(page(1).await, 1);
        advance(FRESH).await;
        let mut reads = Box::pin(shared.of("q", pending()));
        assert!(timeout(Duration::ZERO, &mut reads).await.is_err());
        assert_eq!(page(2).await, 1);
        drop(reads); // a page that is given up
        drop(shared.slot("q").reading.lock().await); // its reading is given up, too
        assert_eq!(page(3).await, 3);
    }

    #[tokio::test(start_paused = true)]
    async fn reading_that_panics_is_repeated() {
        let shared = Shared::new(|_| true);
        let panics = async { "none".parse::<u32>().expect("as intended") };
        assert_eq!(shared.of("q", panics).await, None);
        assert_eq!(shared.of("q", async { 1 }).await.as_deref(), Some(&1));
    }

    #[tokio::test(start_paused = true)]
    async fn old_values_do_not_collect() {
        let shared = Shared::new(|()| true);
        for name in 0..2 * OLD {
            shared.of(&name.to_string(), async {}).await;
            advance(FRESH).await;
        }
        assert!(shared.slots.lock().expect("not poisoned").len() <= OLD);
    }
}
