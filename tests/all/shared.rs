//! Concurrent takes and leases of a queue share statements. Each call receives as many messages as
//! it requested, in order, and gives back only its own messages.

use std::collections::BTreeSet;

use futures_util::{FutureExt, future::join_all};
use tokio::time::timeout;
use tokio_postgres::Client;
use trunkline::{Queue, Settings, Wait};

use crate::fixture::{Place, SOON, connect, enqueued, eventually, ids, place};

/// Locks the queue's table, so that dequeues wait.
async fn holder(url: &str) -> Client {
    let holder = connect(url).await;
    holder.batch_execute("begin; lock table trunkline.queue_q in access exclusive mode").await.expect("locked");
    holder
}

async fn until_one_waits(sql: &Client) {
    let waiting = "select count(*) from pg_stat_activity
                   where wait_event_type = 'Lock' and query like '%do_lease_q%' and datname = current_database()";
    eventually("a statement waits, and no other does", || async {
        sql.query_one(waiting, &[]).await.expect("visible").get::<_, i64>(0) == 1
    })
    .await;
}

/// Starts one call for each number of messages in `asks`. The first call is sent, and the other
/// calls wait for it.
async fn leases(queue: &Queue<i64>, sql: &Client, asks: &[usize]) -> Vec<tokio::task::JoinHandle<Vec<i64>>> {
    let mut calls = Vec::new();
    for n in asks.iter().copied() {
        let mut call = Box::pin({
            let queue = queue.clone();
            async move { ids(&queue.lease(n).await.expect("leased")) }
        });
        assert!((&mut call).now_or_never().is_none(), "the table is held");
        calls.push(tokio::spawn(call));
        until_one_waits(sql).await;
    }
    calls
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_waiting_for_a_dequeue_share_the_next_in_order() {
    let Place { url, queue, sql, db: _db } = place::<i64>(Settings::new("int8")).await;
    let all = enqueued(&queue, 100).await;
    let holder = holder(&url).await;
    let asks = [1, 10, 3, 40, 7, 50];
    let calls = leases(&queue, &sql, &asks).await;
    holder.batch_execute("commit").await.expect("let go");
    let got: Vec<Vec<i64>> = join_all(calls).await.into_iter().map(|ids| ids.expect("no panic")).collect();
    let mut left = &all[..];
    for (ids, ask) in got.iter().zip(asks) {
        let (mine, behind) = left.split_at(ask.min(left.len()));
        assert_eq!(ids, mine, "of {ask}");
        left = behind;
    }
    let statements = "select count(distinct xmin::text) from trunkline.queue_q";
    assert_eq!(sql.query_one(statements, &[]).await.expect("read").get::<_, i64>(0), 2, "five shared one");
}

#[tokio::test(flavor = "multi_thread")]
async fn dropped_call_gives_back_only_its_own_messages() {
    let Place { url, queue, sql, db: _db } = place::<i64>(Settings::new("int8")).await;
    let all = enqueued(&queue, 30).await;
    let holder = holder(&url).await;
    let mut calls = leases(&queue, &sql, &[1, 9, 10, 10]).await;
    let dropped = calls.remove(2);
    holder.batch_execute("commit").await.expect("let go");
    dropped.abort(); // the statement of the dropped call may not have begun, be running, or have ended
    let mut got: BTreeSet<i64> = dropped.await.unwrap_or_default().into_iter().collect();
    for call in calls {
        assert!(call.await.expect("no panic").iter().all(|id| got.insert(*id)), "no other call got them");
    }
    let mut consumer = queue.consumer(Wait::Notify);
    while got.len() < 30 {
        let more = timeout(SOON, consumer.lease(30)).await.expect("the others come again").expect("leased");
        assert!(more.iter().all(|message| got.insert(message.id)), "and only they");
    }
    assert_eq!(got, all.into_iter().collect());
}

#[tokio::test(flavor = "multi_thread")]
async fn call_dropped_before_its_statement_dequeues_nothing() {
    let Place { url, queue, sql, db: _db } = place::<i64>(Settings::new("int8")).await;
    enqueued(&queue, 20).await;
    let holder = holder(&url).await;
    let calls = leases(&queue, &sql, &[1]).await;
    let mut away = Box::pin(queue.take(10));
    assert!((&mut away).now_or_never().is_none());
    drop(away);
    holder.batch_execute("commit").await.expect("let go");
    join_all(calls).await;
    assert_eq!(queue.stats().await.expect("counted").messages, 20);
    assert_eq!(queue.lease(20).await.expect("leased").len(), 19, "in their order, and none was taken and put back");
}
