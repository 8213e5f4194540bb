//! Tests queues of each kind. Their consumers keep running, stop, or vanish while the clock is
//! changed.

use std::time::Duration;

use futures_util::future::join_all;
use tokio::sync::Semaphore;
use trunkline::{Db, Draft, Failure, Limits, Message, Queue, Settings, Worker};

use super::{AHEAD, Clock, HOUR};
use crate::fixture::{Runs, Seen, eventually, within};

/// The lease is short, so that the test waits only briefly for the leases of a vanished consumer.
const LEASE: Duration = Duration::from_secs(2);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Plain,
    Priorities,
    Unique,
    Limited,
    Keyed,
    KeyRate,
}

const KINDS: [Kind; 6] = [Kind::Plain, Kind::Priorities, Kind::Unique, Kind::Limited, Kind::Keyed, Kind::KeyRate];

impl Kind {
    fn has_keys(self) -> bool {
        matches!(self, Self::Keyed | Self::KeyRate)
    }

    fn settings(self) -> Settings {
        let settings = Settings::new("int8").lease(LEASE);
        match self {
            Self::Priorities => settings.priorities(3),
            Self::Unique => settings.uniqueness(true),
            Self::Keyed | Self::KeyRate => settings.partitions(4),
            Self::Plain | Self::Limited => settings,
        }
    }

    fn limits(self) -> Limits {
        match self {
            Self::Limited => Limits::none().per_second(200.0).burst(1),
            Self::KeyRate => Limits::none().key_per_second(100.0),
            _ => Limits::none(),
        }
    }

    async fn enqueue(self, queue: &Queue<i64>, numbers: std::ops::Range<i64>) {
        let drafts = numbers.map(|number| {
            let draft = Draft::new(number);
            match self {
                Self::Priorities => draft.priority((number % 3) as u8),
                Self::Keyed | Self::KeyRate => draft.key(format!("key {}", number % 7)),
                _ => draft,
            }
        });
        queue.enqueue_many(drafts).await.expect("enqueued");
    }
}

fn worker(queue: &Queue<i64>, seen: &Seen) -> Runs {
    let seen = seen.clone();
    Runs::start(Worker::new(queue.clone(), move |message: Message<i64>| {
        seen.add(&message);
        async { Ok::<(), Failure>(()) }
    }))
}

/// Runs a worker that holds many messages when it stops.
async fn ends_in_order(queue: &Queue<i64>) {
    static NONE: Semaphore = Semaphore::const_new(0);
    let worker = Worker::new(queue.clone(), |_: Message<i64>| async {
        let _ = NONE.acquire().await;
        Ok::<(), Failure>(())
    });
    let worker = Runs::start(worker.concurrency(2).shutdown_after(Duration::from_millis(1)));
    eventually("it holds something", async || queue.stats().await.expect("counted").leased > 0).await;
    worker.stop().await;
}

/// A queue whose messages are enqueued before, during and after the step of the clock.
struct Case {
    kind: Kind,
    name: String,
    lives: Queue<i64>,
    seen: Seen,
}

impl Case {
    async fn begin(clock: &Clock, kind: Kind, ahead: Duration) -> Self {
        let name = format!("{kind:?}.{}", ahead.as_secs()).to_lowercase();
        clock.db.create_queue(&name, &kind.settings()).await.expect("created");
        clock.db.limit_queue(&name, &kind.limits()).await.expect("limited");
        let lives: Queue<i64> = clock.db.queue(&name).await.expect("opened");
        kind.enqueue(&lives, 0..20).await;
        Self { kind, name, lives, seen: Seen::default() }
    }

    fn what(&self, of: &str) -> String {
        format!("{}: {of}", self.name)
    }

    fn has_seen(&self, mut numbers: std::ops::Range<i64>) -> bool {
        let seen = self.seen.all();
        numbers.all(|number| seen.contains_key(&number))
    }

    /// Starts a worker while the clock is ahead.
    async fn ahead(&self, clock: &Clock, other: &Db) -> Runs {
        let Self { kind, name, lives, seen } = self;
        kind.enqueue(lives, 20..40).await;
        ends_in_order(&other.queue(name).await.expect("opened")).await;
        if *kind != Kind::KeyRate {
            // Leases messages for a consumer that vanishes.
            let verb = if kind.has_keys() { "lease_partition" } else { "lease" };
            clock.say(&format!("select * from trunkline.{verb}('{name}', 3)")).await;
        }
        let living = worker(lives, seen);
        eventually(&self.what("one works ahead of time"), async || !seen.all().is_empty()).await;
        living
    }

    /// Checks that this worker and a new one go on after the clock was set back.
    async fn back(&self, clock: &Clock, living: Runs, other: &Db, ahead: Duration) {
        let Self { kind, name, lives, seen } = self;
        kind.enqueue(lives, 40..60).await;
        within(Duration::from_secs(60), &self.what("it works on"), async || self.has_seen(40..60)).await;
        living.stop().await;
        kind.enqueue(lives, 60..80).await;
        let fresh: Queue<i64> = other.queue(name).await.expect("opened");
        let working = worker(&fresh, seen);
        eventually(&self.what("another works"), async || self.has_seen(60..80)).await;
        if ahead <= 3 * HOUR {
            // Repairs the lease explicitly, because a lease of a few hours may be intended.
            clock.say(&format!("select trunkline.repair_times('{name}')")).await;
        }
        eventually(&self.what("all is handled"), async || seen.all().len() == 80).await;
        let left = async || fresh.stats().await.expect("counted").messages;
        eventually(&self.what("nothing is left"), async || left().await == 0).await;
        working.stop().await;
        assert_eq!(fresh.stats().await.expect("counted").dead, 0);
    }
}

/// The queues of all kinds go through the step together, because most of the time is spent waiting
/// for leases to end.
#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(target_env = "musl", ignore = "needs a Rust that builds shared libraries, as musl's does not")]
async fn clock_that_was_ahead_stops_no_queue() {
    let clock = Clock::start().await;
    for ahead in AHEAD {
        let cases = join_all(KINDS.map(|kind| Case::begin(&clock, kind, ahead))).await;
        clock.is_ahead_by(ahead);
        let other = clock.another().await;
        let living = join_all(cases.iter().map(|case| case.ahead(&clock, &other))).await;
        clock.is_ahead_by(Duration::ZERO);
        let other = clock.another().await;
        join_all(cases.iter().zip(living).map(|(case, living)| case.back(&clock, living, &other, ahead))).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(target_env = "musl", ignore = "needs a Rust that builds shared libraries, as musl's does not")]
async fn keys_enqueued_before_a_worker_are_handled_under_any_clock() {
    let clock = Clock::start().await;
    clock.db.create_queue("q", &Kind::Keyed.settings()).await.expect("created");
    let queue: Queue<i64> = clock.db.queue("q").await.expect("opened");
    let seen = Seen::default();
    clock.is_ahead_by(Duration::from_secs(60));
    let ahead = worker(&queue, &seen);
    Kind::Keyed.enqueue(&queue, 0..20).await;
    let floored = "select coalesce(bool_and(floor > now() - interval '1 minute'), false) from trunkline.lane_q where lane >= 0 and isfinite(served_at)";
    let mut number = 20;
    while !clock.says_yes(floored).await {
        Kind::Keyed.enqueue(&queue, number..number + 20).await;
        number += 20;
    }
    ahead.stop().await;
    // Sets the clock back, so that new messages are due before the floors of the priorities and
    // partitions. By the time the next worker starts, the clock has passed these floors again.
    clock.is_ahead_by(Duration::ZERO);
    Kind::Keyed.enqueue(&queue, number..number + 20).await;
    clock.is_ahead_by(Duration::from_secs(90));
    let other: Queue<i64> = clock.another().await.queue("q").await.expect("opened");
    let working = worker(&other, &seen);
    eventually("all are handled", async || seen.all().len() as i64 == number + 20).await;
    working.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(target_env = "musl", ignore = "needs a Rust that builds shared libraries, as musl's does not")]
async fn unique_key_is_kept_for_as_long_as_was_asked() {
    let clock = Clock::start().await;
    clock.db.create_queue("q", &Kind::Unique.settings()).await.expect("created");
    let claim = "select outcome = 'new' from trunkline.enqueue_unique('q', '1', 'key', unique_for => '1 minute')";
    for ahead in AHEAD {
        clock.is_ahead_by(ahead);
        assert!(clock.says_yes(claim).await, "the clock passes every key");
        clock.is_ahead_by(Duration::ZERO);
        assert!(!clock.says_yes(claim).await, "it is kept");
        let kept =
            "select until between now() + interval '50 s' and now() + interval '1 minute' from trunkline.unique_q";
        assert!(clock.says_yes(kept).await);
        clock.is_ahead_by(Duration::from_secs(61));
        assert!(clock.says_yes(claim).await, "and no longer");
        clock.is_ahead_by(Duration::ZERO);
        clock.say("delete from trunkline.unique_q").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(target_env = "musl", ignore = "needs a Rust that builds shared libraries, as musl's does not")]
async fn archive_is_pruned_by_age_whatever_the_clock_showed() {
    let clock = Clock::start().await;
    clock.db.create_queue("q", &Kind::Plain.settings()).await.expect("created");
    clock.is_ahead_by(AHEAD[0]);
    clock.say("select trunkline.enqueue('q', 1::int8); select trunkline.archive('q', id, attempt) from trunkline.lease('q')").await;
    clock.is_ahead_by(Duration::ZERO);
    assert!(clock.says_yes("select trunkline.prune('q', '1 hour') = 0").await, "it is of now, at the latest");
    clock.is_ahead_by(2 * HOUR);
    assert!(clock.says_yes("select trunkline.prune('q', '1 hour') = 1").await);
}
