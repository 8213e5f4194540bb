//! Tests many sessions that change messages in the same rows at the same time.

use std::collections::BTreeSet;

use tokio::{task::JoinSet, time::timeout};
use trunkline::{Draft, Settings, postgres::Statement};

use super::{HOUR, NOW};
use crate::fixture::{Place, SOON, connect, enqueued, eventually, place};

const COUNT: i64 = 4096;

/// Returns the number of the share to which a message belongs, from 0 to 3. The messages of a share
/// are scattered over the rows.
fn share_of(id: i64) -> i64 {
    id * 7919 / 8 % 4
}

fn share(ids: &[i64], nr: i64) -> Vec<i64> {
    ids.iter().copied().filter(|id| share_of(*id) == nr).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_message_meets_one_end_whoever_cancels_moves_and_consumes() {
    let Place { queue, db: _db, .. } = place::<i64>(Settings::new("int8")).await;
    let ids = enqueued(&queue, COUNT).await;
    let mut tasks = JoinSet::new();
    for nr in 0..3 {
        // Two tasks cancel the same messages.
        let (queue, mine) = (queue.clone(), share(&ids, nr / 2));
        tasks.spawn(async move {
            let mut gone = Vec::new();
            for few in mine.chunks(37) {
                gone.extend(queue.cancel(few).await.expect("cancelled"));
            }
            gone
        });
    }
    let (other, to_move) = (queue.clone(), share(&ids, 2));
    tasks.spawn(async move {
        for few in to_move.chunks(53) {
            other.reschedule(few, HOUR).await.expect("moved");
            other.reschedule(few, NOW).await.expect("moved");
        }
        Vec::new()
    });
    for n in [5, 200] {
        let queue = queue.clone();
        tasks.spawn(async move {
            let mut done = Vec::new();
            for _ in 0..40 {
                let messages = queue.lease(n).await.expect("leased");
                let lost = queue.ack(&messages).await.map_or_else(|error| error.lost_ids().to_vec(), |()| Vec::new());
                done.extend(messages.iter().map(|message| message.id).filter(|id| !lost.contains(id)));
            }
            done
        });
    }
    let mut ended = Vec::new();
    while let Some(some) = timeout(SOON * 4, tasks.join_next()).await.expect("in time") {
        ended.extend(some.expect("nothing failed"));
    }
    let distinct: BTreeSet<i64> = ended.iter().copied().collect();
    assert_eq!(distinct.len(), ended.len(), "each once");
    let rest = queue.take(COUNT as usize).await.expect("taken");
    assert_eq!(queue.stats().await.expect("counted").messages, 0);
    let all: BTreeSet<i64> = distinct.into_iter().chain(rest.iter().map(|message| message.id)).collect();
    assert_eq!(ended.len() + rest.len(), COUNT as usize, "nothing vanished, and nothing came twice");
    assert_eq!(all, ids.into_iter().collect());
    assert!(rest.iter().all(|message| share_of(message.id) > 1), "what was to be cancelled is nowhere");
}

#[tokio::test(flavor = "multi_thread")]
async fn cancel_waits_for_the_transaction_that_has_the_message() {
    static NOTHING: Statement<(), ()> = Statement::new("select");
    let Place { queue, db, sql, .. } = place::<i64>(Settings::new("int8")).await;
    let ids = enqueued(&queue, 2).await;
    for commits in [false, true] {
        let taker = db.begin().await.expect("begun");
        assert_eq!(queue.take_in(&taker, 1).await.expect("taken").len(), 1);
        let (other, named) = (queue.clone(), ids.clone());
        let cancelling = tokio::spawn(async move { other.cancel(&named[..1]).await });
        let passed = "select count(*) from trunkline.cancel('q', $1)";
        assert_eq!(sql.query_one(passed, &[&&ids[..1]]).await.expect("passed over").get::<_, i64>(0), 0);
        assert!(!cancelling.is_finished(), "it waits");
        // Checks that the library's other statements do not wait for the cancel.
        assert_eq!(queue.stats().await.expect("counted").messages, 2);
        taker.run(&NOTHING, ()).await.expect("so is the transaction itself");
        if commits {
            taker.commit().await.expect("committed");
        } else {
            drop(taker);
        }
        let gone = timeout(SOON, cancelling).await.expect("in time").expect("no panic");
        let expected = if commits { vec![] } else { ids[..1].to_vec() };
        assert_eq!(gone.expect("waited"), expected);
        if !commits {
            let again = "insert into trunkline.queue_q (id, size, payload, due_at) values ($1, 1, '{0}', '2000-01-01')";
            sql.execute(again, &[&ids[0]]).await.expect("put back");
        }
    }
    assert_eq!(queue.cancel(&ids).await.expect("cancelled"), ids[1..]);
}

/// An extension moves the row of its lease behind the other rows in the table. A purge still locks
/// rows in the order of their ids, as a transaction that ends leases does.
#[tokio::test(flavor = "multi_thread")]
async fn purge_and_a_transaction_that_ends_leases_do_not_deadlock() {
    for (keyed, in_sql) in [(false, false), (false, true), (true, false), (true, true)] {
        let settings = Settings::new("int8").partitions(u32::from(keyed));
        let Place { queue, sql, url, .. } = place::<i64>(settings).await;
        let draft = |n| if keyed { Draft::new(n).key("k") } else { Draft::new(n) };
        let (one, two) = (queue.enqueue(draft(1)).await, queue.enqueue(draft(2)).await);
        let (one, two) = (one.expect("enqueued").id(), two.expect("enqueued").id());
        let lease = if keyed { "lease_partition('q', 2)" } else { "lease('q', 2)" };
        sql.batch_execute(&format!("select trunkline.{lease}")).await.expect("leased");
        sql.execute("select trunkline.extend('q', $1, 1, '1 hour')", &[&one]).await.expect("extended");
        let ack = "select trunkline.ack('q', $1, 1)";
        sql.batch_execute("begin").await.expect("begun");
        sql.execute(ack, &[&one]).await.expect("held");
        let other = connect(&url).await;
        let purging = tokio::spawn(async move {
            if in_sql {
                let row = other.query_one("select trunkline.purge('q')", &[]).await.expect("purged");
                row.get::<_, i64>(0).unsigned_abs()
            } else {
                queue.purge().await.expect("purged")
            }
        });
        let waits = "select count(*) from pg_locks l join pg_stat_activity a using (pid)
                     where not l.granted and a.datname = current_database()";
        let asked = async || sql.query_one(waits, &[]).await.expect("asked").get::<_, i64>(0) == 1;
        eventually("the purge waits", asked).await;
        sql.execute(ack, &[&two]).await.expect("no deadlock");
        sql.batch_execute("commit").await.expect("committed");
        assert_eq!(timeout(SOON, purging).await.expect("in time").expect("no panic"), 0);
    }
}
