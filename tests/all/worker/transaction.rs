//! Tests `Attempt::transaction`: effects and the acknowledgement commit together, and without a
//! commit there is no effect.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{Notify, watch},
    time::timeout,
};
use tokio_postgres::Client;
use trunkline::{
    Attempt, Failure, Message, Queue, Result, RetryPolicy, Settings, Wait, Worker,
    postgres::{Statement, Transaction},
};

use crate::fixture::{Place, Runs, SOON, connect, drained, enqueued, eventually, place, run_out};

static EFFECT: Statement<(i64,), u64> = Statement::new("insert into effect values ($1)");
static EFFECTS: Statement<(), Vec<(i64,)>> = Statement::new("select of from effect order by 1");

async fn effects(queue: &Queue<i64>) -> Vec<i64> {
    queue.db().run(&EFFECTS, ()).await.expect("read").into_iter().map(|(of,)| of).collect()
}

/// Creates a queue with `messages` messages, and a table of effects that accepts duplicates.
async fn with_effects(messages: i64) -> Place<i64> {
    let place = place(Settings::new("int8").max_attempts(5)).await;
    place.sql.batch_execute("create table effect (of bigint)").await.expect("created");
    enqueued(&place.queue, messages).await;
    place
}

async fn with_effect(message: &Message<i64>, attempt: &Attempt<i64>) -> Result<Transaction> {
    let transaction = attempt.transaction().await?;
    transaction.run(&EFFECT, (message.payload,)).await?;
    Ok(transaction)
}

#[tokio::test(flavor = "multi_thread")]
async fn commit_ends_the_message_whatever_the_handler_answers() {
    let Place { queue, db: _db, .. } = with_effects(300).await;
    let runs = Runs::start(Worker::with_attempt(queue.clone(), |message, attempt| async move {
        with_effect(&message, &attempt).await?.commit().await?;
        match message.payload % 3 {
            0 => Err(Failure::retry("after the commit")),
            1 => Err(Failure::dead("after the commit")),
            _ => Ok(()),
        }
    }));
    drained(&queue).await;
    let summary = runs.stop().await;
    assert_eq!((summary.done, summary.retried + summary.dead + summary.lost), (300, 0), "{summary:?}");
    assert_eq!(effects(&queue).await, (0..300).collect::<Vec<_>>());
    assert!(queue.dead_letters(0, 10).await.expect("read").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn ok_without_a_commit_is_a_failure_without_effect() {
    let Place { queue, db: _db, .. } = with_effects(3).await;
    let worker = Worker::with_attempt(queue.clone(), |message: Message<i64>, attempt: Attempt<i64>| async move {
        let transaction = with_effect(&message, &attempt).await?;
        match (message.payload, message.attempts()) {
            (_, 2) => transaction.commit().await?,
            (0, _) => drop(transaction),
            (1, _) => transaction.rollback().await?,
            _ => return Err(Failure::retry("half way")),
        }
        Ok(())
    });
    let runs = Runs::start(worker.retry(RetryPolicy::fixed(Duration::ZERO)));
    drained(&queue).await;
    let summary = runs.stop().await;
    assert_eq!((summary.done, summary.retried, summary.lost), (3, 3, 0), "{summary:?}");
    assert_eq!(effects(&queue).await, [0, 1, 2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn message_never_committed_is_dead_after_its_attempts() {
    let Place { queue, db: _db, .. } = with_effects(1).await;
    let worker = Worker::with_attempt(queue.clone(), |message: Message<i64>, attempt: Attempt<i64>| async move {
        with_effect(&message, &attempt).await.map(drop)
    });
    let runs = Runs::start(worker.retry(RetryPolicy::fixed(Duration::ZERO)));
    drained(&queue).await;
    runs.stop().await;
    let dead = queue.dead_letters(0, 10).await.expect("read");
    assert!(dead.len() == 1 && dead[0].attempt == 5 && dead[0].error.contains("did not commit"), "{dead:?}");
    assert!(effects(&queue).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_that_fails_undoes_the_acknowledgement_with_it() {
    let Place { queue, sql, db: _db, .. } = with_effects(2).await;
    sql.batch_execute("alter table effect add check (of <> 1)").await.expect("altered");
    let worker = Worker::with_attempt(queue.clone(), |message: Message<i64>, attempt: Attempt<i64>| async move {
        let transaction = attempt.transaction().await?;
        transaction.send(&EFFECT, (message.payload,)).await?;
        transaction.commit().await
    });
    let runs = Runs::start(worker.retry(RetryPolicy::fixed(Duration::ZERO)));
    drained(&queue).await;
    assert_eq!(runs.stop().await.done, 1);
    let dead = queue.dead_letters(0, 10).await.expect("read");
    assert!(dead.len() == 1 && dead[0].payload == 1 && dead[0].error.contains("effect_of_check"), "{dead:?}");
    assert_eq!(effects(&queue).await, [0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_lease_gives_no_transaction_and_the_next_one_does() {
    let Place { queue, sql, db: _db, .. } = with_effects(1).await;
    let (begun, lost) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let refused = Arc::new(AtomicUsize::new(0));
    let (tell, until, count) = (begun.clone(), lost.clone(), refused.clone());
    let worker = Worker::with_attempt(queue.clone(), move |message: Message<i64>, attempt: Attempt<i64>| {
        let (tell, until, count) = (tell.clone(), until.clone(), count.clone());
        async move {
            if message.attempts() == 1 {
                tell.notify_one();
                until.notified().await;
            }
            let transaction = match with_effect(&message, &attempt).await {
                Err(error) if error.is_lease_lost() => {
                    count.fetch_add(1, Ordering::Relaxed);
                    return Ok(());
                }
                transaction => transaction?,
            };
            transaction.commit().await
        }
    });
    let runs = Runs::start(worker.wait(Wait::poll())); // polls, because the end of a lease sends no notification
    begun.notified().await;
    run_out(&sql).await;
    eventually("someone else has done it", || async { effects(&queue).await == [0] }).await;
    lost.notify_one();
    eventually("the late one was refused", || async { refused.load(Ordering::Relaxed) == 1 }).await;
    let summary = runs.stop().await;
    assert_eq!((summary.done, summary.lost), (1, 1), "{summary:?}");
    assert_eq!(effects(&queue).await, [0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_that_outlives_its_handler_decides_alone() {
    let Place { queue, sql, db: _db, .. } = with_effects(2).await;
    let ended = Arc::new(AtomicUsize::new(0));
    let (open, until) = watch::channel(true);
    let count = ended.clone();
    let worker = Worker::with_attempt(queue.clone(), move |message: Message<i64>, attempt: Attempt<i64>| {
        let mut until = until.clone();
        async move {
            let transaction = with_effect(&message, &attempt).await?;
            if message.attempts() > 1 {
                return transaction.commit().await;
            }
            tokio::spawn(async move {
                until.wait_for(|open| !open).await.expect("it says so");
                match message.payload {
                    0 => transaction.commit().await.expect("committed"),
                    _ => drop(transaction),
                }
            });
            Ok(())
        }
    })
    .after_attempt(move |_, _| {
        // counts attempts after which the worker has found the transaction still open
        count.fetch_add(1, Ordering::Relaxed);
    });
    let runs = Runs::start(worker.wait(Wait::poll())); // polls, because the end of a lease sends no notification
    eventually("both are left alone", || async { ended.load(Ordering::Relaxed) == 2 }).await;
    assert!(effects(&queue).await.is_empty());
    open.send_replace(false);
    eventually("one was committed", || async { effects(&queue).await == [0] }).await;
    // Expires the remaining lease, so that the other message is delivered again. The update waits
    // for the transaction that acknowledged the first message.
    sql.batch_execute("update trunkline.queue_q set due_at = trunkline.clock() where due_at > clock_timestamp()")
        .await
        .expect("ended");
    drained(&queue).await;
    assert_eq!(effects(&queue).await, [0, 1]);
    let summary = runs.stop().await;
    assert_eq!((summary.done, summary.lost), (1, 2), "{summary:?}");
}

/// Locks the first of two leased rows. The lock blocks the renewal of both leases until the end of
/// the returned transaction.
async fn renewal_held_up<'a>(own: &'a mut Client, sql: &Client) -> tokio_postgres::Transaction<'a> {
    let leased = "select count(*) = 2 from trunkline.queue_q where attempt = 1";
    eventually("both are leased", || async { sql.query_one(leased, &[]).await.expect("visible").get(0) }).await;
    let blocks = own.transaction().await.expect("begun");
    blocks.execute("select from trunkline.queue_q order by id limit 1 for update", &[]).await.expect("locked");
    let waits =
        "select exists (select from pg_stat_activity where wait_event_type = 'Lock' and query like '%do_extend_q%'
                                and datname = current_database())";
    eventually("the renewal waits", || async { sql.query_one(waits, &[]).await.expect("visible").get(0) }).await;
    blocks
}

#[tokio::test(flavor = "multi_thread")]
async fn handler_that_gives_up_early_leaves_acknowledging_to_the_worker() {
    let Place { queue, sql, url, db, .. } = with_effects(0).await;
    let a_row_each = [queue.enqueue(&0).await.expect("enqueued").id(), queue.enqueue(&1).await.expect("enqueued").id()];
    let last = a_row_each.into_iter().max();
    let (works, until_work) = watch::channel(false);
    let (gave_up, mut until_given_up) = watch::channel(0);
    let gave_up = Arc::new(gave_up);
    let worker = Worker::with_attempt(queue.clone(), move |message: Message<i64>, attempt: Attempt<i64>| {
        let (mut works, gave_up, db) = (until_work.clone(), gave_up.clone(), db.clone());
        async move {
            works.wait_for(|works| *works).await.expect("it says so");
            if Some(message.id) == last {
                let theirs = db.begin().await?;
                timeout(Duration::from_millis(100), attempt.ack_in(&theirs))
                    .await
                    .expect_err("the renewal comes first");
                timeout(Duration::from_millis(100), attempt.transaction()).await.expect_err("and here");
                gave_up.send_modify(|times| *times += 1);
            }
            Ok::<_, Failure>(())
        }
    });
    let runs = Runs::start(worker.concurrency(2).lease(Duration::from_secs(9)));
    let mut own = connect(&url).await;
    let blocks = renewal_held_up(&mut own, &sql).await;
    works.send_replace(true);
    timeout(SOON, until_given_up.wait_for(|times| *times == 1)).await.expect("it waits no longer").expect("it says so");
    blocks.rollback().await.expect("rolled back");
    drained(&queue).await;
    let summary = runs.stop().await;
    assert_eq!((summary.done, summary.lost, *until_given_up.borrow()), (2, 0, 1), "{summary:?}");
}

/// The handler begins its transaction while a renewal is already in progress. So the renewal does
/// not wait for the end of the transaction.
#[tokio::test(flavor = "multi_thread")]
async fn open_transaction_holds_up_no_renewal_and_no_later_statement() {
    let Place { queue, sql, url, db: _db, .. } = with_effects(0).await;
    let a_row_each = [queue.enqueue(&0).await.expect("enqueued").id(), queue.enqueue(&1).await.expect("enqueued").id()];
    let last = a_row_each.into_iter().max();
    let (works, until_work) = watch::channel(false);
    let (opened, mut until_opened) = watch::channel(false);
    let (ends, until_end) = watch::channel(false);
    let opened = Arc::new(opened);
    let worker = Worker::with_attempt(queue.clone(), move |message: Message<i64>, attempt: Attempt<i64>| {
        let (mut works, mut ends, opened) = (until_work.clone(), until_end.clone(), opened.clone());
        async move {
            works.wait_for(|works| *works).await.expect("it says so");
            if Some(message.id) != last {
                opened.subscribe().wait_for(|opened| *opened).await.expect("it says so");
                return Ok(());
            }
            let transaction = with_effect(&message, &attempt).await?;
            opened.send_replace(true);
            ends.wait_for(|ends| *ends).await.expect("it says so");
            transaction.commit().await
        }
    });
    let runs = Runs::start(worker.concurrency(2).lease(Duration::from_secs(9)));
    let mut own = connect(&url).await;
    let blocks = renewal_held_up(&mut own, &sql).await;
    works.send_replace(true);
    timeout(Duration::from_millis(300), until_opened.wait_for(|opened| *opened))
        .await
        .expect_err("it does not come before the renewal");
    blocks.rollback().await.expect("rolled back");
    timeout(SOON, until_opened.wait_for(|opened| *opened))
        .await
        .expect("it comes after the renewal")
        .expect("it says so");
    // The worker settles the other message while the transaction is open.
    let settled = "select count(*) = 1 from trunkline.queue_q";
    eventually("the other is done", || async { sql.query_one(settled, &[]).await.expect("visible").get(0) }).await;
    ends.send_replace(true);
    drained(&queue).await;
    assert_eq!(effects(&queue).await.len(), 1);
    let summary = runs.stop().await;
    assert_eq!((summary.done, summary.lost), (2, 0), "{summary:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn released_message_comes_again_without_counting_an_attempt() {
    let Place { queue, db: _db, .. } = with_effects(3).await;
    let worker = Worker::with_attempt(queue.clone(), |message: Message<i64>, attempt: Attempt<i64>| async move {
        if message.attempt <= 9 {
            attempt.release().await?; // for each message, more releases than the queue allows attempts
            return Err(Failure::dead("this does not count"));
        }
        Ok(())
    });
    let runs = Runs::start(worker);
    drained(&queue).await;
    let summary = runs.stop().await;
    assert_eq!((summary.done, summary.released, summary.dead), (3, 27, 0), "{summary:?}");
}

/// The test uses the caller's own transactions, from this library and from `tokio_postgres`.
#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_acknowledged_in_any_transaction() {
    let Place { queue, url, db: _db, .. } = with_effects(2).await;
    let worker = Worker::with_attempt(queue.clone(), move |message: Message<i64>, attempt: Attempt<i64>| {
        let url = url.clone();
        async move {
            if message.payload == 0 {
                let transaction = attempt.queue().db().begin().await?;
                attempt.ack_in(&transaction).await?;
                transaction.commit().await?;
            } else {
                let mut client = connect(&url).await;
                let transaction = client.transaction().await?;
                attempt.ack_in(&transaction).await?;
                transaction.commit().await?;
            }
            Ok::<(), Failure>(())
        }
    });
    let runs = Runs::start(worker);
    drained(&queue).await;
    assert_eq!(runs.stop().await.done, 2);
}

/// The acknowledgement waits for a lock, and the handler gives up before it is sent.
#[tokio::test(flavor = "multi_thread")]
async fn acknowledgement_that_was_not_sent_is_the_worker_s() {
    let Place { queue, url, db: _db, .. } = with_effects(2).await;
    let worker = Worker::with_attempt(queue.clone(), move |message: Message<i64>, attempt: Attempt<i64>| {
        let url = url.clone();
        async move {
            if message.payload == 0 {
                let transaction = attempt.queue().db().begin().await?;
                let holder = connect(&url).await;
                holder.batch_execute("begin; select from trunkline.queue_q for update").await.expect("locked");
                timeout(Duration::from_millis(200), attempt.ack_in(&transaction)).await.expect_err("it waits");
                holder.batch_execute("rollback").await.expect("released");
                transaction.rollback().await?;
            }
            Ok::<(), Failure>(())
        }
    });
    let runs = Runs::start(worker.concurrency(2).lease(Duration::from_secs(3600)));
    drained(&queue).await;
    assert_eq!(runs.stop().await.done, 2);
}
