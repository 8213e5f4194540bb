//! Whatever panics, and wherever: a failure of its own message, and the worker goes on.

use std::{convert::Infallible, future::pending, time::Duration};

use trunkline::{Failure, Message, RetryPolicy, Settings, Worker};

use crate::fixture::{Place, Runs, drained, enqueued, eventually, place};

/// Panics where it is dropped, in the middle of what drops it.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        assert!(std::thread::panicking(), "dropped");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_policy_that_panics_costs_neither_the_hand_nor_the_message() {
    let Place { queue, db: _db, .. } = place(Settings::new("int8")).await;
    enqueued(&queue, 6).await;
    let worker = Worker::new(queue.clone(), |message: Message<i64>| async move {
        match (message.payload, message.charged()) {
            (0, 1) => Err(Failure::retry("no")),
            _ => Ok(()),
        }
    });
    let policy = RetryPolicy::custom(|_, _| panic!("the policy's"));
    let runs = Runs::start(worker.concurrency(1).retry(policy));
    drained(&queue).await; // by default it is tried again after a second at most
    let summary = runs.stop().await;
    assert_eq!((summary.done, summary.retried, summary.dead, summary.lost), (6, 1, 0, 0), "{summary:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_that_panics_while_it_is_dropped_costs_neither_the_hand_nor_the_message() {
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

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_of_any_size_and_any_number_of_hands_is_worked_through() {
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
