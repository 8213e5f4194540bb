//! Tests every result of a handler, and its effect on the message.

use std::{collections::BTreeMap, convert::Infallible, future::pending, time::Duration};

use trunkline::{DeadLetter, Failure, Message, Queue, RetryPolicy, Settings, Wait, Worker, postgres::Statement};

use crate::fixture::{Place, Runs, Seen, drained, enqueued, eventually, place, run_out};

const HOUR: Duration = Duration::from_secs(3600);

async fn letters(queue: &Queue<i64>) -> Vec<DeadLetter<i64>> {
    queue.dead_letters(0, 100).await.expect("read")
}

/// Selects the attempts of each message, excluding released attempts.
static CHARGED: Statement<(), Vec<(i64, i32)>> = Statement::new(
    "select m.id, q.attempt - q.released from trunkline.messages_q m join trunkline.queue_q q on m.id - q.id between 0 and q.size - 1",
);

/// Returns the messages that wait for another attempt, as payload, counted attempts and reason.
async fn to_retry(queue: &Queue<i64>, count: u64) -> Vec<(i64, i32, String)> {
    let only = async || {
        let stats = queue.stats().await.expect("counted");
        stats.to_retry == count && stats.messages == count
    };
    eventually("only these are left, to be retried", only).await;
    let mut peeked = queue.peek(100).await.expect("peeked");
    peeked.sort_by_key(|message| message.payload);
    let charged: BTreeMap<i64, i32> = queue.db().run(&CHARGED, ()).await.expect("read").into_iter().collect();
    peeked.into_iter().map(|one| (one.payload, charged[&one.id], one.error.unwrap_or_default())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn handled_message_is_acknowledged_once() {
    let Place { queue, db: _db, .. } = place(Settings::new("int8")).await;
    enqueued(&queue, 5000).await;
    let seen = Seen::default();
    let noted = seen.clone();
    let runs = Runs::start(Worker::new(queue.clone(), move |message| {
        noted.add(&message);
        async { Ok::<(), Infallible>(()) }
    }));
    drained(&queue).await;
    enqueued(&queue, 3).await; // these messages arrive while the worker waits
    drained(&queue).await;
    let summary = runs.stop().await;
    assert_eq!((summary.done, summary.retried + summary.dead + summary.lost), (5003, 0), "{summary:?}");
    assert!(seen.all().iter().all(|(payload, times)| *times == if *payload < 3 { 2 } else { 1 }));
}

#[derive(Debug, thiserror::Error)]
#[error("the mail was not sent")]
struct NotSent(#[source] std::num::ParseIntError);

#[tokio::test(flavor = "multi_thread")]
async fn failed_messages_alone_are_retried_with_their_error_chains() {
    let Place { queue, sql, db: _db, .. } = place(Settings::new("int8")).await;
    enqueued(&queue, 100).await;
    let worker = Worker::new(queue.clone(), |message: Message<i64>| async move {
        match message.payload {
            42 if message.attempts() == 1 => Err(Failure::from(NotSent("x".parse::<i64>().expect_err("no number")))),
            43 if message.attempts() == 1 => Err(Failure::retry_after(HOUR * 5, "at night")),
            _ => Ok(()),
        }
    });
    // Makes the worker poll, because the test changes due times without a notification.
    let runs = Runs::start(worker.retry(RetryPolicy::fixed(HOUR)).wait(Wait::poll()));
    let waiting = to_retry(&queue, 2).await;
    let chain = "the mail was not sent: invalid digit found in string";
    assert_eq!(waiting, [(42, 1, chain.to_owned()), (43, 1, "at night".to_owned())]);
    let hours =
        "select round(extract(epoch from due_at - clock_timestamp()) / 3600)::int from trunkline.queue_q order by id";
    let due: Vec<i32> = sql.query(hours, &[]).await.expect("read").iter().map(|row| row.get(0)).collect();
    assert_eq!(due, [1, 5], "by the policy, and by the failure itself");
    run_out(&sql).await;
    drained(&queue).await;
    let summary = runs.stop().await;
    assert_eq!((summary.done, summary.retried, summary.dead, summary.lost), (100, 2, 0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn last_attempt_by_queue_or_policy_makes_a_dead_letter() {
    for (queues, policys) in [(3, 9), (9, 3)] {
        let Place { queue, db: _db, .. } = place(Settings::new("int8").max_attempts(queues)).await;
        enqueued(&queue, 5).await;
        let worker = Worker::new(queue.clone(), |message: Message<i64>| async move {
            Err::<(), _>(Failure::retry(format!("failure {} of {}", message.attempts(), message.payload)))
        });
        let runs = Runs::start(worker.retry(RetryPolicy::fixed(Duration::ZERO).attempts(policys)));
        drained(&queue).await;
        runs.stop().await;
        let told: Vec<_> = letters(&queue).await.into_iter().map(|dead| (dead.attempt, dead.error)).collect();
        assert_eq!(told, [0, 1, 2, 3, 4].map(|payload| (3, format!("failure 3 of {payload}"))));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn hopeless_message_is_dead_at_once() {
    let Place { queue, db: _db, .. } = place(Settings::new("int8")).await;
    enqueued(&queue, 9).await;
    let policy = RetryPolicy::custom(|_, failure| (failure.reason() != "says the policy").then_some(Duration::ZERO));
    let worker = Worker::new(queue.clone(), |message: Message<i64>| async move {
        match message.payload {
            2 => Err(Failure::dead("says the handler")),
            5 => Err(Failure::retry("says the policy")),
            _ => Ok(()),
        }
    });
    let runs = Runs::start(worker.retry(policy));
    drained(&queue).await;
    let summary = runs.stop().await;
    assert_eq!((summary.done, summary.retried, summary.dead), (7, 0, 2));
    let told: Vec<_> = letters(&queue).await.into_iter().map(|dead| (dead.payload, dead.attempt, dead.error)).collect();
    assert_eq!(told, [(2, 1, "says the handler".to_owned()), (5, 1, "says the policy".to_owned())]);
}

#[tokio::test(flavor = "multi_thread")]
async fn death_after_the_last_attempt_counts_as_dead() {
    let Place { queue, db: _db, .. } = place(Settings::new("int8").max_attempts(2)).await;
    enqueued(&queue, 3).await;
    let worker = Worker::new(queue.clone(), |message: Message<i64>| async move {
        if message.payload == 1 { Err(Failure::retry("no")) } else { Ok(()) }
    });
    let runs = Runs::start(worker.retry(RetryPolicy::fixed(Duration::ZERO)));
    drained(&queue).await;
    let summary = runs.stop().await;
    assert_eq!((summary.done, summary.retried, summary.dead), (2, 1, 1));
    assert_eq!(letters(&queue).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn panic_and_timeout_fail_their_own_message_only() {
    let Place { queue, db: _db, .. } = place(Settings::new("int8")).await;
    enqueued(&queue, 50).await;
    let worker = Worker::new(queue.clone(), |message: Message<i64>| {
        assert!(message.payload != 7, "seven, before the future is there");
        async move {
            match message.payload {
                8 => panic!("eight, inside"),
                9 => pending().await,
                _ => Ok::<(), Infallible>(()),
            }
        }
    });
    let runs = Runs::start(worker.retry(RetryPolicy::fixed(HOUR)).timeout(Duration::from_millis(50)));
    let told = to_retry(&queue, 3).await;
    let texts = [
        "the handler panicked: seven, before the future is there",
        "the handler panicked: eight, inside",
        "the handler took longer than 50ms",
    ];
    assert_eq!(told, [7, 8, 9].map(|payload| (payload, 1, texts[payload as usize - 7].to_owned())));
    let summary = runs.stop().await;
    assert_eq!((summary.done, summary.retried), (47, 3));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_handler_answers_for_each_message() {
    let Place { queue, db: _db, .. } = place(Settings::new("int8")).await;
    enqueued(&queue, 1000).await;
    let worker = Worker::of_batches(queue.clone(), 100, |messages: Vec<Message<i64>>| async move {
        assert!((1..=100).contains(&messages.len()));
        let even = |message: &Message<i64>| match message.payload % 2 {
            0 => Ok(()),
            _ => Err(Failure::dead("odd")),
        };
        messages.iter().map(even).collect()
    });
    let runs = Runs::start(worker.concurrency(2));
    drained(&queue).await;
    let summary = runs.stop().await;
    assert_eq!((summary.done, summary.dead), (500, 500));
    assert!(letters(&queue).await.iter().all(|dead| dead.payload % 2 == 1 && dead.error == "odd"));
}

#[tokio::test(flavor = "multi_thread")]
async fn batch_handler_that_panics_or_misanswers_fails_its_whole_batch() {
    let Place { queue, db: _db, .. } = place(Settings::new("int8").max_attempts(1)).await;
    for payloads in [[0; 10], [1; 10]] {
        queue.enqueue_many(&payloads).await.expect("enqueued");
    }
    let worker = Worker::of_batches(queue.clone(), 10, |messages: Vec<Message<i64>>| async move {
        assert!(messages[0].payload == 0, "a one");
        vec![Ok::<(), Infallible>(())]
    });
    let runs = Runs::start(worker.concurrency(1));
    drained(&queue).await;
    assert_eq!(runs.stop().await.done, 0);
    let told: Vec<_> = letters(&queue).await.into_iter().map(|dead| dead.error).collect();
    let texts = ["the handler answered 1 times for 10 messages", "the handler panicked: a one"];
    assert_eq!(told, texts.map(|text| vec![text.to_owned(); 10]).concat());
}
