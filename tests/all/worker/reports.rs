//! Tests the reports of a worker.

use std::time::Duration;

use tokio::{sync::Notify, time::timeout};
use trunkline::{Db, Failure, Message, RetryPolicy, Settings, Worker};

use crate::fixture::{Place, SOON, eventually, place};

async fn number(sql: &tokio_postgres::Client, question: &str) -> i64 {
    sql.query_one(question, &[]).await.expect(question).get(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn report_counts_handled_and_failed_messages_and_their_time() {
    let Place { sql, queue, .. } = place::<i64>(Settings::new("int8")).await;
    queue.enqueue_many(0..100).await.expect("enqueued");
    let worker = Worker::new(queue.clone(), |message: Message<i64>| async move {
        if message.payload % 10 == 0 { Err(Failure::dead("no use")) } else { Ok(()) }
    });
    timeout(SOON, worker.concurrency(7).reports(true).drain()).await.expect("it ends").expect("it works");
    let name = &queue.description().name;
    let of = format!(
        "from trunkline.worker where queue = '{name}' and version = '{}' and hands = 7",
        env!("CARGO_PKG_VERSION")
    );
    assert_eq!(number(&sql, &format!("select sum(handled)::int8 {of}")).await, 100);
    assert_eq!(number(&sql, &format!("select sum(failed)::int8 {of}")).await, 10);
    assert_eq!(
        number(&sql, &format!("select count(distinct worker) {of} and process = {}", std::process::id())).await,
        1
    );
    let last = "and ended and running = 0 and p50 > 0 and p50 <= p99 and p99 < 20 and seconds > 0";
    assert_eq!(number(&sql, &format!("select count(*) {of} {last}")).await, 1, "the end is told, with what was new");
}

/// Even if the task of the first report begins after the worker has shut down, no report may follow
/// the final one.
#[tokio::test(flavor = "multi_thread")]
async fn no_report_follows_the_last_one() {
    let Place { sql, queue, .. } = place::<i64>(Settings::new("int8")).await;
    let drain = || async {
        let worker = Worker::new(queue.clone(), |_message: Message<i64>| async { Ok::<(), Failure>(()) });
        worker.reports(true).drain().await.expect("it works");
    };
    for _ in 0..20 {
        timeout(SOON, futures_util::future::join_all((0..50).map(|_| drain()))).await.expect("they end");
    }
    let newest = "select distinct on (worker) ended from trunkline.worker order by worker, at desc";
    assert_eq!(number(&sql, &format!("select count(*) from ({newest}) w where not ended")).await, 0);
    assert_eq!(number(&sql, &format!("select count(*) from ({newest}) w")).await, 1_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn it_tells_at_its_beginning_and_removes_what_is_old() {
    let Place { sql, queue, .. } = place::<i64>(Settings::new("int8")).await;
    sql.batch_execute(
        "insert into trunkline.worker (at, worker, queue, process, version, started_at, ended, seconds, handled, failed, running, hands)
         select now() - i * interval '30 minutes' - interval '1 minute', gen_random_uuid(), 'gone', 1, '0.0.1', now(), false, 10, 0, 0, 0, 1
         from generate_series(0, 9) i",
    )
    .await
    .expect("there");
    let (stop, name) = (std::sync::Arc::new(Notify::new()), queue.description().name.clone());
    let stopped = stop.clone();
    let worker = Worker::new(queue, |_message: Message<i64>| async { Ok::<(), Failure>(()) }).reports(true);
    let works = tokio::spawn(worker.run(async move { stopped.notified().await }));
    let begun = format!("select count(*) from trunkline.worker where queue = '{name}' and not ended");
    eventually("it tells of itself", || async { number(&sql, &begun).await == 1 }).await;
    assert_eq!(number(&sql, "select count(*) from trunkline.worker where queue = 'gone'").await, 2);
    stop.notify_one();
    timeout(SOON, works).await.expect("it ends").expect("no panic").expect("it works");
}

#[tokio::test(flavor = "multi_thread")]
async fn worker_works_unreported_if_not_asked_or_without_the_table() {
    let Place { sql, queue, .. } = place::<i64>(Settings::new("int8")).await;
    let worker = |reports| {
        let handler = |_message: Message<i64>| async { Ok::<(), Failure>(()) };
        Worker::new(queue.clone(), handler).retry(RetryPolicy::fixed(Duration::ZERO)).reports(reports)
    };
    queue.enqueue(1).await.expect("enqueued");
    assert_eq!(timeout(SOON, worker(false).drain()).await.expect("it ends").expect("it works").done, 1);
    assert_eq!(number(&sql, "select count(*) from trunkline.worker").await, 0);
    sql.batch_execute("drop table trunkline.worker").await.expect("dropped");
    queue.enqueue(2).await.expect("enqueued");
    assert_eq!(timeout(SOON, worker(true).drain()).await.expect("it ends").expect("it works").done, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn consumer_may_report_and_producer_may_not() {
    let Place { url, sql, queue, .. } = place::<i64>(Settings::new("int8")).await;
    for kind in ["consumer", "producer"] {
        let role = format!("a_reporting_{kind}");
        let grant = format!(
            "do $$ begin create role {role} login; exception when duplicate_object then null; end $$;
             select trunkline.grant_rights('{role}', '{kind}', 'q')"
        );
        sql.batch_execute(&grant).await.expect("granted");
        let db = Db::connect(&format!("{url} user={role}")).await.expect("connected");
        if kind == "consumer" {
            queue.enqueue(1).await.expect("enqueued");
            let handler = |_message: Message<i64>| async { Ok::<(), Failure>(()) };
            let worker = Worker::new(db.queue("q").await.expect("opened"), handler).reports(true);
            timeout(SOON, worker.drain()).await.expect("it ends").expect("it works");
        } else {
            let rows: trunkline::Result<Vec<(i64,)>> =
                db.run(&trunkline::postgres::Statement::new("select count(*) from trunkline.worker"), ()).await;
            assert!(rows.is_err(), "{rows:?}");
        }
        assert!(number(&sql, "select count(*) from trunkline.worker").await > 0, "the consumer's");
        sql.batch_execute(&format!("drop owned by {role}; drop role {role}")).await.expect("dropped");
    }
}
