//! A panic anywhere counts only as a failure of its own message, and the worker continues.

use std::{convert::Infallible, future::pending, mem::ManuallyDrop, sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;
use trunkline::{Failure, Json, Message, RetryPolicy, Settings, Worker};

use crate::fixture::{Place, Runs, drained, enqueued, eventually, place};

/// Panics when it is dropped, unless its thread is already panicking.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        assert!(std::thread::panicking(), "dropped");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn panicking_retry_policy_costs_neither_task_nor_message() {
    let Place { queue, db: _db, .. } = place(Settings::new("int8")).await;
    enqueued(&queue, 6).await;
    let worker = Worker::new(queue.clone(), |message: Message<i64>| async move {
        match (message.payload, message.attempts()) {
            (0, 1) => Err(Failure::retry("no")),
            _ => Ok(()),
        }
    });
    let policy = RetryPolicy::custom(|_, _| panic!("the policy's"));
    let runs = Runs::start(worker.concurrency(1).retry(policy));
    drained(&queue).await; // the default policy, which applies after the panic, retries within a second
    let summary = runs.stop().await;
    assert_eq!((summary.done, summary.retried, summary.dead, summary.lost), (6, 1, 0, 0), "{summary:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn handler_panicking_while_dropped_costs_neither_task_nor_message() {
    let Place { queue, db: _db, .. } = place(Settings::new("int8").max_attempts(1)).await;
    enqueued(&queue, 6).await;
    let worker = Worker::new(queue.clone(), |message: Message<i64>| async move {
        if message.payload == 0 {
            let _bomb = Bomb;
            pending::<()>().await;
        }
        Ok::<(), Infallible>(())
    });
    let runs = Runs::start(worker.concurrency(1).timeout(Duration::from_millis(50)));
    drained(&queue).await;
    let dead = queue.dead_letters(0, 9).await.expect("read");
    assert!(matches!(&dead[..], [dead] if dead.payload == 0 && dead.error.contains("panic")), "{dead:?}");
    let summary = runs.stop().await;
    assert_eq!((summary.done, summary.lost), (5, 0), "{summary:?}");
}

/// A payload that panics when it is dropped, if its number is that of [`FRAGILE`].
#[derive(Debug, Serialize, Deserialize)]
struct Numbered(i64);

const SLOW: i64 = 1000;
const FRAGILE: i64 = 2000;

impl Drop for Numbered {
    fn drop(&mut self) {
        assert!(self.0 != FRAGILE || std::thread::panicking(), "dropped");
    }
}

#[tokio::test]
async fn payload_panicking_while_it_is_given_back_costs_no_lease() {
    let settings = Settings::new("jsonb").lease(Duration::from_secs(2)).max_batch(1);
    let Place { queue, sql, db: _db, .. } = place::<Json<Numbered>>(settings).await;
    // Quick messages, after which the worker prefetches; a slow one; and those that it prefetches.
    let mut slow = None;
    for nr in [0; 100].into_iter().chain([SLOW]).chain([FRAGILE; 5]) {
        let id = queue.enqueue(&*ManuallyDrop::new(Json(Numbered(nr)))).await.expect("enqueued").id();
        slow = slow.or((nr == SLOW).then_some(id));
    }
    let gate = Arc::new(Semaphore::new(0));
    let opens = gate.clone();
    let runs = Runs::start(
        Worker::new(queue.clone(), move |message: Message<Json<Numbered>>| {
            let (gate, nr) = (opens.clone(), ManuallyDrop::new(message.payload).0.0);
            async move {
                if nr == SLOW {
                    gate.acquire().await.expect("open").forget();
                }
                Ok::<(), Infallible>(())
            }
        })
        .concurrency(1),
    );
    // The heartbeat gives back messages that wait behind the slow one, and drops their payloads.
    let released = "select exists (select from trunkline.queue_q where released > 0)";
    eventually("it gives back", async || sql.query_one(released, &[]).await.expect("read").get(0)).await;
    let due = "select extract(epoch from due_at)::float8 from trunkline.queue_q where id = $1";
    let due_at = async || sql.query_one(due, &[&slow]).await.expect("it is leased").get::<_, f64>(0);
    let before = due_at().await;
    eventually("its lease is renewed", async || due_at().await > before).await;
    gate.add_permits(1);
    eventually("all are done", || async { queue.stats().await.expect("counted").messages == 0 }).await;
    let summary = runs.stop().await;
    assert_eq!((summary.done, summary.lost), (106, 0), "{summary:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn any_batch_size_and_any_concurrency_work() {
    let Place { queue, db: _db, .. } = place(Settings::new("int8")).await;
    enqueued(&queue, 100).await;
    let worker = Worker::of_batches(queue.clone(), usize::MAX, |messages: Vec<Message<i64>>| async move {
        messages.iter().map(|_| Ok::<(), Infallible>(())).collect()
    });
    let runs = Runs::start(worker.concurrency(2));
    drained(&queue).await;
    assert_eq!(runs.stop().await.done, 100);

    enqueued(&queue, 100).await;
    let worker = Worker::new(queue.clone(), |_: Message<i64>| async { Ok::<(), Infallible>(()) });
    let runs = Runs::start(worker.concurrency(usize::MAX).timeout(Duration::MAX).shutdown_after(Duration::MAX));
    drained(&queue).await;
    assert_eq!(runs.stop().await.done, 100);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_extension_out_of_bounds_is_an_error() {
    let Place { queue, db: _db, .. } = place(Settings::new("int8")).await;
    enqueued(&queue, 1).await;
    let (told, mut tells) = tokio::sync::mpsc::unbounded_channel();
    let worker = Worker::with_attempt(queue.clone(), move |_, attempt| {
        let told = told.clone();
        async move {
            let outcome = attempt.extend(Duration::MAX).await;
            told.send(outcome.map_err(|error| error.to_string())).expect("the test listens");
            Ok::<(), Infallible>(())
        }
    });
    let runs = Runs::start(worker);
    let error = tells.recv().await.expect("told").expect_err("out of bounds");
    assert!(error.contains("out of bounds"), "{error}");
    eventually("it is done", || async { queue.stats().await.expect("counted").messages == 0 }).await;
    assert_eq!(runs.stop().await.done, 1);
}

/// An error that panics when it is printed.
#[derive(Debug)]
struct Mute;

impl std::fmt::Display for Mute {
    fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        panic!("no words")
    }
}

impl std::error::Error for Mute {}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_whose_text_panics_fails_its_own_message_alone() {
    for of_batches in [false, true] {
        let Place { queue, db: _db, .. } = place(Settings::new("int8").max_attempts(1)).await;
        enqueued(&queue, 20).await;
        let answer = |message: &Message<i64>| if message.payload == 13 { Err(Mute) } else { Ok(()) };
        let worker = if of_batches {
            let handle = move |messages: Vec<Message<i64>>| std::future::ready(messages.iter().map(answer).collect());
            Worker::of_batches(queue.clone(), 20, handle)
        } else {
            Worker::new(queue.clone(), move |message: Message<i64>| std::future::ready(answer(&message)))
        };
        let summary = worker.concurrency(2).drain().await.expect("drained");
        assert_eq!((summary.done, summary.dead, summary.lost), (19, 1, 0), "{summary:?}");
        let dead = queue.dead_letters(0, 9).await.expect("read");
        assert!(matches!(&dead[..], [dead] if dead.payload == 13 && dead.error.contains("no words")), "{dead:?}");
    }
}

/// The payload of a handler's panic may itself panic when it is dropped.
#[tokio::test(flavor = "multi_thread")]
async fn panic_whose_payload_panics_costs_neither_task_nor_message() {
    struct Charge;

    impl Drop for Charge {
        fn drop(&mut self) {
            panic!("dropped");
        }
    }

    let Place { queue, db: _db, .. } = place(Settings::new("int8").max_attempts(1)).await;
    enqueued(&queue, 6).await;
    let worker = Worker::new(queue.clone(), |message: Message<i64>| async move {
        if message.payload == 0 {
            std::panic::panic_any(Charge);
        }
        Ok::<(), Infallible>(())
    });
    let summary = worker.concurrency(1).drain().await.expect("drained");
    assert_eq!((summary.done, summary.dead, summary.lost), (5, 1, 0), "{summary:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn panicking_work_in_a_transaction_is_rolled_back_and_counted() {
    let Place { queue, db: _db, .. } = place(Settings::new("int8").max_attempts(1)).await;
    enqueued(&queue, 3).await;
    let mut consumer = queue.consumer(trunkline::Wait::Adaptive).retry_after(Duration::from_millis(1));
    for wanted in [None, Some(1), Some(2)] {
        let work = consumer.take_with(1, |_, messages: Vec<Message<i64>>| {
            Box::pin(async move {
                assert!(messages[0].payload > 0, "zero is too little");
                if messages[0].payload == 9 { Err(Mute) } else { Ok(messages[0].payload) }
            })
        });
        let outcome = work.await;
        assert!(outcome.is_ok() || outcome.as_ref().is_err_and(trunkline::Error::is_work_failed), "{outcome:?}");
        assert_eq!(outcome.ok(), wanted);
    }
    let dead = queue.dead_letters(0, 9).await.expect("read");
    assert!(matches!(&dead[..], [dead] if dead.payload == 0 && dead.error.contains("zero is too little")), "{dead:?}");
}
