//! The reply to a statement that changes the list of waiting consumers is lost. Then the consumer
//! waits for no message that no session sends.

use std::{
    pin::pin,
    time::{Duration, Instant},
};

use tokio::time::timeout;
use tokio_postgres::Client;
use trunkline::{Consumer, Db, Draft, Queue, Settings, Wait};
use trunkline_embedded::DelayProxy;

use super::one;
use crate::fixture::{Place, SOON, cluster, connect, database, place, run_out, through, until_asleep};

/// The time limit for a call that does not wait for a message. A message that was sent directly may
/// take five seconds.
const AT_ONCE: Duration = Duration::from_secs(4);

/// Enqueues a message that is due in an hour.
async fn later(queue: &Queue<Vec<u8>>) {
    queue.enqueue(Draft::new(vec![7]).after(Duration::from_secs(3600))).await.expect("enqueued");
}

/// Makes the message due without a notification. Returns the time in which the consumer takes it.
async fn takes(consumer: &mut Consumer<Vec<u8>>, sql: &Client) -> Duration {
    run_out(sql).await;
    let began = Instant::now();
    assert_eq!(timeout(SOON, one(consumer)).await.expect("in time").payload, [7]);
    began.elapsed()
}

/// Starts a wait, and drops it once the consumer has entered the list after the entry `before`.
/// Returns the new entry.
async fn listed(consumer: &mut Consumer<Vec<u8>>, sql: &Client, before: &str) -> String {
    let entry = async || {
        let rows = sql.query("select xmin::text from trunkline.waiting", &[]).await.expect("read");
        rows.first().map(|row| row.get::<_, String>(0)).filter(|entry| entry != before)
    };
    let mut wait = pin!(consumer.receive_direct());
    let entered = async {
        loop {
            if let Some(entry) = entry().await {
                break entry;
            }
        }
    };
    tokio::select! {
        outcome = &mut wait => panic!("nothing was sent: {outcome:?}"),
        entered = timeout(SOON, entered) => entered.expect("in time"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn consumer_whose_leave_was_not_answered_goes_on_at_once() {
    let proxy = DelayProxy::start("127.0.0.1:0", cluster(), Duration::ZERO).expect("started");
    let url = database().await;
    let sql = connect(&url).await;
    let url = through(&url, &format!("host=127.0.0.1 port={} sslmode=disable", proxy.addr().port()));
    let db = Db::connect(&url).await.expect("connected");
    db.create_queue("q", &Settings::new("bytea")).await.expect("created");
    let queue = db.queue::<Vec<u8>>("q").await.expect("opened");
    // Accepts two slow rounds, because a machine may be busy.
    let mut took = Vec::new();
    while took.len() < 3 && took.iter().all(|took| *took >= AT_ONCE) {
        later(&queue).await;
        let mut consumer = queue.consumer(Wait::Notify);
        let entry = listed(&mut consumer, &sql, "").await;
        listed(&mut consumer, &sql, &entry).await; // this call prepares the statement that leaves the list
        until_asleep(&sql).await;
        proxy.cut_answers_after(Some(0));
        took.push(takes(&mut consumer, &sql).await);
        assert!(!proxy.is_cut_ahead(), "or else the rest proves nothing");
        // A message that is sent later still arrives.
        listed(&mut consumer, &sql, "").await;
        let id = queue.send_direct(vec![8]).await.expect("sent").id();
        let message = timeout(SOON, one(&mut consumer)).await.expect("in time");
        assert_eq!((message.id, message.payload), (id, vec![8]));
    }
    assert!(took.iter().any(|took| *took < AT_ONCE), "a message that never comes is not waited for: {took:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn consumer_whose_entry_failed_goes_on_at_once() {
    let refuses = "raise exception 'no'";
    let breaks = "perform pg_terminate_backend(pg_backend_pid()); perform pg_sleep(60)";
    for (body, is_unknown) in [(refuses, false), (breaks, true)] {
        let Place { queue, sql, db: _db, .. } = place::<Vec<u8>>(Settings::new("bytea")).await;
        let mut took = Vec::new();
        while took.len() < 3 && took.iter().all(|took| *took >= AT_ONCE) {
            later(&queue).await;
            let function = format!(
                "create or replace function fails() returns trigger language plpgsql as $$ begin {body}; return new; end $$;
                 create trigger fails before insert on trunkline.waiting for each row execute function fails()"
            );
            sql.batch_execute(&function).await.expect("created");
            let mut consumer = queue.consumer(Wait::Notify);
            let outcome = timeout(SOON, consumer.receive_direct()).await.expect("in time").expect_err("not listed");
            assert_eq!(outcome.is_outcome_unknown(), is_unknown, "{outcome}");
            sql.batch_execute("drop trigger fails on trunkline.waiting").await.expect("dropped");
            took.push(takes(&mut consumer, &sql).await);
        }
        assert!(took.iter().any(|took| *took < AT_ONCE), "a message that never comes is not waited for: {took:?}");
    }
}
