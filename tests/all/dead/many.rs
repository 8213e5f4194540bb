//! Tests thousands of messages at the head of a queue that have used their only attempt. Each
//! statement buries a part of them, and the library continues at once.

use std::time::Duration;

use tokio::time::timeout;
use trunkline::{Draft, Failure, Lease, Message, Offer, Settings, Wait, Worker};

use crate::fixture::{Place, Runs, SOON, drained, place};

/// The number of messages in each row.
const ROW: i64 = 1024;
/// A poll interval that is longer than a test.
const LONG: Duration = Duration::from_secs(3600);

/// Returns each kind of queue: its settings, and the columns that only its rows have, with their
/// values.
fn kinds() -> [(Settings, &'static str, &'static str); 3] {
    let of = || Settings::new("int8").max_attempts(1);
    [
        (of(), "", ""),
        (of().priorities(2), ", lane", ", i % 2"),
        (of().partitions(1), ", keys, lane", ", array_fill('a'::text, array[1024]), 0"),
    ]
}

/// Inserts rows whose messages have used their only attempt, and behind them the message 7.
async fn fill(full: &Place<i64>, rows: i64, columns: &str, values: &str) {
    let spent = format!(
        "insert into trunkline.queue_q (due_at, attempt, size, payload{columns})
         select now() + i * interval '1 us', 1, {ROW}, array_fill(1::bigint, array[{ROW}]){values}
         from generate_series(1, {rows}) i"
    );
    full.sql.batch_execute(&spent).await.expect("filled");
    let alive = Draft::new(7_i64);
    let alive = if columns.contains("keys") { alive.key("b") } else { alive };
    full.queue.enqueue(alive).await.expect("enqueued");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_buries_a_few_thousand_messages_at_most() {
    for (settings, columns, values) in kinds() {
        let full = place::<i64>(settings).await;
        fill(&full, 10, columns, values).await;
        let calls: &[&str] =
            if columns.contains("keys") { &["lease_partition('q')"] } else { &["take('q')", "lease('q', 10)"] };
        let mut dead = 0_i64;
        for call in calls.iter().cycle() {
            let found = full.sql.query(&format!("select from trunkline.{call}"), &[]).await.expect("called").len();
            let buried = "select count(*) - $1 from trunkline.dead_q";
            let buried: i64 = full.sql.query_one(buried, &[&dead]).await.expect("counted").get(0);
            assert!((1..=5 * ROW).contains(&buried), "{call} buried {buried} after {dead}");
            dead += buried;
            if found > 0 {
                break;
            }
        }
        assert_eq!(dead, 10 * ROW, "{columns}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_call_reaches_the_message_behind_many_dead_ones() {
    for how in 0..12 {
        let full = place::<i64>(Settings::new("int8").max_attempts(1)).await;
        fill(&full, 9, "", "").await;
        let Place { queue, db, .. } = &full;
        let mut consumer = queue.consumer(Wait::Poll(LONG));
        let read = |offer: Offer<i64>| offer.accept(Ok).expect("rows of this library");
        let call = async {
            match how {
                0 => queue.take(1).await,
                1 => queue.lease(1).await,
                2 => queue.offer_take(1).await.map(read),
                3 => queue.offer_lease(1).await.map(read),
                4 => queue.ack_and_lease([] as [Lease; 0], 1).await.map(|(messages, _)| messages),
                5 => consumer.take(1).await,
                6 => consumer.lease(1).await,
                7 => consumer.offer_take(1).await.map(read),
                8 => consumer.offer_lease(1).await.map(read),
                9 => consumer.ack_and_lease([] as [Lease; 0], 1).await.map(|(messages, _)| messages),
                10 => {
                    let transaction = db.begin().await.expect("begun");
                    let taken = queue.take_in(&transaction, 1).await;
                    transaction.commit().await.expect("committed");
                    taken
                }
                _ => consumer.take_with(1, |_, taken| Box::pin(async move { Ok::<_, Failure>(taken) })).await,
            }
        };
        let messages = timeout(SOON, call).await.expect("in time").expect("dequeued");
        assert_eq!(messages.iter().map(|message| message.payload).collect::<Vec<_>>(), [7], "{how}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lease_in_a_transaction_finds_none_while_it_buries() {
    let full = place::<i64>(Settings::new("int8").max_attempts(1)).await;
    fill(&full, 9, "", "").await;
    let mut found = Vec::new();
    while found.is_empty() {
        let before = full.queue.stats().await.expect("counted").messages;
        let transaction = full.db.begin().await.expect("begun");
        let sent = full.queue.send_lease(&transaction, 10).await.expect("sent");
        found = sent.await.expect("leased");
        transaction.commit().await.expect("committed");
        assert!(full.queue.stats().await.expect("counted").messages < before, "each call buries some");
    }
    assert_eq!(found.iter().map(|message| message.payload).collect::<Vec<_>>(), [7]);
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_reach_the_message_behind_many_dead_ones() {
    for (settings, columns, values) in kinds() {
        let full = place::<i64>(settings).await;
        let worker = || {
            let worker = Worker::new(full.queue.clone(), |_: Message<i64>| async { Ok::<(), Failure>(()) });
            worker.wait(Wait::Poll(LONG))
        };
        fill(&full, 24, columns, values).await;
        let summary = timeout(2 * SOON, worker().drain()).await.expect("it ends").expect("it works");
        assert_eq!(summary.done, 1, "{columns}");
        fill(&full, 24, columns, values).await;
        let runs = Runs::start(worker());
        drained(&full.queue).await;
        assert_eq!(runs.stop().await.done, 1, "{columns}");
    }
}
