//! Tests the hooks of workers and consumers, which let a program's tests wait for events instead of
//! sleeping. Also tests retry policies that decide by the handler's error.

use std::{
    io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::FutureExt;
use tokio::{sync::mpsc, time::timeout};
use trunkline::{Draft, Failure, Message, RetryPolicy, Settings, Wait, Worker};

use crate::fixture::{Ids, Place, Runs, SOON, drained, place};

#[tokio::test(flavor = "multi_thread")]
async fn hooks_run_after_each_attempt_and_before_each_wait() {
    let Place { queue, db: _db, .. } = place(Settings::new("int8")).await;
    let (tells, mut told) = mpsc::unbounded_channel();
    let (sleeps, mut asleep) = mpsc::unbounded_channel();
    let (first, second) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (firsts, seconds) = (first.clone(), second.clone());
    let (begins, mut begun) = mpsc::unbounded_channel();
    let worker = Worker::new(queue.clone(), move |message: Message<i64>| {
        begins.send(message.lease()).expect("the test listens");
        async move {
            match (message.payload, message.attempts()) {
                (1, 1) => Err(Failure::retry("not yet")),
                (2, 1) => panic!("never"),
                _ => Ok(()),
            }
        }
    })
    .after_attempt(move |lease, outcome| {
        let reason = outcome.err().map(|failure| failure.reason().to_owned());
        tells.send((lease, reason)).expect("the test listens");
    })
    .after_attempt(move |_, _| {
        firsts.fetch_add(1, Ordering::Relaxed);
        panic!("a hook's panic does no harm");
    })
    .before_wait(move || {
        seconds.fetch_add(1, Ordering::Relaxed);
        sleeps.send(()).expect("the test listens");
    });
    let runs = Runs::start(worker.retry(RetryPolicy::fixed(Duration::ZERO)).wait(Wait::Notify));
    timeout(SOON, asleep.recv()).await.expect("nothing is due").expect("it runs");
    for payload in [0, 1, 2] {
        let id = queue.enqueue(payload).await.expect("enqueued").id();
        let expected = match payload {
            0 => vec![None],
            1 => vec![Some("not yet".to_owned()), None],
            _ => vec![Some("the handler panicked: never".to_owned()), None],
        };
        for reason in expected {
            let attempt = timeout(SOON, told.recv()).await.expect("it is tried").expect("it runs");
            let lease = begun.recv().await.expect("the handler had it before");
            assert_eq!((lease.id, attempt), (id, (lease, reason)));
        }
    }
    drained(&queue).await;
    assert_eq!(runs.stop().await.done, 3);
    assert_eq!(first.load(Ordering::Relaxed), 5, "every hook is called");
    assert!(second.load(Ordering::Relaxed) >= 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn worker_of_a_queue_with_keys_calls_the_hook_before_it_waits() {
    let Place { queue, db: _db, .. } = place::<i64>(Settings::new("int8").partitions(4)).await;
    let (sleeps, mut asleep) = mpsc::unbounded_channel();
    let worker = Worker::new(queue.clone(), |_: Message<i64>| async { Ok::<(), Failure>(()) });
    let runs = Runs::start(worker.before_wait(move || sleeps.send(()).expect("the test listens")));
    timeout(SOON, asleep.recv()).await.expect("nothing is due").expect("it runs");
    queue.enqueue(Draft::new(1).key("a")).await.expect("enqueued");
    drained(&queue).await;
    assert_eq!(runs.stop().await.done, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_decides_by_the_handlers_own_error() {
    let Place { queue, db: _db, .. } = place(Settings::new("int8")).await;
    queue.enqueue_many(&[1, 2]).await.expect("enqueued");
    let policy = RetryPolicy::custom(|_, failure| {
        let refused =
            failure.downcast_ref::<io::Error>().map(io::Error::kind) == Some(io::ErrorKind::ConnectionRefused);
        refused.then_some(Duration::ZERO)
    });
    let worker = Worker::new(queue.clone(), |message: Message<i64>| async move {
        match (message.payload, message.attempts()) {
            (1, 1) => Err(Failure::from(io::Error::from(io::ErrorKind::ConnectionRefused))),
            (2, 1) => Err(Failure::from(io::Error::from(io::ErrorKind::NotFound))),
            _ => Ok(()),
        }
    });
    let runs = Runs::start(worker.retry(policy));
    drained(&queue).await;
    let summary = runs.stop().await;
    assert_eq!((summary.done, summary.retried, summary.dead), (1, 1, 1), "{summary:?}");
    assert_eq!(queue.dead_letters(0, 9).await.expect("read")[0].payload, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn consumer_hook_sees_committed_and_failed_work() {
    let Place { queue, db: _db, .. } = place::<i64>(Settings::new("int8")).await;
    let ids = queue.enqueue_many(&[1, 2]).await.expect("enqueued").ids();
    let told = Arc::new(Mutex::new(Vec::new()));
    let tells = told.clone();
    let mut consumer =
        queue.consumer(Wait::Adaptive).retry_after(Duration::from_secs(3600)).after_attempt(move |lease, outcome| {
            let reason = outcome.err().map(|failure| failure.reason().to_owned());
            tells.lock().expect("no panic").push((lease.id, reason));
        });
    let work = consumer.take_with(1, |_, messages| {
        let outcome = if messages[0].payload == 1 { Err(Failure::retry("one")) } else { Ok(()) };
        async move { outcome }.boxed()
    });
    timeout(SOON, work).await.expect("in time").expect("worked");
    assert_eq!(*told.lock().expect("no panic"), [(ids[0], Some("one".to_owned())), (ids[1], None)]);
}
