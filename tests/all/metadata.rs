//! A message keeps its metadata wherever it moves. The random histories (`model.rs`) cover splits,
//! retries, dead letters and replays.

use std::{collections::BTreeSet, time::SystemTime};

use futures_util::future::join_all;
use tokio::time::timeout;
use tokio_postgres::Client;
use trunkline::{Draft, MAX_METADATA, Message, Metadata, Settings, Wait};

use crate::fixture::{Place, SOON, drafts, dropped_under_way, eventually, leased_again, place, run_out, until_asleep};

/// Returns the metadata for a payload: every third message has some.
fn beside(payload: i64) -> Metadata {
    match payload % 3 {
        2 => Metadata::new().with("nr", payload.to_string()).with("é \"x\"", "\u{1f600}\n"),
        _ => Metadata::new(),
    }
}

fn some(payloads: std::ops::Range<i64>) -> Vec<(i64, Metadata)> {
    payloads.map(|payload| (payload, beside(payload))).collect()
}

/// Checks payloads and metadata, ignoring the order.
fn hold(messages: &[Message<i64>], payloads: std::ops::Range<i64>) {
    let got: BTreeSet<i64> = messages.iter().map(|message| message.payload).collect();
    assert!(got.len() == messages.len() && got == payloads.clone().collect(), "{payloads:?}, not {got:?}");
    for message in messages {
        assert_eq!(message.metadata, beside(message.payload), "{}", message.payload);
    }
}

async fn number(sql: &Client, query: &str) -> i64 {
    sql.query_one(query, &[]).await.unwrap_or_else(|error| panic!("{query}: {error:?}")).get(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_with_and_without_share_rows() {
    let Place { queue, sql, db: _db, .. } = place::<i64>(Settings::new("int8")).await;
    let calls = some(0..3000).into_iter().map(|(payload, metadata)| {
        let queue = queue.clone();
        async move { queue.enqueue(Draft::new(payload).metadata(metadata.clone())).await.expect("enqueued").id() }
    });
    assert_eq!(join_all(calls).await.into_iter().collect::<BTreeSet<_>>().len(), 3000);
    let rows = number(&sql, "select count(*) from trunkline.queue_q").await;
    assert!(rows < 100, "{rows} rows for 3,000 calls");
    let got = queue.take(3000).await.expect("taken");
    hold(&got, 0..3000);
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_without_leave_the_column_null() {
    let Place { queue, sql, db: _db, .. } = place::<i64>(Settings::new("int8")).await;
    queue.enqueue(1).await.expect("enqueued");
    queue.enqueue(Draft::new(1).metadata(Metadata::new())).await.expect("enqueued");
    queue.enqueue_many(&[1, 2]).await.expect("enqueued");
    queue.enqueue_many(drafts(&[(1, Metadata::new())])).await.expect("enqueued");
    let plain = "select trunkline.enqueue('q', 1);
                 select trunkline.enqueue_many('q', array[1, 2], metadata => array[null::jsonb, null])";
    sql.batch_execute(plain).await.expect("enqueued");
    assert_eq!(number(&sql, "select count(*) from trunkline.queue_q").await, 6);
    assert_eq!(number(&sql, "select count(metadata) from trunkline.queue_q").await, 0);
    let got = queue.lease(99).await.expect("leased");
    assert!(got.len() == 8 && got.iter().all(|message| message.metadata.is_empty()));
}

/// Enqueues more metadata than may wait at the same time. Completed calls make room for new calls.
#[tokio::test(flavor = "multi_thread")]
async fn callers_never_run_out_of_room_for_metadata() {
    let Place { queue, sql, db: _db, .. } = place::<i64>(Settings::new("int8")).await;
    let metadata = Metadata::new().with("large", "x".repeat(16_000));
    for nr in 0..12 {
        let calls = (0..100).map(|at| queue.enqueue(Draft::new(nr * 100 + at).metadata(metadata.clone()))); // 19 MB in all
        let ids = timeout(SOON, join_all(calls)).await.unwrap_or_else(|_| panic!("after {nr} times 1.6 MB"));
        assert!(ids.iter().all(Result::is_ok), "{ids:?}");
    }
    assert_eq!(number(&sql, "select sum(size)::int8 from trunkline.queue_q").await, 1200);
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_cut_as_its_messages_are() {
    let Place { queue, sql, db: _db, .. } = place::<i64>(Settings::new("int8")).await;
    // Tests rows that are split by size. Metadata counts like a payload, and a row ends after about
    // 64 KiB.
    let large = "x".repeat(2500);
    let messages: Vec<_> = (0..900).map(|nr| (nr, Metadata::new().with("large", &*large))).collect();
    queue.enqueue_many(drafts(&messages)).await.expect("enqueued");
    let rows = number(&sql, "select count(*) from trunkline.queue_q where size between 20 and 27").await;
    assert!((33..=45).contains(&rows), "{rows} rows of 26 messages each");
    let got = queue.take(900).await.expect("taken");
    assert_eq!(got.iter().map(|message| (message.payload, message.metadata.clone())).collect::<Vec<_>>(), messages);

    // Tests rows that are split on demand. Each piece keeps exactly its own metadata, no matter how
    // often a row is split.
    queue.enqueue_many(drafts(&some(0..1000))).await.expect("enqueued");
    let stored = "select coalesce(sum(cardinality(metadata)), 0) from trunkline.queue_q";
    for nr in 0..200 {
        hold(&queue.take(1).await.expect("taken"), nr..nr + 1);
        assert!(number(&sql, stored).await < 1000 - nr);
    }
    hold(&queue.lease(100).await.expect("leased"), 200..300);
    run_out(&sql).await;
    hold(&leased_again(&queue, 800).await, 200..1000);
    let alone = "select count(*) from trunkline.queue_q where size = 1 and cardinality(metadata) = 1";
    let alone = number(&sql, alone).await;
    assert!((30..50).contains(&alone), "what ran out is one message a row, and a third of them has some, not {alone}");
}

#[tokio::test(flavor = "multi_thread")]
async fn it_goes_through_transactions_of_either_kind() {
    let Place { queue, mut sql, db, .. } = place::<i64>(Settings::new("int8")).await;
    let theirs = sql.transaction().await.expect("begun");
    queue.enqueue_many_in(&theirs, drafts(&some(0..10))).await.expect("enqueued");
    theirs.commit().await.expect("committed");
    let theirs = sql.transaction().await.expect("begun");
    hold(&queue.take_in(&theirs, 7).await.expect("taken"), 0..7);
    theirs.commit().await.expect("committed");
    let ours = db.begin().await.expect("begun");
    queue.enqueue_many_in(&ours, drafts(&some(10..2500))).await.expect("enqueued");
    ours.commit().await.expect("committed");
    let ours = db.begin().await.expect("begun");
    hold(&queue.take_in(&ours, 4).await.expect("taken"), 7..11);
    ours.commit().await.expect("committed");
    let ours = db.begin().await.expect("begun");
    let leased = queue.send_lease(&ours, 2489).await.expect("sent");
    ours.commit().await.expect("committed");
    let leased = leased.await.expect("leased");
    hold(&leased, 11..2500);
    let (next, lost) = queue.ack_and_lease(&leased[..1], 5).await.expect("settled");
    assert!(next.is_empty() && lost.is_empty());
    queue.archive(&leased[1..]).await.expect("archived");
    let kept = queue.archived(0, 9999).await.expect("read");
    assert!(kept.len() == 2488 && kept.iter().all(|kept| kept.metadata == beside(kept.payload)));
}

#[tokio::test(flavor = "multi_thread")]
async fn message_put_back_for_a_dropped_caller_keeps_its_metadata() {
    let Place { url, queue, sql, db: _db } = place::<i64>(Settings::new("int8")).await;
    queue.enqueue_many(drafts(&some(0..9))).await.expect("enqueued");
    let due = "select max(due_at), min(due_at) from trunkline.queue_q";
    let before: SystemTime = sql.query_one(due, &[]).await.expect("read").get(0);
    dropped_under_way(&url, &sql, queue.take(9)).await;
    eventually("it was taken and put back", || async {
        sql.query_one(due, &[]).await.expect("read").get::<_, Option<SystemTime>>(1).is_some_and(|due| due > before)
    })
    .await;
    hold(&queue.take(9).await.expect("taken"), 0..9);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_bad_payload_among_them_fails_its_own_caller_only() {
    let Place { queue, sql, db: _db, .. } = place::<i64>(Settings::new("int8")).await;
    sql.batch_execute("alter table trunkline.queue_q add check (array_position(payload, 77) is null)")
        .await
        .expect("ok");
    let calls = some(0..200).into_iter().map(|(payload, metadata)| {
        let queue = queue.clone();
        async move { queue.enqueue(Draft::new(payload).metadata(metadata.clone())).await.is_ok() }
    });
    let stored = join_all(calls).await;
    assert_eq!(stored.iter().position(|ok| !ok), Some(77));
    assert_eq!(stored.iter().filter(|ok| **ok).count(), 199);
    let got = queue.take(200).await.expect("taken");
    assert!(got.len() == 199 && got.iter().all(|message| message.metadata == beside(message.payload)));
}

#[tokio::test(flavor = "multi_thread")]
async fn metadata_unstorable_or_too_large_is_refused_before_sending() {
    let Place { queue, sql, db: _db, .. } = place::<i64>(Settings::new("int8")).await;
    let fits = Metadata::new().with("x", "y".repeat(MAX_METADATA - r#"{"x":""}"#.len()));
    queue.enqueue(Draft::new(1).metadata(fits.clone())).await.expect("the most there may be");
    let large = Metadata::new().with("x", "y".repeat(MAX_METADATA));
    for (metadata, said) in [(large, "16384"), (Metadata::new().with("n", "a\0"), "\"n\" has a NUL")] {
        for error in [
            queue.enqueue(Draft::new(1).metadata(metadata.clone())).await.expect_err("refused"),
            queue.enqueue_many(drafts(&[(1, Metadata::new()), (2, metadata.clone())])).await.expect_err("refused"),
        ] {
            assert!(error.is_bad_payload() && error.to_string().contains(said), "{error}");
        }
    }
    assert_eq!(queue.stats().await.expect("counted").messages, 1);

    // Uses many short names, because PostgreSQL prints a blank after each colon and comma. Neither
    // the library nor the server counts these blanks.
    let names = |n: usize| (0..n).fold(Metadata::new(), |all, nr| all.with(format!("k{nr:04}"), ""));
    let most = (MAX_METADATA - 1) / r#""k0000":"","#.len();
    for (n, fits) in [(most, true), (most + 1, false)] {
        let metadata = names(n);
        let text = serde_json::to_value(&metadata).expect("an object");
        assert_eq!(text.to_string().len() <= MAX_METADATA, fits, "{n} names");
        let sent = queue.enqueue(Draft::new(1).metadata(metadata)).await;
        assert_eq!(sent.is_ok(), fits, "{n} names: {sent:?}");
        let sent = sql.query("select trunkline.enqueue('q', 1, metadata => $1)", &[&text]).await;
        assert_eq!(sent.is_ok(), fits, "{n} names in SQL: {sent:?}");
    }
    queue.purge().await.expect("purged");

    for (call, code) in [
        ("enqueue('q', 1, metadata => '[]')", "22023"),
        ("enqueue('q', 1, metadata => 'null')", "22023"),
        ("enqueue_many('q', array[1, 2], metadata => array['{}'::jsonb])", "22023"),
        ("enqueue('q', 1, metadata => jsonb_build_object('x', repeat('y', 16400)))", "54000"),
    ] {
        let error = sql.query(&format!("select trunkline.{call}"), &[]).await.expect_err(call);
        let error = error.as_db_error().expect("the server's");
        assert!(error.code().code() == code && error.hint().is_some(), "{call}: {error:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn other_languages_pass_it_and_get_it() {
    let Place { queue, sql, db: _db, .. } = place::<i64>(Settings::new("int8").max_attempts(1)).await;
    let plain = r#"select trunkline.enqueue('q', 0);
                   select trunkline.enqueue('q', 1, '0', '{"a": "1"}');
                   select trunkline.enqueue_many('q', array[2, 3], metadata => array[null, '{"a": "3"}']::jsonb[]);
                   select trunkline.enqueue('q', '4', metadata => '{"a": "x", "n": 5, "o": {"p": null}}')"#;
    sql.batch_execute(plain).await.expect("enqueued");
    let rows = async |query: &str| {
        let query = format!("select format('%s %s', payload, metadata) from trunkline.{query}");
        let rows = sql.query(&query, &[]).await.unwrap_or_else(|error| panic!("{query}: {error:?}"));
        rows.iter().map(|row| row.get(0)).collect::<Vec<String>>()
    };
    let last = r#"4 {"a": "x", "n": 5, "o": {"p": null}}"#;
    assert_eq!(rows("messages('q')").await, ["0 ", r#"1 {"a": "1"}"#, "2 ", r#"3 {"a": "3"}"#, last]);
    let seen = queue.peek(9).await.expect("peeked");
    let of = |entries: &[(&str, &str)]| entries.iter().copied().collect::<Metadata>();
    assert_eq!(seen[1].metadata, of(&[("a", "1")]));
    assert_eq!(seen[4].metadata, of(&[("a", "x"), ("n", "5"), ("o", r#"{"p":null}"#)]), "no text: as JSON");
    assert_eq!(rows("take('q', 2)").await, ["0 ", r#"1 {"a": "1"}"#]);
    assert_eq!(rows("lease('q', 9)").await, ["2 ", r#"3 {"a": "3"}"#, last]);
    sql.batch_execute("select trunkline.retry('q', 2049 + 1024, 1), trunkline.bury('q', 3072 + 1024, 1)")
        .await
        .expect("settled");
    assert_eq!(rows("dead_letters('q')").await, [r#"3 {"a": "3"}"#, last]);
    assert_eq!(queue.dead_letters(0, 9).await.expect("read")[0].metadata, of(&[("a", "3")]));
    sql.batch_execute("select trunkline.replay_all('q')").await.expect("replayed");
    assert_eq!(rows("take('q', 9)").await, [r#"3 {"a": "3"}"#, last]);

    // Invalid metadata that was inserted manually does not prevent the delivery of the payload.
    sql.batch_execute(
        "insert into trunkline.queue_q (size, payload, metadata) values (3, '{7,8,9}', array['5', '[]']::jsonb[])",
    )
    .await
    .expect("inserted");
    let got = queue.lease(9).await.expect("leased");
    assert!(got.len() == 3 && got.iter().all(|message| message.metadata.is_empty()));
}

#[tokio::test(flavor = "multi_thread")]
async fn it_travels_inside_a_notification_too() {
    let Place { queue, sql, db: _db, .. } = place::<i64>(Settings::new("int8")).await;
    let waits = || async { number(&sql, "select count(*) from trunkline.waiting").await == 1 };
    let mut consumer = queue.consumer(Wait::Notify);
    let large = Metadata::new().with("large", "x".repeat(6000));
    for (payload, metadata) in [(2, beside(2)), (1, beside(1)), (5, large)] {
        let pages = number(&sql, "select pg_relation_size('trunkline.queue_q')").await;
        assert_eq!(pages, 0, "nothing is stored until it is too large");
        let receiver = tokio::spawn(async move { (consumer.receive_direct().await.expect("a message"), consumer) });
        until_asleep(&sql).await; // waits until the consumer is on the wait list
        eventually("the consumer waits", waits).await;
        queue.send_direct(Draft::new(payload).metadata(metadata.clone())).await.expect("handed over");
        let (message, back) = receiver.await.expect("no panic");
        assert_eq!((message.payload, message.metadata), (payload, metadata));
        consumer = back;
    }
    assert!(number(&sql, "select pg_relation_size('trunkline.queue_q')").await > 0);
    let mut wait = Box::pin(consumer.receive_direct());
    loop {
        tokio::select! {
            _ = &mut wait => panic!("nothing was sent"),
            waits = waits() => if waits { break },
        }
    }
    queue.send_direct(Draft::new(8).metadata(beside(8))).await.expect("handed over to the one that goes away");
    drop(wait);
    drop(consumer);
    eventually("it is in the queue", || async { queue.stats().await.expect("counted").due == 1 }).await;
    hold(&queue.take(9).await.expect("taken"), 8..9);
}
