//! A message that does not decode as `T` affects no other message. Its attempt is counted, and it
//! dies with the reason, in every way of consuming it.

mod fragile;
mod lost;

use std::time::Duration;

use futures_util::FutureExt;
use tokio::{sync::mpsc, time::timeout};
use tokio_postgres::{Client, error::SqlState};
use trunkline::{Db, Failure, Json, Message, Queue, Settings, Wait, Worker};

use crate::fixture::{Place, Runs, SOON, connect, eventually, place};

const GOOD: [u64; 5] = [1, 2, 3, 4, 5];

/// Creates five numbers and a text in one row. The text is first or third, and can only be inserted
/// with SQL.
async fn among_numbers(first: bool) -> Place<Json<u64>> {
    let place = place::<Json<u64>>(Settings::new("jsonb").max_attempts(3)).await;
    let payloads = if first { "[\"x\", 1, 2, 3, 4, 5]" } else { "[1, 2, \"x\", 3, 4, 5]" };
    let enqueue = "select trunkline.enqueue_many('q', array(select jsonb_array_elements($1::text::jsonb)))";
    place.sql.execute(enqueue, &[&payloads]).await.expect("enqueued");
    place
}

/// Ends the delay that follows a failure.
async fn pass(sql: &Client) {
    let due = "update trunkline.queue_q set due_at = trunkline.clock() where error is not null";
    sql.batch_execute(due).await.expect("moved");
}

fn numbers(messages: &[Message<Json<u64>>]) -> Vec<u64> {
    messages.iter().map(|message| message.payload.0).collect()
}

async fn is_dead(sql: &Client) -> bool {
    sql.query_one("select exists (select from trunkline.dead_q)", &[]).await.expect("read").get(0)
}

/// Consumes until the text is dead, and returns the received numbers.
async fn until_dead(sql: &Client, mut consume: impl AsyncFnMut() -> Vec<u64>) -> Vec<u64> {
    let mut got = Vec::new();
    let until_dead = async {
        while !is_dead(sql).await {
            got.extend(consume().await);
            pass(sql).await;
        }
    };
    timeout(SOON, until_dead).await.expect("the text dies");
    got
}

/// Checks that the text died as unreadable after all of its attempts, with its payload.
async fn died(sql: &Client) {
    let letters = sql.query("select payload::text, attempt, error from trunkline.dead_q", &[]).await.expect("read");
    let letters: Vec<(String, i32, String)> = letters.iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect();
    assert!(
        matches!(&letters[..], [(payload, 3, error)] if payload == "\"x\"" && error.contains("cannot be read as")),
        "{letters:?}"
    );
    let left: i64 = sql.query_one("select count(*) from trunkline.queue_q", &[]).await.expect("counted").get(0);
    assert_eq!(left, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn taken_at_most_once() {
    for first in [true, false] {
        let Place { queue, sql, db: _db, .. } = among_numbers(first).await;
        let got = until_dead(&sql, async || numbers(&queue.take(10).await.expect("taken"))).await;
        assert_eq!(got, GOOD);
        died(&sql).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn leased() {
    for first in [true, false] {
        let Place { queue, sql, db: _db, .. } = among_numbers(first).await;
        let got = until_dead(&sql, async || {
            let messages = queue.lease(10).await.expect("leased");
            queue.ack(&messages).await.expect("held");
            numbers(&messages)
        });
        assert_eq!(got.await, GOOD);
        died(&sql).await;
    }
}

/// A worker of one message at a time leases nothing readable for a while.
#[tokio::test(flavor = "multi_thread")]
async fn leased_by_a_worker_that_does_not_wait_behind_them() {
    let Place { queue, sql, db: _db, .. } = place::<Json<u64>>(Settings::new("jsonb").max_attempts(1)).await;
    for payload in ["\"x\""; 20].into_iter().chain(["1"]) {
        sql.execute("select trunkline.enqueue('q', $1::text::jsonb)", &[&payload]).await.expect("enqueued");
    }
    let (tells, mut told) = mpsc::unbounded_channel();
    let waits = tells.clone();
    let worker = Worker::new(queue, move |_: Message<Json<u64>>| {
        tells.send("handled").expect("the test listens");
        async { Ok::<(), Failure>(()) }
    });
    let worker = worker.before_wait(move || waits.send("waits").expect("the test listens"));
    let runs = Runs::start(worker.concurrency(1).wait(Wait::Notify));
    let first = timeout(SOON, told.recv()).await.expect("in time");
    assert_eq!(first, Some("handled"), "it waits only once nothing is due");
    let summary = runs.stop().await;
    assert_eq!((summary.done, summary.dead), (1, 20), "{summary:?}");
}

/// The row has two dimensions. The worker retries it as a whole, because a split of the row under
/// its lease would end the lease.
#[tokio::test(flavor = "multi_thread")]
async fn leased_by_a_worker_in_a_row_that_cannot_be_split() {
    let Place { queue, sql, db: _db, .. } = place::<i64>(Settings::new("int8").max_attempts(2)).await;
    let past = "alter table trunkline.queue_q disable trigger user;
                insert into trunkline.queue_q (size, payload) values (4, '{{7,8},{9,10}}');
                alter table trunkline.queue_q enable trigger user";
    sql.batch_execute(past).await.expect("inserted");
    let runs = Runs::start(Worker::new(queue, |_: Message<i64>| async { Ok::<(), Failure>(()) }));
    let dead = "select count(*) = 4 from trunkline.dead_q where attempt = 2 and error like '%cannot be read as%'";
    eventually("all four are dead", async || {
        pass(&sql).await;
        sql.query_one(dead, &[]).await.expect("counted").get(0)
    })
    .await;
    let summary = runs.stop().await;
    assert_eq!((summary.retried, summary.dead, summary.lost), (4, 4, 0), "{summary:?}");
}

/// The row is inserted without a notification, which would end a wait.
#[tokio::test(flavor = "multi_thread")]
async fn leased_with_others_by_a_consumer_that_does_not_wait_for_the_rest() {
    let Place { queue, sql, db: _db, .. } = place::<Json<u64>>(Settings::new("jsonb")).await;
    let (waits, mut pauses) = mpsc::unbounded_channel();
    let mut consumer = queue.consumer(Wait::Notify).before_wait(move || waits.send(()).expect("the test receives"));
    let waiter = tokio::spawn(async move { (consumer.lease(1).await, consumer) });
    timeout(SOON, pauses.recv()).await.expect("it waits, and listens from now on");
    queue.enqueue(Json(0)).await.expect("enqueued");
    let (first, mut consumer) = timeout(SOON, waiter).await.expect("it is woken").expect("no panic");
    assert_eq!(numbers(&first.expect("leased")), [0]);
    while pauses.try_recv().is_ok() {}
    let row = "insert into trunkline.queue_q (size, payload) values (4, array['\"x\"', '1', '2', '3']::jsonb[])";
    sql.batch_execute(row).await.expect("inserted");
    for expected in [vec![1], vec![2, 3]] {
        let messages = timeout(SOON, consumer.lease(2)).await.expect("in time").expect("leased");
        assert_eq!(numbers(&messages), expected);
    }
    assert!(pauses.try_recv().is_err(), "others were due");
}

#[tokio::test(flavor = "multi_thread")]
async fn taken_in_somebodys_transaction() {
    for first in [true, false] {
        let Place { url, queue, sql, db: _db } = among_numbers(first).await;
        let mut own = connect(&url).await;
        let got = until_dead(&sql, async || {
            let transaction = own.transaction().await.expect("begun");
            let messages = queue.take_in(&transaction, 10).await.expect("taken");
            transaction.commit().await.expect("committed");
            numbers(&messages)
        });
        assert_eq!(got.await, GOOD);
        died(&sql).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn taken_in_a_transaction_of_the_consumers() {
    for (n, works) in [(10, true), (1, true), (10, false)] {
        let Place { queue, sql, db: _db, .. } = among_numbers(true).await;
        let mut consumer = queue.consumer(Wait::Poll(Duration::from_millis(5))).retry_after(Duration::ZERO);
        let mut got = Vec::new();
        let mut tries = 0;
        let all = async {
            while got.len() < GOOD.len() {
                let work = consumer.take_with(n, |_, messages| {
                    tries += 1;
                    // Fails the first call of the work, unless `works` is true. Then the messages
                    // are tried again one at a time.
                    let outcome =
                        if works || tries > 1 { Ok(numbers(&messages)) } else { Err(Failure::retry("not yet")) };
                    async move { outcome }.boxed()
                });
                got.extend(work.await.expect("worked"));
            }
        };
        timeout(SOON, all).await.expect("the text stops no consumer");
        got.sort_unstable();
        assert_eq!(got, GOOD);
        // The unreadable text is now the only message in its row.
        let waiter = tokio::spawn(async move {
            consumer.take_with(n, |_, messages| async move { Ok::<_, Failure>(numbers(&messages)) }.boxed()).await
        });
        eventually("the text is dead", async || {
            pass(&sql).await;
            is_dead(&sql).await
        })
        .await;
        waiter.abort();
        died(&sql).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn handed_over_and_then_enqueued_like_any_other() {
    let Place { queue, sql, db: _db, .. } = place::<Json<u64>>(Settings::new("jsonb").max_attempts(3)).await;
    let mut consumer = queue.consumer(Wait::Notify);
    let receiver = tokio::spawn(async move { consumer.receive_direct().await.map(|message| message.payload.0) });
    let waiting = "select exists (select from trunkline.waiting)";
    eventually("it waits", async || sql.query_one(waiting, &[]).await.expect("read").get(0)).await;
    // Passes the binary form of jsonb: a version byte followed by the text.
    let handed = sql.query_one("select trunkline.send_element('q', '\\x01227822')", &[]).await.expect("called");
    assert!(handed.get::<_, Option<i64>>(0).is_some(), "handed over");
    eventually("the text is dead", async || {
        pass(&sql).await;
        is_dead(&sql).await
    })
    .await;
    died(&sql).await;
    queue.enqueue(Json(7)).await.expect("enqueued");
    let got = timeout(SOON, receiver).await.expect("it goes on").expect("no panic").expect("received");
    assert_eq!(got, 7);
}

/// Rows that only SQL can write, next to a valid row. Their payloads are too few, too many, partly
/// null, two-dimensional, or absent.
#[tokio::test(flavor = "multi_thread")]
async fn rows_that_contradict_themselves_stop_nobody() {
    for (size, payload) in [(3, "{7}"), (1, "{7,8}"), (2, "{7,null}"), (4, "{{7,8},{9,10}}"), (2, "{}")] {
        for way in ["lease", "take", "take in a transaction"] {
            let what = format!("{way}: {size} of {payload}");
            let Place { url, queue, sql, db: _db } = place::<i64>(Settings::new("int8").max_attempts(100)).await;
            let insert = format!("insert into trunkline.queue_q (size, payload) values ({size}, '{payload}')");
            let error = sql.batch_execute(&insert).await.expect_err(&insert);
            assert_eq!(error.code(), Some(&SqlState::CHECK_VIOLATION), "{error:?}");
            // The row is inserted without the trigger that would refuse it.
            let triggers = |what: &str| format!("alter table trunkline.queue_q {what} trigger user");
            let past = format!("{}; {insert}; {}", triggers("disable"), triggers("enable"));
            sql.batch_execute(&past).await.expect("inserted");
            queue.enqueue(1).await.expect("enqueued");
            let mut own = connect(&url).await;
            let consumed = async {
                loop {
                    let messages = match way {
                        "lease" => queue.lease(2).await.expect(&what),
                        "take" => queue.take(2).await.expect(&what),
                        _ => {
                            let transaction = own.transaction().await.expect("begun");
                            let messages = queue.take_in(&transaction, 2).await.expect(&what);
                            transaction.commit().await.expect("committed");
                            messages
                        }
                    };
                    assert!(messages.len() <= 2, "{what}");
                    if messages.iter().any(|message| message.payload == 1) {
                        return;
                    }
                }
            };
            timeout(SOON, consumed).await.unwrap_or_else(|_| panic!("{what}: a loop"));
            let charged = "select count(*) from trunkline.queue_q where attempt = 0";
            eventually("what is no message is charged", async || {
                sql.query_one(charged, &[]).await.expect("read").get::<_, i64>(0) == 0
            })
            .await;
        }
    }
}

/// The old handle's statements are prepared again. They would decode numbers as texts.
#[tokio::test(flavor = "multi_thread")]
async fn old_handle_takes_nothing_from_a_recreated_queue() {
    let Place { url, queue, sql, db } = place::<String>(Settings::new("text")).await;
    queue.enqueue("old".to_owned()).await.expect("enqueued");
    assert_eq!(queue.take(1).await.expect("taken").len(), 1);
    db.drop_queue("q").await.expect("dropped");
    db.create_queue("q", &Settings::new("int8")).await.expect("created");
    assert!(
        db.queue::<String>("q").await.expect_err("another type").is_wrong_type(),
        "who opens it now is told at once"
    );
    // connects again, because the old connections would encode payloads as texts
    let other = Db::connect(&url).await.expect("connected");
    let reopened: Queue<i64> = other.queue("q").await.expect("opened");
    let payload = i64::from_be_bytes(*b"ABCDEFGH");
    reopened.enqueue(payload).await.expect("enqueued");
    let mut own = connect(&url).await;
    let transaction = own.transaction().await.expect("begun");
    for (way, error) in [
        ("enqueue", queue.enqueue("new".to_owned()).await.expect_err("another type")),
        ("enqueue of many", queue.enqueue_many(["a".to_owned(), "b".to_owned()]).await.expect_err("another type")),
        ("take", {
            back(&sql).await;
            queue.take(1).await.expect_err("another type")
        }),
        ("lease", {
            back(&sql).await;
            queue.lease(1).await.expect_err("another type")
        }),
        ("take in a transaction", {
            back(&sql).await;
            queue.take_in(&transaction, 1).await.expect_err("another type")
        }),
    ] {
        assert!(error.is_wrong_type(), "{way}: {error}");
        assert!(error.to_string().contains("int8") || error.to_string().contains("open it again"), "{way}: {error}");
    }
    transaction.rollback().await.expect("rolled back");
    back(&sql).await;
    let messages = reopened.lease(9).await.expect("leased");
    assert!(matches!(&messages[..], [message] if message.payload == payload), "{messages:?}");
}

/// Waits until the only message is due again.
async fn back(sql: &Client) {
    let due = "select exists (select from trunkline.queue_q where due_at <= clock_timestamp())";
    eventually("what was taken is back", async || sql.query_one(due, &[]).await.expect("read").get(0)).await;
}

/// Programs in other languages may store metadata that the library shows only as texts.
#[tokio::test(flavor = "multi_thread")]
async fn metadata_of_an_unreadable_message_is_put_back_as_it_was() {
    let Place { queue, sql, db: _db, .. } = place::<Json<u64>>(Settings::new("jsonb")).await;
    let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
    let metadata = format!("{{\"n\": 5, \"deep\": {deep}}}");
    let enqueue = "select trunkline.enqueue('q', '\"x\"'::jsonb, metadata => $1::text::jsonb)";
    sql.execute(enqueue, &[&metadata]).await.expect("enqueued");
    assert!(queue.take(1).await.expect("taken").is_empty(), "it is no number");
    let is_back =
        "select exists (select from trunkline.queue_q q where q.attempt = 1 and q.metadata[1] = $1::text::jsonb)";
    eventually("it is back", || async { sql.query_one(is_back, &[&metadata]).await.expect("read").get(0) }).await;
}
