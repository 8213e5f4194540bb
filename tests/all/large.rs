//! Answers exceed the program's limit. No message is lost, and no attempt is counted for messages
//! that did not arrive.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::time::timeout;
use trunkline::{Db, Failure, Message, Queue, Settings, Worker};

use crate::fixture::{Runs, SOON, connect, database, eventually};

const MESSAGES: usize = 40;
const BYTES: usize = 100_000;

/// Creates a queue with forty messages of 100 kB, for a program that accepts answers of 1 MB.
async fn place(settings: Settings) -> (Db, Queue<Vec<u8>>) {
    let url = database().await;
    let db = Db::connect(&format!("{url} max_answer=1MB")).await.expect("connected");
    db.create_queue("q", &settings).await.expect("created");
    let queue = db.queue::<Vec<u8>>("q").await.expect("opened");
    for nr in 0..MESSAGES {
        queue.enqueue(vec![nr as u8; BYTES]).await.expect("enqueued");
    }
    (db, queue)
}

fn whole(messages: &[Message<Vec<u8>>]) -> Vec<u8> {
    assert!(messages.iter().all(|message| message.payload.len() == BYTES));
    messages.iter().map(|message| message.payload[0]).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_take_loses_nothing_of_what_exceeds_an_answer() {
    let (db, queue) = place(Settings::new("bytea")).await;
    let all: Vec<u8> = (0..MESSAGES as u8).collect();
    let mut taken = whole(&queue.take(30).await.expect("taken"));
    taken.extend(whole(&queue.take(MESSAGES).await.expect("taken")));
    assert_eq!(taken, all);
    queue.enqueue_many(all.iter().map(|nr| vec![*nr; BYTES])).await.expect("enqueued");
    let transaction = db.begin().await.expect("begun");
    assert_eq!(whole(&queue.take_in(&transaction, MESSAGES).await.expect("taken")), all);
    transaction.commit().await.expect("committed");
    assert_eq!(queue.stats().await.expect("counted").messages, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_charges_nothing_that_did_not_come() {
    let (db, queue) = place(Settings::new("bytea")).await;
    let leased = queue.lease(MESSAGES).await.expect("leased");
    assert_eq!(whole(&leased).len(), MESSAGES);
    queue.release(&leased).await.expect("released");
    let transaction = db.begin().await.expect("begun");
    let sent = queue.send_lease(&transaction, MESSAGES).await.expect("sent").await.expect("leased");
    assert_eq!(whole(&sent).len(), MESSAGES);
    transaction.rollback().await.expect("rolled back");
    let (again, _) = queue.ack_and_lease(&[] as &[Message<Vec<u8>>], MESSAGES).await.expect("leased");
    assert_eq!(whole(&again).len(), MESSAGES);
    queue.release(&again).await.expect("released");
    assert!(queue.peek(1).await.expect("peeked").iter().all(|message| message.attempt == 2), "given back twice");
    let again = queue.lease(MESSAGES).await.expect("leased");
    assert_eq!(whole(&again).len(), MESSAGES);
    assert!(again.iter().all(|message| message.attempts() == 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_with_acks_in_many_rows_gives_all_that_it_leased() {
    const FEW: usize = 300;
    let url = database().await;
    let db = Db::connect(&url).await.expect("connected");
    db.create_queue("q", &Settings::new("bytea")).await.expect("created");
    let queue = db.queue::<Vec<u8>>("q").await.expect("opened");
    queue.enqueue_many(vec![vec![7; 4096]; 2 * FEW]).await.expect("enqueued");
    for message in queue.lease(2 * FEW).await.expect("leased") {
        // Moves each message to a row of its own. The ids of the rows remain adjacent.
        queue.retry([&message], std::time::Duration::ZERO, message.id.to_string()).await.expect("retried");
    }
    let first = queue.lease(FEW).await.expect("leased");
    let (second, lost) = queue.ack_and_lease(&first, FEW).await.expect("both");
    assert_eq!((first.len(), second.len(), lost.len()), (FEW, FEW, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_handles_all_at_their_first_attempt() {
    let (_db, queue) = place(Settings::new("bytea").max_attempts(1)).await;
    let worker = Worker::new(queue.clone(), |_: Message<Vec<u8>>| async { Ok::<(), Infallible>(()) });
    let summary = timeout(SOON, worker.concurrency(MESSAGES).drain()).await.expect("in time").expect("drained");
    assert_eq!((summary.done, summary.dead), (MESSAGES as u64, 0), "{summary:?}");
}

/// The first answer reveals the size of the messages. From then on, the worker requests only a few
/// messages at a time.
#[tokio::test(flavor = "multi_thread")]
async fn worker_fills_its_tasks_with_large_messages() {
    let (_db, queue) = place(Settings::new("bytea")).await;
    assert_eq!(queue.take(1).await.expect("taken").len(), 1);
    let gate = Arc::new((tokio::sync::Semaphore::new(0), AtomicUsize::new(0)));
    let handled = gate.clone();
    let worker = Worker::new(queue.clone(), move |_: Message<Vec<u8>>| {
        let gate = handled.clone();
        async move {
            gate.1.fetch_add(1, Ordering::Relaxed);
            gate.0.acquire().await.expect("open").forget();
            Ok::<(), Infallible>(())
        }
    });
    let runs = Runs::start(worker.concurrency(MESSAGES));
    eventually("all run at once", || async { gate.1.load(Ordering::Relaxed) == MESSAGES - 1 }).await;
    gate.0.add_permits(MESSAGES);
    eventually("all are done", || async { queue.stats().await.expect("counted").messages == 0 }).await;
    let summary = runs.stop().await;
    assert_eq!(summary.done, MESSAGES as u64 - 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn reason_of_any_length_keeps_its_head_and_tail() {
    let url = database().await;
    let db = Db::connect(&url).await.expect("connected");
    db.create_queue("q", &Settings::new("int8").max_attempts(1)).await.expect("created");
    let queue = db.queue::<i64>("q").await.expect("opened");
    let sql = connect(&url).await;
    let long = format!("head{}tail", "\u{e9}".repeat(1 << 20));
    queue.enqueue_many(&[1, 2, 3, 4, 5]).await.expect("enqueued");
    let leased = queue.lease(4).await.expect("leased");
    queue.retry([&leased[0]], std::time::Duration::ZERO, &*long).await.expect("retried");
    queue.bury([&leased[1]], &*long).await.expect("buried");
    let by_sql = "select trunkline.retry('q', $1, $2, error => $3)";
    sql.execute(by_sql, &[&leased[2].id, &leased[2].attempt, &long]).await.expect("retried");
    sql.execute("select trunkline.bury('q', $1, $2, $3)", &[&leased[3].id, &leased[3].attempt, &long])
        .await
        .expect("buried");
    let reason = long.clone();
    let worker =
        Worker::new(queue.clone(), move |_: Message<i64>| std::future::ready(Err::<(), _>(Failure::retry(&*reason))));
    timeout(SOON, worker.drain()).await.expect("in time").expect("drained");
    let letters = queue.dead_letters(0, 9).await.expect("read");
    assert_eq!(letters.len(), 5);
    for letter in letters {
        let error = letter.error;
        assert!(error.starts_with("head\u{e9}") && error.ends_with("\u{e9}tail"), "message {}", letter.id);
        assert!(error.contains("\n... 1032584 characters left out ...\n"), "message {}", letter.id);
        assert!(error.chars().count() < 16_384, "message {}", letter.id);
    }
}
