//! A message replaces the waiting message with the same key, if its draft requests that. So the
//! last message in a series counts.

use std::time::{Duration, SystemTime};

use trunkline::{Draft, Enqueued, Queue, State, Unique};

use super::{HOUR, of, settings};
use crate::fixture::{Ids, Place, connect, place, run_out};

fn replacing(payload: i64, key: &str) -> Draft<i64> {
    Draft::new(payload).unique(Unique::key(key).replacing())
}

async fn payload(queue: &Queue<i64>, id: i64) -> i64 {
    queue.find(id).await.expect("looked for").expect("there").payload
}

#[tokio::test(flavor = "multi_thread")]
async fn replaced_message_gets_new_payload_metadata_and_due_time() {
    let Place { queue, .. } = place::<i64>(settings()).await;
    let drafts: Vec<Draft<i64>> = (0..100).map(|nr| of(nr, &nr.to_string())).collect();
    let ids = queue.enqueue_many(&drafts).await.expect("enqueued").ids();
    let again = replacing(1007, "7").after(HOUR).with("tenant", "acme");
    assert_eq!(queue.enqueue(again).await.expect("enqueued"), Enqueued::Replaced(ids[7]));
    let found = queue.find(ids[7]).await.expect("looked for").expect("there");
    assert_eq!((found.payload, found.state, found.metadata.get("tenant")), (1007, State::Delayed, Some("acme")));
    let at = SystemTime::now() + HOUR * 2;
    queue.enqueue(replacing(2007, "7").at(at)).await.expect("enqueued");
    let found = queue.find(ids[7]).await.expect("looked for").expect("there");
    assert!(found.metadata.is_empty());
    let due = found.due_at.expect("it waits");
    assert!(due.max(at).duration_since(due.min(at)).expect("ordered") < Duration::from_millis(1), "{due:?}");
    // Enqueues many messages in one row, some of them several times in one call. The last one
    // counts.
    let many = [(1, "1"), (2, "2"), (3, "1"), (4, "new"), (5, "new"), (6, "7")];
    let all = queue.enqueue_many(many.map(|(payload, key)| replacing(payload, key))).await.expect("enqueued");
    assert_eq!(all[..3], [ids[1], ids[2], ids[1]].map(Enqueued::Replaced));
    assert!(all[3].is_new() && all[4] == Enqueued::Replaced(all[3].id()), "{all:?}");
    for (id, is) in [(ids[0], 0), (ids[1], 3), (ids[2], 2), (ids[3], 3), (all[3].id(), 5), (ids[7], 6), (ids[8], 8)] {
        assert_eq!(payload(&queue, id).await, is);
    }
    assert_eq!(queue.stats().await.expect("counted").messages, 101);
    // The replaced messages are due now, and each message exists exactly once.
    let mut taken: Vec<i64> = queue.take(200).await.expect("taken").iter().map(|message| message.id).collect();
    taken.sort_unstable();
    taken.dedup();
    assert_eq!(taken.len(), 101);
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_message_is_replaced_and_a_leased_one_is_not() {
    let Place { queue, sql, url, .. } = place::<i64>(settings().max_attempts(5)).await;
    let id = queue.enqueue(of(1, "k")).await.expect("enqueued").id();
    let leased = queue.lease(1).await.expect("leased");
    assert_eq!(queue.enqueue(replacing(2, "k")).await.expect("enqueued"), Enqueued::Duplicate(id));
    assert_eq!(payload(&queue, id).await, 1);
    queue.retry(&leased, HOUR, "no").await.expect("held");
    assert_eq!(queue.enqueue(replacing(3, "k")).await.expect("enqueued"), Enqueued::Replaced(id));
    let again = queue.lease(1).await.expect("due now");
    assert_eq!((again[0].payload, again[0].attempt), (3, 2), "what was charged stays charged");
    run_out(&sql).await;
    assert_eq!(queue.enqueue(replacing(4, "k").after(HOUR)).await.expect("enqueued"), Enqueued::Replaced(id));
    assert!(queue.ack(&again).await.expect_err("its lease had ended").is_lease_lost());
    // Another transaction has locked the message. The call does not wait for that transaction.
    let other = connect(&url).await;
    other.batch_execute("begin; select from trunkline.queue_q for update").await.expect("locked");
    assert_eq!(queue.enqueue(replacing(5, "k")).await.expect("enqueued"), Enqueued::Duplicate(id));
    other.batch_execute("rollback").await.expect("let go");
    assert_eq!(payload(&queue, id).await, 4);
    // A key that is kept for a time stays claimed for that time, even if its message has ended.
    let timed = || Draft::new(1).unique(Unique::key("timed").within(HOUR).replacing());
    let id = queue.enqueue(timed()).await.expect("enqueued").id();
    queue.cancel(&[id]).await.expect("cancelled");
    assert_eq!(queue.enqueue(timed()).await.expect("enqueued"), Enqueued::Duplicate(id));
}

/// Each taken message was current when it was taken, and no new message is lost.
#[tokio::test(flavor = "multi_thread")]
async fn simultaneous_replacements_and_takes_lose_nothing() {
    let Place { queue, db: _db, .. } = place::<i64>(settings().max_batch(16)).await;
    let producers = (0..8_i64).map(|producer| {
        let queue = queue.clone();
        tokio::spawn(async move {
            let mut stored = 0;
            for nr in 0..100_i64 {
                let draft = replacing(producer * 1000 + nr, &(nr % 10).to_string());
                stored += u64::from(queue.enqueue(draft).await.expect("no call errs").is_new());
            }
            stored
        })
    });
    let producers: Vec<_> = producers.collect();
    let taken = {
        let queue = queue.clone();
        tokio::spawn(async move {
            let mut taken = 0;
            for _ in 0..200 {
                taken += queue.take(3).await.expect("taken").len() as u64;
            }
            taken
        })
    };
    let mut stored = 0;
    for producer in producers {
        stored += producer.await.expect("no panic");
    }
    let taken = taken.await.expect("no panic");
    assert_eq!(stored, taken + queue.stats().await.expect("counted").messages);
    assert!(queue.stats().await.expect("counted").messages <= 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_that_do_not_count_from_one_replace_and_end() {
    let Place { queue, sql, db: _db, .. } = place::<i64>(settings()).await;
    let id = queue.enqueue(of(1, "k")).await.expect("enqueued").id();
    queue.lease(1).await.expect("leased");
    let call = "set statement_timeout = '10s';
                create temp table found as
                select id, outcome from trunkline.enqueue_unique_many('q', array[2::int8], '[0:0]={k}'::text[], replace => true)";
    sql.batch_execute(call).await.expect("it ends");
    let found = sql.query_one("select id, outcome from found", &[]).await.expect("read");
    assert_eq!((found.get::<_, i64>(0), found.get::<_, &str>(1)), (id, "duplicate"));
}

#[tokio::test(flavor = "multi_thread")]
async fn metadata_in_two_dimensions_stays_with_its_messages() {
    let Place { sql, db: _db, .. } = place::<i64>(settings()).await;
    let call = "select trunkline.enqueue_unique_many('q', array[1, 2, 3]::int8[], array['a', 'b', 'a'],
                metadata => array[[null], ['{\"n\": \"2\"}'], ['{\"n\": \"3\"}']]::jsonb[], replace => true)";
    sql.batch_execute(call).await.expect("enqueued");
    let found = "select string_agg(payload || coalesce(metadata->>'n', '-'), ' ' order by payload) from trunkline.messages('q')";
    let found: String = sql.query_one(found, &[]).await.expect("read").get(0);
    assert_eq!(found, "22 33");
}
