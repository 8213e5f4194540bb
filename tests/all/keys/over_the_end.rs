//! The owner of a partition ends a message just before its lease expires, and commits afterwards.
//! The next owner of the partition does not skip the message.

use tokio_postgres::Client;

use super::{nth, settings};
use crate::fixture::{Place, connect, eventually, place};

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

#[tokio::test]
async fn a_lease_that_is_extended_keeps_its_lane() {
    let (_place, late, next) = spans(1, "extend('q', $1, $2, '1 hour')").await;
    assert_eq!(payloads(&leased(&next, 9, "1 min").await), [""; 0]);
    late.batch_execute("commit").await.expect("committed");
    assert_eq!(payloads(&leased(&next, 9, "1 min").await), [""; 0], "the lane is held");
}
