//! A consumer that waits without work sends no statement, but still receives notifications.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{sync::Notify, task::JoinHandle, time::timeout};
use tokio_postgres::Client;
use trunkline::{Dequeue, Draft, Message, Queue, Result, Settings, Wait};

use crate::fixture::{Ids, Place, SOON, connect, eventually, move_time, place};

const LIBRARY: &str = "from pg_stat_activity where application_name = 'trunkline' and datname = current_database()";

/// Starts a consumer. Its timeout is longer than everything that the test does before it wakes the
/// consumer.
fn sleeper(queue: &Queue<i64>, wait: Wait) -> JoinHandle<Result<Vec<Message<i64>>>> {
    let mut consumer = queue.consumer(wait);
    tokio::spawn(async move { timeout(SOON * 5, consumer.lease(1)).await.expect("it is woken") })
}

/// Returns the process id, the last statement and its times, for each of the library's connections.
async fn last_words(sql: &Client) -> Vec<(i32, String)> {
    let words =
        format!("select pid, query_start::text || ' ' || state_change::text || ' ' || query {LIBRARY} order by pid");
    sql.query(&words, &[]).await.expect("visible").iter().map(|row| (row.get(0), row.get(1))).collect()
}

/// Waits until the library is listening and its test notification has arrived. Then waits until all
/// connections have been idle for longer than the poll interval of a consumer that cannot listen.
async fn until_silent(sql: &Client) {
    let silent = format!(
        "select coalesce(bool_or(query like 'listen \"trunkline.q\"%'), false) and not bool_or(query like 'notify%')
                and max(state_change) < clock_timestamp() - interval '300 ms' {LIBRARY}"
    );
    eventually("the library listens and is silent", || async {
        sql.query_one(&silent, &[]).await.expect("visible").get(0)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_consumer_sends_nothing() {
    for wait in [Wait::Notify, Wait::Adaptive] {
        let Place { queue, sql, db: _db, .. } = place::<i64>(Settings::new("int8")).await;
        // a message that stays delayed must not cause statements
        queue.enqueue(Draft::new(0).after(Duration::from_secs(3600))).await.expect("enqueued");
        let sleepers: Vec<_> = (0..5).map(|_| sleeper(&queue, wait)).collect();
        until_silent(&sql).await;
        // Checks that the consumers send no statement while unrelated notifications and changes of
        // tables occur. The check lasts long enough to notice a poll. It is repeated, because the
        // last dequeue before the consumers listen may be late.
        eventually(&format!("{wait:?}: not a statement for a second"), || async {
            let (before, began) = (last_words(&sql).await, Instant::now());
            while began.elapsed() < Duration::from_secs(1) {
                sql.batch_execute("notify elsewhere; create temporary table t (); drop table t")
                    .await
                    .expect("no matter");
            }
            // at least the connection for dequeues and the one that listens exist
            before.len() >= 2 && last_words(&sql).await == before
        })
        .await;

        let ids = queue.enqueue_many(&[1, 2, 3, 4, 5]).await.expect("enqueued").ids();
        let mut got = Vec::new();
        for sleeper in sleepers {
            let messages = sleeper.await.expect("no panic").expect("leased");
            got.extend(messages.iter().map(|message| message.id));
        }
        got.sort_unstable();
        assert_eq!(got, ids, "{wait:?}: and all are awake at once");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_consumer_hears_again_after_its_listener_was_terminated() {
    for wait in [Wait::Notify, Wait::Adaptive] {
        let Place { queue, sql, db: _db, .. } = place::<i64>(Settings::new("int8")).await;
        let waiter = sleeper(&queue, wait);
        until_silent(&sql).await;
        let end = format!("select pid, pg_terminate_backend(pid) {LIBRARY} and query like 'listen%'");
        let old: i32 = sql.query_one(&end, &[]).await.expect("there is one listener").get(0);
        let again = format!("select count(*) = 1 {LIBRARY} and query like 'listen \"trunkline.q\"%' and pid <> {old}");
        eventually("it listens again", || async { sql.query_one(&again, &[]).await.expect("visible").get(0) }).await;
        until_silent(&sql).await; // the consumer does not poll any more, so the next message arrives by notification
        let id: i64 = sql.query_one("select trunkline.enqueue('q', 7::bigint)", &[]).await.expect("enqueued").get(0);
        let messages = waiter.await.expect("no panic").expect("leased");
        assert_eq!((messages[0].id, messages[0].payload), (id, 7), "{wait:?}");
    }
}

/// The periodic poll is the safety net: a row that was inserted manually sends no notification.
#[tokio::test]
async fn message_without_notification_is_found_after_half_a_minute() {
    for wait in [Wait::Notify, Wait::Adaptive] {
        let Place { queue, sql, db: _db, .. } = place::<i64>(Settings::new("int8")).await;
        let asleep = Arc::new(Notify::new());
        let sleeps = asleep.clone();
        let mut consumer = queue.consumer(wait).before_wait(move || sleeps.notify_one());
        let began = Instant::now();
        let waiter = tokio::spawn(async move { consumer.lease(1).await });
        asleep.notified().await;
        until_silent(&sql).await;
        let before = last_words(&sql).await;
        sql.batch_execute("insert into trunkline.queue_q (size, payload) values (1, '{7}')").await.expect("inserted");
        // The consumer probes again half a minute after its last probe, so the time since `began`
        // is subtracted.
        let almost = Duration::from_secs(29).saturating_sub(began.elapsed());
        for by in [Duration::ZERO, almost] {
            move_time(by).await;
            sql.batch_execute("notify elsewhere").await.expect("no matter");
            let now = last_words(&sql).await;
            // more than half a minute has really passed, because the machine stalled
            let is_over = began.elapsed() + by >= Duration::from_secs(30);
            assert!(now == before || is_over, "{wait:?}: not a statement after {by:?}: {before:?}, then {now:?}");
        }
        move_time(Duration::from_secs(31).saturating_sub(almost)).await;
        let messages = timeout(SOON, waiter).await.expect("the slow poll finds it").expect("no panic").expect("leased");
        assert_eq!(messages[0].payload, 7, "{wait:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn wait_with_a_limit_returns_in_time_with_nothing() {
    for wait in [Wait::poll(), Wait::Notify, Wait::Adaptive] {
        let Place { queue, db: _db, .. } = place::<i64>(Settings::new("int8")).await;
        let mut consumer = queue.consumer(wait);
        for longest in [Duration::ZERO, Duration::from_millis(40)] {
            let began = Instant::now();
            assert_eq!(consumer.lease(Dequeue::up_to(3).within(longest)).await.expect("asked"), [], "{wait:?}");
            assert_eq!(consumer.take(Dequeue::up_to(3).within(longest)).await.expect("asked"), [], "{wait:?}");
            assert!((2 * longest..SOON).contains(&began.elapsed()), "{wait:?}: {:?}", began.elapsed());
        }
        queue.enqueue_many(&[1, 2]).await.expect("enqueued");
        let messages = consumer.lease(Dequeue::up_to(1).within(Duration::ZERO)).await.expect("leased");
        assert_eq!(messages.iter().map(|message| (message.payload, message.attempt)).collect::<Vec<_>>(), [(1, 1)]);
        assert_eq!(consumer.take(Dequeue::up_to(1).within(Duration::MAX)).await.expect("taken")[0].payload, 2);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn wait_with_a_limit_is_woken_by_a_message() {
    let Place { queue, db: _db, .. } = place::<i64>(Settings::new("int8")).await;
    let asleep = Arc::new(Notify::new());
    let sleeps = asleep.clone();
    let mut consumer = queue.consumer(Wait::Notify).before_wait(move || sleeps.notify_one());
    let waiter = tokio::spawn(async move { consumer.lease(Dequeue::up_to(1).within(Duration::from_secs(3600))).await });
    asleep.notified().await;
    queue.enqueue(7).await.expect("enqueued");
    let messages = timeout(SOON, waiter).await.expect("it is woken").expect("no panic").expect("leased");
    assert_eq!(messages[0].payload, 7);
}

/// The call's limit passes while its statement waits for a lock. The call waits for the statement,
/// and returns the message.
#[tokio::test(flavor = "multi_thread")]
async fn timed_out_call_leases_nothing() {
    let Place { url, queue, sql, db: _db } = place::<i64>(Settings::new("int8").max_attempts(1)).await;
    queue.enqueue(7).await.expect("enqueued");
    let own = connect(&url).await;
    own.batch_execute("begin; lock table trunkline.queue_q in access exclusive mode").await.expect("locked");
    let (began, longest) = (Instant::now(), Duration::from_millis(10));
    let mut consumer = queue.consumer(Wait::Notify);
    let waiter = tokio::spawn(async move { consumer.lease(Dequeue::up_to(1).within(longest)).await });
    let waits =
        "select exists (select from pg_stat_activity where wait_event_type = 'Lock' and query like '%do_lease_q%'
                                and datname = current_database())";
    eventually("it waits, and longer than it should", || async {
        began.elapsed() > 3 * longest && sql.query_one(waits, &[]).await.expect("visible").get(0)
    })
    .await;
    own.batch_execute("rollback").await.expect("unlocked");
    let messages = timeout(SOON, waiter).await.expect("answered").expect("no panic").expect("leased");
    assert_eq!(messages.iter().map(|message| (message.payload, message.attempt)).collect::<Vec<_>>(), [(7, 1)]);
    queue.ack(&messages).await.expect("it is the caller's");
}

/// The statement, which serves this and other consumers, starts before the time limit and finds
/// nothing.
#[tokio::test]
async fn wait_with_a_limit_returns_after_an_empty_statement() {
    let Place { url, queue, sql, db: _db } = place::<i64>(Settings::new("int8")).await;
    let own = connect(&url).await;
    let (asleep, longest) = (Arc::new(Notify::new()), Duration::from_secs(3600));
    let sleeps = asleep.clone();
    let mut consumer = queue.consumer(Wait::Notify).before_wait(move || sleeps.notify_one());
    let waiter = tokio::spawn(async move { consumer.lease(Dequeue::up_to(1).within(longest)).await });
    asleep.notified().await;
    until_silent(&sql).await; // before it listens, the consumer probes again, and a probe would wait for the table
    own.batch_execute("begin; lock table trunkline.queue_q in access exclusive mode").await.expect("locked");
    sql.batch_execute("notify \"trunkline.q\"").await.expect("rung");
    let waits =
        "select exists (select from pg_stat_activity where wait_event_type = 'Lock' and query like '%do_lease_q%'
                                and datname = current_database())";
    eventually("its statement waits", || async { sql.query_one(waits, &[]).await.expect("visible").get(0) }).await;
    move_time(longest + Duration::from_secs(1)).await; // waits until the limit of the call has passed
    own.batch_execute("rollback").await.expect("unlocked");
    let messages = timeout(SOON, waiter).await.expect("its time is up").expect("no panic").expect("asked");
    assert_eq!(messages, []);
}
