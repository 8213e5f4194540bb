//! Every way to end a message frees its key in the same transaction. No other change frees the key.

use std::time::Duration;

use tokio_postgres::Client;
use trunkline::{Draft, Message, Queue, RetryPolicy, Worker};

use super::{HOUR, held, of, settings};
use crate::fixture::{Ids, Place, Runs, connect, drained, place, run_out};

/// Enqueues the messages of one row: three messages have a key, with other messages in between.
async fn filled(queue: &Queue<i64>) -> Vec<i64> {
    let drafts: Vec<Draft<i64>> =
        (0..9).map(|nr| if nr % 3 == 0 { of(nr, &format!("k{nr}")) } else { Draft::new(nr) }).collect();
    queue.enqueue_many(drafts).await.expect("enqueued").ids()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_end_frees_exactly_the_keys_of_its_messages() {
    let Place { queue, sql, db, .. } = place::<i64>(settings().max_attempts(1)).await;
    for way in [
        "ack",
        "ack part",
        "ack_in",
        "archive",
        "bury",
        "retry",
        "charge",
        "take",
        "take_in",
        "cancel",
        "cancel_in",
        "sql ack",
        "sql ack_many",
        "sql archive",
        "sql bury",
        "sql take",
        "sql cancel",
        "delete",
    ] {
        let ids = filled(&queue).await;
        assert_eq!(held(&sql).await, ["k0", "k3", "k6"], "{way}");
        let named = [ids[0], ids[1], ids[3]];
        let leased: Vec<Message<i64>> = match way {
            "take" | "take_in" | "sql take" | "cancel" | "cancel_in" | "sql cancel" | "delete" | "charge" => Vec::new(),
            _ => queue.lease(9).await.expect("leased"),
        };
        let some: Vec<&Message<i64>> = leased.iter().filter(|message| named.contains(&message.id)).collect();
        let call = |text: String| {
            let sql = &sql;
            async move { sql.batch_execute(&text).await.expect("ended") }
        };
        let mut left = vec!["k6"];
        match way {
            "ack" => {
                queue.ack(&leased).await.expect("held");
                left.clear();
            }
            "ack part" => queue.ack(some).await.expect("held"),
            "ack_in" => {
                let transaction = db.begin().await.expect("begun");
                queue.ack_in(&transaction, some.iter().copied()).await.expect("held");
                assert_eq!(held(&sql).await, ["k0", "k3", "k6"], "not before the commit");
                transaction.rollback().await.expect("rolled back");
                assert_eq!(held(&sql).await, ["k0", "k3", "k6"], "nor after a rollback");
                let transaction = db.begin().await.expect("begun");
                queue.ack_in(&transaction, some).await.expect("held");
                transaction.commit().await.expect("committed");
            }
            "archive" => queue.archive(some).await.expect("held"),
            "bury" => queue.bury(some, "no").await.expect("held"),
            "retry" => queue.retry(some, Duration::ZERO, "it was the last").await.expect("held"),
            "charge" => {
                call(format!(
                    "select trunkline.charge_many('q', array[{}, {}, {}], '{{0,0,0}}')",
                    ids[0], ids[1], ids[3]
                ))
                .await;
            }
            "take" => {
                queue.take(4).await.expect("taken");
            }
            "take_in" => {
                let transaction = db.begin().await.expect("begun");
                assert_eq!(queue.take_in(&transaction, 4).await.expect("taken").len(), 4);
                assert_eq!(held(&sql).await, ["k0", "k3", "k6"], "not before the commit");
                transaction.commit().await.expect("committed");
            }
            "cancel" => assert_eq!(queue.cancel(&named).await.expect("cancelled").len(), 3),
            "cancel_in" => {
                let transaction = db.begin().await.expect("begun");
                assert_eq!(queue.cancel_in(&transaction, &named).await.expect("cancelled").len(), 3);
                transaction.commit().await.expect("committed");
            }
            "sql ack" => {
                call(format!("select trunkline.ack('q', {0}, 1), trunkline.ack('q', {1}, 1)", ids[0], ids[3])).await;
            }
            "sql ack_many" => {
                call(format!("select trunkline.ack_many('q', array[{}, {}], '{{1,1}}')", ids[0], ids[3])).await;
            }
            "sql archive" => {
                call(format!("select trunkline.archive_many('q', array[{}, {}], '{{1,1}}')", ids[0], ids[3])).await;
            }
            "sql bury" => {
                call(format!("select trunkline.bury_many('q', array[{}, {}], '{{1,1}}')", ids[0], ids[3])).await;
            }
            "sql take" => call("select trunkline.take('q', 4)".to_owned()).await,
            "sql cancel" => call(format!("select trunkline.cancel('q', array[{}, {}])", ids[0], ids[3])).await,
            _ => {
                call("delete from trunkline.queue_q".to_owned()).await;
                left.clear();
            }
        }
        assert_eq!(held(&sql).await, left, "{way}");
        queue.purge().await.expect("purged");
        assert!(held(&sql).await.is_empty(), "a purge ends what {way} has left");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_is_emptied_by_hand_leaves_no_keys() {
    let Place { queue, sql, .. } = place::<i64>(settings()).await;
    filled(&queue).await;
    sql.batch_execute("truncate trunkline.queue_q").await.expect("emptied");
    assert!(held(&sql).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_stays_keeps_its_key() {
    let Place { queue, sql, .. } = place::<i64>(settings().max_attempts(5)).await;
    let all = ["k0", "k3", "k6"];
    let ids = filled(&queue).await;
    let leased = queue.lease(2).await.expect("leased"); // splits the other messages of the row off
    assert_eq!(held(&sql).await, all, "lease");
    queue.retry(&leased[..1], Duration::ZERO, "again").await.expect("held");
    assert_eq!(held(&sql).await, all, "retry");
    queue.extend(&leased[1..], HOUR).await.expect("held");
    queue.release(&leased[1..]).await.expect("held");
    assert_eq!(held(&sql).await, all, "release");
    let leased = queue.lease(9).await.expect("leased");
    assert_eq!(leased.len(), 9);
    queue.retry(&leased[3..5], HOUR, "again").await.expect("held");
    run_out(&sql).await;
    assert_eq!(held(&sql).await, all, "a lease that expired");
    queue.reschedule(&ids[..5], HOUR).await.expect("moved");
    assert_eq!(held(&sql).await, all, "reschedule");
    sql.batch_execute(&format!(
        "select trunkline.charge('q', {}, attempt, delay => '1 hour') from trunkline.find('q', {})",
        ids[6], ids[6]
    ))
    .await
    .expect("charged");
    sql.batch_execute("select trunkline.shift('q', '2 hours')").await.expect("moved");
    assert_eq!(held(&sql).await, all, "charge");
    for nr in [0, 3, 6] {
        let found = queue.enqueue(of(100, &format!("k{nr}"))).await.expect("enqueued").id();
        assert_eq!(found, ids[nr], "{nr}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn last_expired_lease_frees_the_key_and_replay_has_none() {
    let Place { queue, sql, .. } = place::<i64>(settings().max_attempts(1)).await;
    let first = queue.enqueue(of(1, "a")).await.expect("enqueued").id();
    queue.lease(1).await.expect("leased");
    run_out(&sql).await;
    assert_eq!(queue.enqueue(of(2, "a")).await.expect("enqueued").id(), first, "no call has found it yet");
    assert!(queue.lease(1).await.expect("buried").is_empty());
    let second = queue.enqueue(of(2, "a")).await.expect("enqueued");
    assert!(second.is_new());
    assert_eq!(queue.replay(&[first]).await.expect("replayed"), 1);
    assert_eq!(queue.enqueue(of(3, "a")).await.expect("enqueued").id(), second.id());
    let both = queue.lease(10).await.expect("leased");
    assert_eq!(both.len(), 2, "it goes on beside the one that has the key");
    queue.ack(both.iter().filter(|message| message.id == first)).await.expect("held");
    assert_eq!(held(&sql).await, ["a"], "its end frees nothing");
    queue.bury(both.iter().filter(|message| message.id == second.id()), "no").await.expect("held");
    queue.discard_all().await.expect("discarded");
    assert!(held(&sql).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn message_ended_by_a_worker_has_no_key() {
    let Place { queue, sql, db: _db, .. } = place::<i64>(settings().max_attempts(2)).await;
    let drafts: Vec<Draft<i64>> = (0..500).map(|nr| of(nr, &nr.to_string())).collect();
    queue.enqueue_many(&drafts).await.expect("enqueued");
    let worker = Worker::new(queue.clone(), |message: Message<i64>| async move {
        if message.payload % 5 == 0 { Err(std::fmt::Error) } else { Ok(()) }
    });
    let runs = Runs::start(worker.retry(RetryPolicy::fixed(Duration::ZERO)));
    drained(&queue).await;
    runs.stop().await;
    assert_eq!(queue.stats().await.expect("counted").dead, 100);
    assert!(held(&sql).await.is_empty());
}

/// A call that requests the key waits for the commit that ends the message, and for nothing else.
#[tokio::test(flavor = "multi_thread")]
async fn key_freed_in_a_transaction_is_free_at_its_commit() {
    let Place { queue, sql, url, .. } = place::<i64>(settings()).await;
    let first = queue.enqueue(of(1, "a")).await.expect("enqueued").id();
    let other: Client = connect(&url).await;
    other.batch_execute("begin; select trunkline.take('q')").await.expect("taken");
    // To other transactions, a message whose end is not committed still exists.
    assert_eq!(queue.enqueue(of(2, "a")).await.expect("enqueued").id(), first);
    other.batch_execute("commit").await.expect("committed");
    assert!(queue.enqueue(of(3, "a")).await.expect("enqueued").is_new());
    assert_eq!(held(&sql).await, ["a"]);
}
