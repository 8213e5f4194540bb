//! Transactions that send directly and stay open.

use std::{pin::pin, time::Duration};

use tokio::{sync::mpsc, time::timeout};
use trunkline::{Settings, Wait};

use super::{one, waiting};
use crate::fixture::{Place, SOON, connect, eventually, place};

#[tokio::test(flavor = "multi_thread")]
async fn consumer_takes_other_messages_while_a_transaction_that_sends_to_it_stays_open() {
    let Place { queue, sql: client, url, db: _db } = place::<Vec<u8>>(Settings::new("bytea")).await;
    let (told, mut tells) = mpsc::unbounded_channel();
    let mut consumer = queue.consumer(Wait::Notify);
    let receiver = tokio::spawn(async move { while told.send(one(&mut consumer).await.payload).is_ok() {} });
    let mut got = async || timeout(SOON, tells.recv()).await.expect("in time").expect("it receives");
    let mut sender = connect(&url).await;
    let send = "select trunkline.send_direct('q', $1::bytea)";
    for (nr, commits) in [(1_u8, true), (2, false), (3, true)] {
        eventually("the consumer waits", || async { waiting(&client).await == 1 }).await;
        let transaction = sender.transaction().await.expect("begun");
        transaction.execute(send, &[&vec![nr]]).await.expect("sent");
        for other in 10..13 {
            queue.enqueue(vec![other]).await.expect("enqueued");
            assert_eq!(got().await, [other]);
        }
        if commits {
            transaction.commit().await.expect("committed");
            assert_eq!(got().await, [nr]);
        } else {
            transaction.rollback().await.expect("rolled back");
        }
    }
    receiver.abort();
}

/// Each sender finds out whether the consumer that it chose is alive.
#[tokio::test(flavor = "multi_thread")]
async fn sender_does_not_take_another_for_the_session_that_listens() {
    let Place { queue, sql: client, url, db: _db } = place::<Vec<u8>>(Settings::new("bytea")).await;
    let dies = |name: &str| format!("insert into trunkline.waiting values ('{name}', 'q', 1)");
    client.batch_execute(&dies("one")).await.expect("inserted");
    let mut first = connect(&url).await;
    let transaction = first.transaction().await.expect("begun");
    transaction.execute("select trunkline.send_direct('q', '\\x01'::bytea)", &[]).await.expect("enqueued");
    client.batch_execute(&dies("two")).await.expect("inserted");
    queue.send_direct(vec![2]).await.expect("enqueued");
    let stored = queue.take(2).await.expect("taken");
    assert_eq!(stored.iter().map(|message| &message.payload[..]).collect::<Vec<_>>(), [[2]]);
    transaction.rollback().await.expect("rolled back");
}

/// A message that comes too late for its entry in the list may come when the consumer is listed
/// again. The second entry must end with the consumer, or another message would be sent to no
/// consumer.
#[tokio::test(flavor = "multi_thread")]
async fn consumer_that_got_a_late_message_is_not_listed_for_ever() {
    let Place { queue, sql, db: _db, .. } = place::<Vec<u8>>(Settings::new("bytea")).await;
    let mut consumer = queue.consumer(Wait::Notify);
    let receiver = tokio::spawn(async move { (consumer.receive_direct().await.expect("a message"), consumer) });
    eventually("the consumer waits", || async { waiting(&sql).await == 1 }).await;
    let name = sql.query_one("delete from trunkline.waiting returning consumer", &[]).await.expect("as by a sender");
    let name: String = name.get(0);
    sql.batch_execute("notify \"trunkline.q\"").await.expect("the consumer looks");
    eventually("the message is late", || async { waiting(&sql).await == 1 }).await;
    sql.execute("select pg_notify($1, '7168 1700000000000000 AQI=')", &[&name]).await.expect("sent");
    let (message, consumer) = receiver.await.expect("received");
    assert_eq!((message.id, message.payload), (7168, vec![1, 2]));
    drop(consumer);
    eventually("no consumer is listed", || async { waiting(&sql).await == 0 }).await;
    let sent = queue.send_direct(vec![3]).await.expect("enqueued").id();
    assert_eq!(queue.take(1).await.expect("taken")[0].id, sent);
}

/// A program that exits after the end of its consumer must not lose a message that is on its way.
#[tokio::test(flavor = "multi_thread")]
async fn closed_consumer_has_enqueued_the_message_on_its_way() {
    let Place { queue, sql: client, url, db: _db } = place::<Vec<u8>>(Settings::new("bytea")).await;
    let mut consumer = queue.consumer(Wait::Notify);
    tokio::select! {
        outcome = consumer.receive_direct() => panic!("nothing was sent: {outcome:?}"),
        () = eventually("the consumer waits", || async { waiting(&client).await == 1 }) => {}
    }
    let mut sender = connect(&url).await;
    let transaction = sender.transaction().await.expect("begun");
    transaction.execute("select trunkline.send_direct('q', '\\x01'::bytea)", &[]).await.expect("sent");
    let mut closing = pin!(consumer.close_direct());
    let early = timeout(Duration::from_millis(300), &mut closing).await;
    assert!(early.is_err(), "the message is still being sent");
    transaction.commit().await.expect("committed");
    timeout(SOON, closing).await.expect("in time");
    assert_eq!((waiting(&client).await, queue.stats().await.expect("counted").messages), (0, 1));
}

/// The message of a call that was given up is put back by a task, for which the end of the consumer
/// waits, too.
#[tokio::test(flavor = "multi_thread")]
async fn closed_consumer_has_enqueued_the_message_that_had_arrived() {
    let Place { queue, sql: client, url, db: _db } = place::<Vec<u8>>(Settings::new("bytea")).await;
    let mut consumer = queue.consumer(Wait::Notify);
    let sent = async {
        eventually("the consumer waits", || async { waiting(&client).await == 1 }).await;
        client.execute("select trunkline.send_direct('q', '\\x01'::bytea)", &[]).await.expect("sent");
    };
    let (offer, ()) = tokio::join!(consumer.offer_receive_direct(), sent);
    let locking = connect(&url).await;
    locking.batch_execute("begin; lock table trunkline.queue_q in exclusive mode").await.expect("locked");
    drop(offer.expect("a message"));
    let mut closing = pin!(consumer.close_direct());
    let early = timeout(Duration::from_millis(300), &mut closing).await;
    assert!(early.is_err(), "the message cannot be enqueued yet");
    locking.batch_execute("commit").await.expect("committed");
    timeout(SOON, closing).await.expect("in time");
    assert_eq!(queue.stats().await.expect("counted").messages, 1);
}
