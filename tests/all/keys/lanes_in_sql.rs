//! Clients in other languages lease partitions through the SQL functions.

use tokio_postgres::{Client, error::SqlState};
use trunkline::Settings;

use super::{nth, settings};
use crate::fixture::{Place, connect, place, run_out};

async fn leased(sql: &Client, call: &str) -> Vec<(i64, i32, String, String)> {
    let rows = sql.query(&format!("select id, attempt, key, payload from trunkline.{call} order by 1"), &[]).await;
    rows.expect(call).iter().map(|row| (row.get(0), row.get(1), row.get(2), row.get(3))).collect()
}

async fn holder(sql: &Client, n: i32) -> Option<i64> {
    let rows = sql.query("select holder from trunkline.lease_partition('q', $1)", &[&n]).await.expect("leased");
    rows.first().map(|row| row.get(0))
}

/// Leases the first message, retries it after `delay`, and releases the partition.
async fn first_fails(sql: &Client, delay: &str) {
    let lease = "select holder, id, attempt from trunkline.lease_partition('q', 1)";
    let row = sql.query_one(lease, &[]).await.expect("leased");
    let (holder, id, attempt): (i64, i64, i32) = (row.get(0), row.get(1), row.get(2));
    sql.batch_execute(&format!(
        "select trunkline.retry('q', {id}, {attempt}, '{delay}'); select trunkline.release_partition('q', {holder})"
    ))
    .await
    .expect("retried and released");
}

#[tokio::test]
async fn partition_is_leased_whole_by_one_holder_until_released() {
    let Place { queue, sql, url, .. } = place::<i64>(settings().partitions(1)).await;
    let other = connect(&url).await;
    queue.enqueue_many(&(0..6).map(|place| nth(0, place)).collect::<Vec<_>>()).await.expect("enqueued");
    let mine = holder(&sql, 2).await.expect("a lane");
    assert_eq!(holder(&other, 9).await, None, "it has a holder");
    let more = leased(&sql, &format!("more('q', {mine}, 2)")).await;
    assert_eq!(more.iter().map(|(.., payload)| &**payload).collect::<Vec<_>>(), ["2", "3"]);
    assert!(
        !sql.query_one("select trunkline.release_partition('q', $1)", &[&mine]).await.expect("asked").get::<_, bool>(0)
    );
    sql.batch_execute("select trunkline.release('q', id + k, attempt) from trunkline.queue_q, generate_series(0, size - 1) k where attempt > 0")
        .await
        .expect("released");
    assert!(
        sql.query_one("select trunkline.release_partition('q', $1)", &[&mine]).await.expect("asked").get::<_, bool>(0)
    );
    let theirs = leased(&other, "lease_partition('q', 9)").await;
    assert_eq!(theirs.iter().map(|(.., payload)| &**payload).collect::<Vec<_>>(), ["0", "1", "2", "3", "4", "5"]);
    let error = sql.query(&format!("select * from trunkline.more('q', {mine})"), &[]).await.expect_err("not any more");
    assert_eq!(error.code().map(SqlState::code), Some("TL001"));
}

#[tokio::test]
async fn partition_is_not_released_while_messages_are_being_leased_from_it() {
    let Place { queue, sql, url, .. } = place::<i64>(settings().partitions(1)).await;
    let other = connect(&url).await;
    queue.enqueue_many(&(0..4).map(|place| nth(0, place)).collect::<Vec<_>>()).await.expect("enqueued");
    let mine = holder(&sql, 1).await.expect("a lane");
    sql.batch_execute("select trunkline.ack('q', id, attempt) from trunkline.queue_q where attempt > 0")
        .await
        .expect("acknowledged");
    sql.batch_execute("begin").await.expect("begun");
    let second = leased(&sql, &format!("more('q', {mine}, 1)")).await;
    assert_eq!(second[0].3, "1");
    // The release must not free the partition, because an owner that lost its connection may not
    // know of the second message.
    let release = other.query_one("select trunkline.release_partition('q', $1)", &[&mine]).await.expect("asked");
    sql.batch_execute("commit").await.expect("committed");
    assert_eq!(holder(&other, 9).await, None, "the third must wait for the second");
    assert!(!release.get::<_, bool>(0));
}

#[tokio::test]
async fn a_late_holder_changes_nothing() {
    let Place { queue, sql, url, .. } = place::<i64>(settings().partitions(1)).await;
    let other = connect(&url).await;
    queue.enqueue_many(&[nth(0, 0), nth(0, 1)]).await.expect("enqueued");
    let late = leased(&sql, "lease_partition('q', 2)").await;
    sql.batch_execute(
        "update trunkline.queue_q set due_at = clock_timestamp() - interval '1 s'; update trunkline.lane_q set held_until = clock_timestamp()",
    )
    .await
    .expect("the leases ended");
    let (first, attempt, ..) = late[0].clone();
    let error = sql.query("select trunkline.ack('q', $1, $2)", &[&first, &attempt]).await.expect_err("late");
    assert_eq!(error.code().map(SqlState::code), Some("TL001"), "before another holder has it");
    let theirs = leased(&other, "lease_partition('q', 2)").await;
    assert_eq!((theirs[0].0, theirs[0].1), (first, 2));
    let error = sql.query("select trunkline.ack('q', $1, $2)", &[&first, &attempt]).await.expect_err("late");
    assert_eq!(error.code().map(SqlState::code), Some("TL001"), "also when the other holds it");
    other.query("select trunkline.ack('q', $1, 2)", &[&first]).await.expect("theirs");
}

#[tokio::test]
async fn key_has_the_same_partition_in_sql_and_rust() {
    let Place { queue, sql, .. } = place::<i64>(Settings::new("int8").partitions(200)).await;
    for key in 0..50 {
        queue.enqueue(nth(key, 0)).await.expect("enqueued");
    }
    let wrong = "select count(*) from trunkline.queue_q where lane <> trunkline.lane_of(keys[1], 200)";
    assert_eq!(sql.query_one(wrong, &[]).await.expect("read").get::<_, i64>(0), 0);
    let ids = "select array_agg(i) from trunkline.enqueue_many('q', array(select generate_series(1, 50))::int8[],
                                          keys => array(select 'key ' || k % 7 from generate_series(1, 50) k)) i";
    let ids: Vec<i64> = sql.query_one(ids, &[]).await.expect("enqueued").get(0);
    for (at, id) in ids.iter().enumerate() {
        let found = queue.find(*id).await.expect("looked").expect("there");
        assert_eq!(found.payload, at as i64 + 1, "the ids come in the order of the payloads");
    }
}

/// A caller that forgets to give back the messages behind a failed one cannot acknowledge them
/// before the failed one.
#[tokio::test]
async fn message_behind_its_keys_failure_is_not_acknowledged_first() {
    let Place { queue, sql, .. } = place::<i64>(settings().partitions(1)).await;
    let drafts: Vec<_> = (0..3).map(|place| nth(0, place)).chain([nth(1, 0)]).collect();
    queue.enqueue_many(&drafts).await.expect("enqueued");
    let mut held = leased(&sql, "lease_partition('q', 9)").await;
    let other_key = held.remove(held.iter().position(|(_, _, key, _)| key == "key 1").expect("one of another key"));
    let [first, second, third] = &held[..] else { panic!("{held:?}") };
    let settle = async |verb: &str, ids: &[i64]| {
        let attempts = vec![1; ids.len()];
        sql.execute(&format!("select trunkline.{verb}_many('q', $1, $2)"), &[&ids, &attempts]).await
    };
    // As long as no message has failed, acknowledgements may arrive in any order, because the
    // handlers ran in order.
    settle("ack", &[second.0]).await.expect("its own");
    sql.execute("select trunkline.retry('q', $1, 1, '1 hour')", &[&first.0]).await.expect("its own");
    for verb in ["ack", "archive"] {
        let error = settle(verb, &[other_key.0, third.0]).await.expect_err("it stands behind the first");
        let error = error.as_db_error().expect("the server's");
        assert_eq!(error.code().code(), "TL001");
        assert!(error.message().contains(&format!("message {} of queue", third.0)), "{error}");
        assert!(error.hint().is_some_and(|hint| hint.contains("trunkline.release")), "{error}");
    }
    settle("ack", &[other_key.0]).await.expect("another key");
    settle("release", &[third.0]).await.expect("given back");
    sql.batch_execute("select trunkline.shift('q', '1 hour')").await.expect("shifted");
    let again = leased(&sql, "lease_partition('q', 9)").await;
    assert_eq!(again.iter().map(|(.., payload)| &**payload).collect::<Vec<_>>(), ["0", "2"]);
    for (id, attempt, ..) in again {
        sql.execute("select trunkline.ack('q', $1, $2)", &[&id, &attempt]).await.expect("in order");
    }
    assert!(leased(&sql, "lease_partition('q', 9)").await.is_empty());
}

/// Postgres has no arrays of arrays. So such payloads use a domain, which no aggregate can collect.
#[tokio::test]
async fn arrays_are_enqueued_in_the_rows_of_their_keys() {
    let Place { sql, .. } = place::<i64>(settings()).await;
    sql.batch_execute("select trunkline.create_queue('arrays', 'int8[]', partitions => 2)").await.expect("created");
    // Uses keys of different partitions ("a" and "c"), and alternates their messages.
    let enqueue = "select * from trunkline.enqueue_many('arrays', array['{1}', '{2,3}', '{4}', '{}', '{5,6,7}', '{8}'],
                       keys => array['a', 'c', 'a', 'c', 'a', 'b'])";
    let ids: Vec<i64> = sql.query(enqueue, &[]).await.expect("enqueued").iter().map(|row| row.get(0)).collect();
    let rows = "select count(*) from trunkline.queue_arrays";
    assert_eq!(sql.query_one(rows, &[]).await.expect("counted").get::<_, i64>(0), 2);
    let stored = "select m.payload, m.key from trunkline.messages('arrays') m where m.id = $1";
    let wanted = [("{1}", "a"), ("{2,3}", "c"), ("{4}", "a"), ("{}", "c"), ("{5,6,7}", "a"), ("{8}", "b")];
    for (id, wanted) in ids.iter().zip(wanted) {
        let row = sql.query_one(stored, &[id]).await.expect("stored");
        assert_eq!((row.get::<_, &str>(0), row.get::<_, &str>(1)), wanted);
    }
}

#[tokio::test]
async fn delayed_message_that_is_rescheduled_to_now_is_delivered() {
    let Place { queue, sql, db: _db, .. } = place::<i64>(settings().partitions(1)).await;
    let later = nth(0, 7).after(std::time::Duration::from_secs(3600));
    let id = queue.enqueue(later).await.expect("enqueued").id();
    assert_eq!(holder(&sql, 9).await, None, "it is not due");
    assert_eq!(queue.reschedule(&[id], std::time::Duration::ZERO).await.expect("moved"), [id]);
    assert_eq!(leased(&sql, "lease_partition('q', 9)").await.len(), 1);
}

#[tokio::test]
async fn a_holder_that_is_null_is_refused() {
    let Place { sql, db: _db, .. } = place::<i64>(settings()).await;
    let error =
        sql.batch_execute("select trunkline.release_partition('q', null)").await.expect_err("nothing is released");
    assert_eq!(error.code(), Some(&SqlState::NULL_VALUE_NOT_ALLOWED), "{error:?}");
}

/// Each message is a row of its own, and a call for one message reads few rows at a time.
#[tokio::test]
async fn call_for_one_message_passes_the_backlog_of_a_waiting_key() {
    let Place { queue, sql, db: _db, .. } = place::<i64>(settings().partitions(1)).await;
    let alone =
        "select count(*) from (select trunkline.enqueue('q', n, key => 'key 0') from generate_series(0, 299) n) x";
    sql.execute(alone, &[]).await.expect("enqueued");
    queue.enqueue(nth(1, 7)).await.expect("enqueued");
    first_fails(&sql, "1 hour").await;
    let next = leased(&sql, "lease_partition('q', 1)").await;
    assert_eq!(next.iter().map(|(.., key, payload)| (&**key, &**payload)).collect::<Vec<_>>(), [("key 1", "7")]);
}

#[tokio::test]
async fn largest_number_of_messages_is_accepted_while_a_key_waits() {
    let Place { queue, sql, db: _db, .. } = place::<i64>(settings().partitions(1).max_attempts(2)).await;
    queue.enqueue(nth(0, 0)).await.expect("enqueued");
    queue.enqueue(nth(1, 7)).await.expect("enqueued");
    first_fails(&sql, "1 hour").await;
    let all = "lease_partition('q', 2147483647)";
    let next = leased(&sql, all).await;
    assert_eq!(next.iter().map(|(.., payload)| &**payload).collect::<Vec<_>>(), ["7"]);

    // The last lease of the key's first message expires in the key's backlog.
    let expire = "update trunkline.lane_q set held_until = clock_timestamp();
                  update trunkline.line_q set until = clock_timestamp()";
    sql.batch_execute("select trunkline.ack('q', id, attempt) from trunkline.queue_q where keys[1] = 'key 1'")
        .await
        .expect("acknowledged");
    run_out(&sql).await;
    sql.batch_execute(expire).await.expect("it is due, and the partition is free");
    assert_eq!(leased(&sql, "lease_partition('q', 1)").await[0].1, 2);
    run_out(&sql).await;
    sql.batch_execute(expire).await.expect("it has expired");
    assert!(leased(&sql, all).await.is_empty());
    assert_eq!(queue.stats().await.expect("counted").dead, 1);
}
