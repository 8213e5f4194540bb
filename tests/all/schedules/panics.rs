//! A panic while a worker runs schedules, for example of a subscriber for traces.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tracing::{
    Dispatch, Event, Metadata, Subscriber,
    dispatcher::set_default,
    span::{Attributes, Id, Record},
};
use trunkline::{Message, Schedule, Settings, Worker};

use super::{YEARLY, not_since};
use crate::fixture::{Place, Runs, Seen, eventually, move_time, place};

/// A subscriber that panics at the first tick.
#[derive(Clone, Default)]
struct Clumsy(Arc<AtomicBool>);

impl Subscriber for Clumsy {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_span() && metadata.name() == "tick"
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        assert!(self.0.swap(true, Ordering::Relaxed), "the first tick");
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &Event<'_>) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[tokio::test]
async fn worker_makes_ticks_again_after_a_panic() {
    let clumsy = Clumsy::default();
    // With only one subscriber, `tracing` may cache what another thread has found.
    let _second = Dispatch::new(clumsy.clone());
    let _on = set_default(&Dispatch::new(clumsy.clone()));
    let Place { queue, sql, db: _db, .. } = place::<i64>(Settings::new("int8")).await;
    queue.schedule(&Schedule::new("yearly", YEARLY), &7).await.expect("set");
    not_since(&sql, "yearly", "now()").await;
    let seen = Seen::default();
    let notes = seen.clone();
    let runs = Runs::start(Worker::new(queue, move |message: Message<i64>| {
        notes.add(&message);
        async { Ok::<_, Infallible>(()) }
    }));
    eventually("the tick panics", async || clumsy.0.load(Ordering::Relaxed)).await;
    move_time(Duration::from_secs(11)).await;
    eventually("the tick is made", async || seen.all().contains_key(&7)).await;
    runs.stop().await;
}
