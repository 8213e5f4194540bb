//! The options of a draft take effect in every way of enqueuing it.

use std::time::{Duration, SystemTime};

use futures_util::{FutureExt, future::BoxFuture};
use tokio_postgres::Client;
use trunkline::{Db, Draft, Metadata, Queue, Settings};

use crate::fixture::{Ids, Place, place};

const HOUR: Duration = Duration::from_secs(3600);

/// Returns drafts that are due immediately, in an hour, at a future time, at a past time, and again
/// in an hour.
fn drafts(time: SystemTime) -> Vec<Draft<i64>> {
    vec![
        Draft::new(0),
        Draft::new(1).after(HOUR).with("tenant", "acme"),
        Draft::new(2).at(time),
        Draft::new(3).at(SystemTime::now() - HOUR).metadata(Metadata::new().with("a", "b").with("c", "d")),
        Draft::new(4).after(HOUR),
    ]
}

pub type Enqueue = fn(Db, Queue<i64>, Vec<Draft<i64>>) -> BoxFuture<'static, Vec<i64>>;

pub const WAYS: [(&str, Enqueue); 6] = [
    ("enqueue", |_, queue, drafts| {
        async move {
            let mut ids = Vec::new();
            for draft in drafts {
                ids.push(queue.enqueue(draft).await.expect("enqueued").id());
            }
            ids
        }
        .boxed()
    }),
    ("enqueue_many", |_, queue, drafts| {
        async move { queue.enqueue_many(drafts).await.expect("enqueued").ids() }.boxed()
    }),
    ("enqueue_in", |db, queue, drafts| {
        async move {
            let (transaction, mut ids) = (db.begin().await.expect("begun"), Vec::new());
            for draft in &drafts {
                ids.push(queue.enqueue_in(&transaction, draft).await.expect("enqueued").id());
            }
            transaction.commit().await.expect("committed");
            ids
        }
        .boxed()
    }),
    ("enqueue_many_in", |db, queue, drafts| {
        async move {
            let transaction = db.begin().await.expect("begun");
            let ids = queue.enqueue_many_in(&transaction, &drafts).await.expect("enqueued").ids();
            transaction.commit().await.expect("committed");
            ids
        }
        .boxed()
    }),
    ("send_enqueue", |db, queue, drafts| {
        async move {
            let (transaction, mut sent) = (db.begin().await.expect("begun"), Vec::new());
            for draft in drafts {
                sent.push(queue.send_enqueue(&transaction, draft).await.expect("sent"));
            }
            transaction.commit().await.expect("committed");
            futures_util::future::try_join_all(sent).await.expect("enqueued").ids()
        }
        .boxed()
    }),
    ("send_enqueue_many", |db, queue, drafts| {
        async move {
            let transaction = db.begin().await.expect("begun");
            let sent = queue.send_enqueue_many(&transaction, drafts).await.expect("sent");
            transaction.commit().await.expect("committed");
            sent.await.expect("enqueued").ids()
        }
        .boxed()
    }),
];

/// Returns ids and due times, in the order of the payloads.
async fn stored(sql: &Client) -> Vec<(i64, SystemTime)> {
    let all = "select q.id + m.k, q.due_at from trunkline.queue_q q,
                      lateral (select generate_series(0, q.size - 1) as k, unnest(q.payload) as payload) m order by m.payload";
    sql.query(all, &[]).await.expect("read").iter().map(|row| (row.get(0), row.get(1))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn delays_times_and_metadata_hold_however_they_are_enqueued() {
    let Place { db, queue, sql, .. } = place::<i64>(Settings::new("int8")).await;
    // PostgreSQL stores a time in whole microseconds, so this time is stored exactly.
    let time = SystemTime::UNIX_EPOCH + Duration::from_micros(4_000_000_000_123_456);
    for (way, enqueue) in WAYS {
        let before = SystemTime::now() - Duration::from_secs(1);
        let ids = enqueue(db.clone(), queue.clone(), drafts(time)).await;
        let after = SystemTime::now() + Duration::from_secs(1);
        let stored = stored(&sql).await;
        assert_eq!(ids, stored.iter().map(|(id, _)| *id).collect::<Vec<_>>(), "{way}: in the order of the messages");
        for (nr, delay) in [(0, Duration::ZERO), (1, HOUR), (3, Duration::ZERO), (4, HOUR)] {
            let due = stored[nr].1;
            assert!((before + delay..after + delay).contains(&due), "{way}: message {nr} is due at {due:?}");
        }
        assert_eq!(stored[2].1, time, "{way}");
        sql.batch_execute("update trunkline.queue_q set due_at = trunkline.clock()").await.expect("brought forward");
        let mut got = queue.take(9).await.expect("taken");
        got.sort_by_key(|message| message.payload);
        let metadata: Vec<Vec<_>> = got.iter().map(|message| message.metadata.iter().collect()).collect();
        assert_eq!(metadata, [vec![], vec![("tenant", "acme")], vec![], vec![("a", "b"), ("c", "d")], vec![]], "{way}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn due_time_out_of_bounds_is_refused_and_nothing_stored() {
    let Place { db, queue, .. } = place::<i64>(Settings::new("int8")).await;
    let endless = || Draft::new(1).at(SystemTime::now() + Duration::from_secs(36_501 * 86_400));
    let transaction = db.begin().await.expect("begun");
    for error in [
        queue.enqueue(endless()).await.expect_err("too late"),
        queue.enqueue_many([Draft::new(0), endless()]).await.expect_err("too late"),
        queue.enqueue_in(&transaction, endless()).await.expect_err("too late"),
        queue.send_direct(endless()).await.expect_err("too late"),
    ] {
        assert!(error.to_string().contains("36,500 days"), "{error}");
    }
    transaction.commit().await.expect("nothing was sent");
    assert_eq!(queue.stats().await.expect("counted").messages, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn payloads_are_taken_by_value_and_by_reference() {
    let Place { queue, .. } = place::<String>(Settings::new("text")).await;
    let mail = "a".to_owned();
    queue.enqueue(&mail).await.expect("enqueued");
    queue.enqueue(Draft::new(&mail)).await.expect("enqueued");
    queue.enqueue_many([&mail, &mail]).await.expect("enqueued");
    queue.enqueue_many(vec![Draft::new(mail.clone())]).await.expect("enqueued");
    queue.enqueue(mail).await.expect("enqueued");
    assert_eq!(queue.enqueue_many(Vec::<String>::new()).await.expect("nothing to do").ids(), [0_i64; 0]);
    assert_eq!(queue.take(9).await.expect("taken").len(), 6);
}
