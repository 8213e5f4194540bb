//! The owner of a partition ends a message just before its lease expires, and commits afterwards.
//! The next owner of the partition does not skip the message.

use tokio_postgres::Client;

use super::{nth, settings};
use crate::fixture::{Place, connect, eventually, one_waits, place};

async fn leased(sql: &Client, n: i32, lease: &str) -> Vec<(i64, i32, String)> {
    let call = "select id, attempt, payload from trunkline.lease_partition('q', $1, $2::text::interval)";
    let rows = sql.query(call, &[&n, &lease]).await.expect("leased");
    rows.iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect()
}

fn payloads(leased: &[(i64, i32, String)]) -> Vec<&str> {
    leased.iter().map(|(.., payload)| &**payload).collect()
}

/// Enqueues messages 0 to 5 of a key. An owner leases the first `n` of them, and calls `call` for
/// the first message in an open transaction. When this function returns, the partition no longer
/// belongs to that owner.
async fn spans(n: i32, call: &str) -> (Place<i64>, Client, Client) {
    let there = place::<i64>(settings().partitions(1)).await;
    let (late, next) = (connect(&there.url).await, connect(&there.url).await);
    there.queue.enqueue_many(&(0..6).map(|place| nth(0, place)).collect::<Vec<_>>()).await.expect("enqueued");
    let (first, attempt, _) = leased(&late, n, "5 s").await[0].clone();
    late.batch_execute("begin").await.expect("begun");
    late.query(&format!("select trunkline.{call}"), &[&first, &attempt]).await.expect("it is still its own");
    let over = "select max(held_until) <= clock_timestamp() from trunkline.lane_q where lane >= 0";
    eventually("the lane is free", async || there.sql.query_one(over, &[]).await.expect("asked").get(0)).await;
    (there, late, next)
}

#[tokio::test]
async fn message_acknowledged_in_an_open_transaction_is_not_passed() {
    let (_place, late, next) = spans(1, "ack('q', $1, $2)").await;
    assert_eq!(payloads(&leased(&next, 9, "1 min").await), [""; 0], "it may yet be handled again");
    late.batch_execute("commit").await.expect("committed");
    assert_eq!(payloads(&leased(&next, 9, "1 min").await), ["1", "2", "3", "4", "5"]);
}

#[tokio::test]
async fn rolled_back_message_comes_first() {
    let (_place, late, next) = spans(2, "ack('q', $1, $2)").await;
    assert_eq!(payloads(&leased(&next, 9, "1 min").await), [""; 0]);
    late.batch_execute("rollback").await.expect("rolled back");
    assert_eq!(payloads(&leased(&next, 9, "1 min").await)[0], "0");
}

#[tokio::test]
async fn earlier_messages_of_the_key_are_leased() {
    let there = place::<i64>(settings().partitions(1)).await;
    let (late, next) = (connect(&there.url).await, connect(&there.url).await);
    for place in 0..6 {
        there.queue.enqueue(nth(0, place)).await.expect("enqueued");
    }
    let held = leased(&late, 4, "5 s").await;
    late.batch_execute("begin").await.expect("begun");
    late.query("select trunkline.ack('q', $1, $2)", &[&held[2].0, &held[2].1]).await.expect("its own");
    let over = "select max(held_until) <= clock_timestamp() from trunkline.lane_q where lane >= 0";
    eventually("the lane is free", async || there.sql.query_one(over, &[]).await.expect("asked").get(0)).await;
    // In SQL, expired messages are returned one by one.
    let mut seen = Vec::new();
    for _ in 0..4 {
        for (id, attempt, payload) in leased(&next, 9, "1 min").await {
            seen.push(payload);
            next.query("select trunkline.ack('q', $1, $2)", &[&id, &attempt]).await.expect("its own");
        }
        next.batch_execute(
            "select trunkline.release_partition('q', holder) from trunkline.lane_q where holder is not null",
        )
        .await
        .expect("given back");
    }
    assert_eq!(seen, ["0", "1"]);
    late.batch_execute("commit").await.expect("committed");
    assert_eq!(payloads(&leased(&next, 9, "1 min").await), ["3"]);
}

#[tokio::test]
async fn failed_message_keeps_its_place() {
    let (there, late, next) = spans(1, "retry('q', $1, $2, '1 hour')").await;
    assert_eq!(payloads(&leased(&next, 9, "1 min").await), [""; 0]);
    late.batch_execute("commit").await.expect("committed");
    assert_eq!(payloads(&leased(&next, 9, "1 min").await), [""; 0], "it waits for its retry");
    there.sql.batch_execute("select trunkline.shift('q', '1 hour')").await.expect("shifted");
    assert_eq!(payloads(&leased(&next, 9, "1 min").await), ["0", "1", "2", "3", "4", "5"]);
}

/// The retry commits while a lease reads the backlogs of other keys, and buries their messages.
#[tokio::test(flavor = "multi_thread")]
async fn failed_message_keeps_its_place_in_the_backlog_of_its_key() {
    let there = place::<i64>(settings().partitions(1)).await;
    let (late, next, locker) = (connect(&there.url).await, connect(&there.url).await, connect(&there.url).await);
    for key in 0..50 {
        there.queue.enqueue(nth(key, 0)).await.expect("enqueued");
    }
    there.queue.enqueue(nth(0, 1)).await.expect("enqueued");
    let (first, attempt, _) = leased(&late, 1, "5 s").await[0].clone();
    there
        .sql
        .batch_execute(
            "create function waits() returns trigger language plpgsql as 'begin perform pg_advisory_xact_lock(7); return new; end';
             create trigger waits before insert on trunkline.dead_q for each row execute function waits();
             update trunkline.queue_q set line = keys[1], attempt = case when keys[1] = 'key 0' then attempt else 20 end;
             insert into trunkline.line_q (lane, key, until) select distinct lane, keys[1], now() from trunkline.queue_q;
             update trunkline.lane_q set holder = null, held_until = '-infinity' where lane >= 0",
        )
        .await
        .expect("each key has its own backlog");
    late.batch_execute("begin").await.expect("begun");
    late.query("select trunkline.retry('q', $1, $2, '1 hour')", &[&first, &attempt]).await.expect("its own");
    let over = "select due_at <= clock_timestamp() from trunkline.queue_q where id = $1";
    eventually("the lease is over", async || there.sql.query_one(over, &[&first]).await.expect("asked").get(0)).await;
    locker.batch_execute("select pg_advisory_lock(7)").await.expect("locked");
    let leasing = tokio::spawn(async move { leased(&next, 9, "1 min").await });
    eventually("it buries a message of another key", || one_waits(&there.sql)).await;
    late.batch_execute("commit").await.expect("committed");
    locker.batch_execute("select pg_advisory_unlock(7)").await.expect("unlocked");
    assert_eq!(payloads(&leasing.await.expect("no panic")), [""; 0], "the key waits for its retry");
    there.sql.batch_execute("select trunkline.shift('q', '1 hour')").await.expect("shifted");
    assert_eq!(payloads(&leased(&late, 9, "1 min").await), ["0", "1"]);
}

#[tokio::test]
async fn a_lease_that_is_extended_keeps_its_lane() {
    let (_place, late, next) = spans(1, "extend('q', $1, $2, '1 hour')").await;
    assert_eq!(payloads(&leased(&next, 9, "1 min").await), [""; 0]);
    late.batch_execute("commit").await.expect("committed");
    assert_eq!(payloads(&leased(&next, 9, "1 min").await), [""; 0], "the lane is held");
}
