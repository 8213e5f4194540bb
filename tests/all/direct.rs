//! Tests messages inside notifications: they are fast, arrive at most once, and reach only one
//! consumer.

mod lost;
mod senders;

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use trunkline::{Consumer, Db, Draft, Message, Settings, Wait};
use trunkline_embedded::Cluster;

use crate::fixture::{Place, connect, database, eventually, place};

async fn waiting(client: &tokio_postgres::Client) -> i64 {
    client.query_one("select count(*) from trunkline.waiting", &[]).await.expect("counted").get(0)
}

async fn one(consumer: &mut Consumer<Vec<u8>>) -> Message<Vec<u8>> {
    consumer.receive_direct().await.expect("a message")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_handed_over_without_being_stored() {
    let url = database().await;
    let (db, client) = (Db::connect(&url).await.expect("connected"), connect(&url).await);
    db.create_queue("q", &Settings::new("bytea")).await.expect("created");
    let queue = db.queue::<Vec<u8>>("q").await.expect("opened");
    let mut consumer = queue.consumer(Wait::Notify);
    let receiver = tokio::spawn(async move { one(&mut consumer).await });
    eventually("the consumer waits", || async { waiting(&client).await == 1 }).await;
    let inserted = "select coalesce(max(last_value) filter (where is_called), 0) from trunkline.id_q";
    let id = queue.send_direct(b"fast".to_vec()).await.expect("handed over").id();
    let message = receiver.await.expect("received");
    assert_eq!((message.id, message.payload.as_slice(), message.attempt), (id, &b"fast"[..], 0));
    assert!(message.enqueued_at.elapsed().expect("the past") < Duration::from_secs(60));
    assert_eq!(client.query_one(inserted, &[]).await.expect("read").get::<_, i64>(0), id);
    let pages: i64 = client.query_one("select pg_relation_size('trunkline.queue_q')", &[]).await.expect("read").get(0);
    assert_eq!(pages, 0, "no row was ever written");
}

/// A listed consumer stays listed until it receives a message. If it left the list in between, a
/// message that is sent at that moment would be stored instead of delivered directly.
#[tokio::test(flavor = "multi_thread")]
async fn a_consumer_that_begins_to_wait_enters_the_list_once() {
    let Place { queue, sql: client, db, .. } = place::<Vec<u8>>(Settings::new("bytea")).await;
    let counted = "create schema counting; create sequence counting.entered;
        create function counting.count() returns trigger language plpgsql as $$
            begin perform nextval('counting.entered'); return null; end $$;
        create trigger counted after insert on trunkline.waiting for each row execute function counting.count()";
    client.batch_execute(counted).await.expect("counted");
    // Makes the process listen with a first consumer. From then on, notifications of another
    // channel arrive as soon as a consumer subscribes to it.
    let mut first = queue.consumer(Wait::Notify);
    let first = tokio::spawn(async move { one(&mut first).await });
    eventually("the first waits", || async { waiting(&client).await == 1 }).await;
    queue.send_direct(vec![0]).await.expect("handed over");
    first.await.expect("received");
    for round in 1..=20 {
        db.create_queue(&format!("q{round}"), &Settings::new("bytea")).await.expect("created");
        let queue = db.queue::<Vec<u8>>(&format!("q{round}")).await.expect("opened");
        let mut consumer = queue.consumer(Wait::Notify);
        let receiver = tokio::spawn(async move { one(&mut consumer).await });
        eventually("the consumer waits", || async { waiting(&client).await == 1 }).await;
        queue.send_direct(vec![round]).await.expect("handed over");
        assert_eq!(receiver.await.expect("received").payload, [round]);
        let stored = "select pg_relation_size(format('trunkline.queue_q%s', $1::int4)::regclass)";
        let stored: i64 = client.query_one(stored, &[&i32::from(round)]).await.expect("read").get(0);
        assert_eq!(stored, 0, "round {round} was stored");
    }
    let entered: i64 = client.query_one("select last_value from counting.entered", &[]).await.expect("read").get(0);
    assert_eq!(entered, 21, "the list was left and entered again");
}

/// After a crash of the server, and after a failover, the list of waiting consumers is empty. No
/// message is in transit then.
#[tokio::test(flavor = "multi_thread")]
async fn a_list_that_was_lost_is_not_waited_for() {
    let Place { queue, sql: client, db: _db, .. } = place::<Vec<u8>>(Settings::new("bytea")).await;
    let lost = "with gone as (delete from trunkline.waiting)
                select count(pg_terminate_backend(pid)) from pg_stat_activity
                where datname = current_database() and application_name = 'trunkline' and query like 'listen%'";
    // Accepts two slow rounds, because a machine may be busy. If the consumer waited for a message
    // after the list was lost, each round would take five seconds.
    let mut took = Vec::new();
    while took.len() < 3 && took.iter().all(|took| *took >= Duration::from_secs(4)) {
        let mut consumer = queue.consumer(Wait::Notify);
        let receiver = tokio::spawn(async move { one(&mut consumer).await });
        eventually("the consumer waits", || async { waiting(&client).await == 1 }).await;
        let began = Instant::now();
        client.query_one(lost, &[]).await.expect("as after a crash");
        queue.enqueue(vec![7]).await.expect("enqueued");
        assert_eq!(receiver.await.expect("received").payload, [7]);
        took.push(began.elapsed());
    }
    let quickest = took.iter().min().expect("once at least");
    assert!(*quickest < Duration::from_secs(4), "a letter that never comes is not waited for: {took:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn direct_message_without_consumer_or_too_large_is_enqueued() {
    let url = database().await;
    let (db, client) = (Db::connect(&url).await.expect("connected"), connect(&url).await);
    db.create_queue("q", &Settings::new("bytea")).await.expect("created");
    let queue = db.queue::<Vec<u8>>("q").await.expect("opened");
    queue.send_direct(vec![1]).await.expect("enqueued");
    assert_eq!(queue.stats().await.expect("counted").due, 1);
    let mut consumer = queue.consumer(Wait::Notify);
    assert_eq!(one(&mut consumer).await.payload, [1], "what is stored comes first");
    let receiver = tokio::spawn(async move { one(&mut consumer).await });
    eventually("the consumer waits", || async { waiting(&client).await == 1 }).await;
    queue.send_direct(vec![2; 6_000]).await.expect("enqueued");
    assert_eq!(receiver.await.expect("received").payload.len(), 6_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_message_goes_to_one_of_many_consumers() {
    let url = database().await;
    let db = Db::connect(&url).await.expect("connected");
    db.create_queue("q", &Settings::new("bytea")).await.expect("created");
    let queue = db.queue::<Vec<u8>>("q").await.expect("opened");
    let (received, mut messages) = tokio::sync::mpsc::unbounded_channel();
    let mut consumers = tokio::task::JoinSet::new();
    for _ in 0..5 {
        let other = Db::connect(&url).await.expect("connected").queue::<Vec<u8>>("q").await.expect("opened");
        let received = received.clone();
        consumers.spawn(async move {
            let mut consumer = other.consumer(Wait::Notify);
            while received.send(one(&mut consumer).await.id).is_ok() {}
        });
    }
    let mut sent = BTreeSet::new();
    for n in 0..500_u32 {
        sent.insert(queue.send_direct(n.to_be_bytes().to_vec()).await.expect("handed over").id());
    }
    let mut got = Vec::new();
    while got.len() < 500 {
        got.push(
            tokio::time::timeout(Duration::from_secs(20), messages.recv()).await.expect("in time").expect("a message"),
        );
    }
    assert_eq!(got.iter().copied().collect::<BTreeSet<_>>(), sent);
    assert_eq!(got.len(), 500, "none twice");
    assert!(messages.try_recv().is_err(), "none twice");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_consumer_that_went_away_leaves_its_message_to_others() {
    let url = database().await;
    let (db, client) = (Db::connect(&url).await.expect("connected"), connect(&url).await);
    db.create_queue("q", &Settings::new("bytea")).await.expect("created");
    let queue = db.queue::<Vec<u8>>("q").await.expect("opened");
    let mut consumer = queue.consumer(Wait::Notify);
    {
        let mut wait = Box::pin(consumer.receive_direct());
        loop {
            tokio::select! {
                _ = &mut wait => panic!("nothing was sent"),
                () = tokio::time::sleep(Duration::from_millis(1)) => if waiting(&client).await == 1 { break },
            }
        }
    }
    let id = queue.send_direct(vec![9]).await.expect("handed over to the one that went away").id();
    drop(consumer);
    eventually("it is in the queue", || async { queue.stats().await.expect("counted").due == 1 }).await;
    assert_eq!(queue.take(1).await.expect("taken")[0].id, id);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_consumers_place_is_passed_over() {
    let url = database().await;
    let (db, client) = (Db::connect(&url).await.expect("connected"), connect(&url).await);
    db.create_queue("q", &Settings::new("bytea")).await.expect("created");
    client.batch_execute("insert into trunkline.waiting values ('ghost', 'q', 1)").await.expect("inserted");
    let queue = db.queue::<Vec<u8>>("q").await.expect("opened");
    queue.send_direct(vec![1]).await.expect("enqueued");
    assert_eq!(queue.take(1).await.expect("taken")[0].payload, [1]);
    assert_eq!(waiting(&client).await, 0);
}

/// A direct delivery does not wait for the disk, unlike an enqueue.
#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_handed_over_without_anything_flushed() {
    let started = tokio::task::spawn_blocking(|| {
        // Turns off what else flushes the log: with these settings, hardly anything but commits
        // does.
        let cluster = Cluster::temporary().setting("wal_writer_delay", "10s").setting("autovacuum", "off");
        cluster.start().expect("a private PostgreSQL starts")
    });
    let cluster = started.await.expect("no panic");
    let url = crate::fixture::settled(&cluster.url("postgres"));
    let (db, client) = (Db::connect(&url).await.expect("connected"), connect(&url).await);
    db.migrate().await.expect("migrated");
    db.create_queue("q", &Settings::new("bytea")).await.expect("created");
    let queue = db.queue::<Vec<u8>>("q").await.expect("opened");
    let mut consumer = queue.consumer(Wait::Notify);
    let mut flushed = Vec::new();
    for nr in 0..10_u8 {
        let waiter = async {
            let message = one(&mut consumer).await;
            assert_eq!(message.payload, [nr]);
        };
        let sender = async {
            eventually("the consumer waits", || async { waiting(&client).await == 1 }).await;
            let at = async || -> String {
                let at = "select pg_current_wal_flush_lsn()::text";
                client.query_one(at, &[]).await.expect("read").get(0)
            };
            let before = at().await;
            queue.send_direct(vec![nr]).await.expect("handed over");
            flushed.push(before != at().await);
        };
        tokio::join!(waiter, sender);
    }
    // Allows for a few flushes: ids come from a sequence, which writes to the log once per 32 ids,
    // and the server occasionally flushes the log for other reasons.
    assert!(flushed.iter().filter(|flushed| **flushed).count() <= 5, "{flushed:?}");
    let at: String = client.query_one("select pg_current_wal_flush_lsn()::text", &[]).await.expect("read").get(0);
    queue.enqueue(vec![1]).await.expect("enqueued");
    let after: String = client.query_one("select pg_current_wal_flush_lsn()::text", &[]).await.expect("read").get(0);
    assert_ne!(at, after, "this is how one that is stored looks");
}

/// Sends with the SQL function, and returns what the waiting consumer receives: the id, the payload
/// as text, and the metadata.
async fn sent_in_sql<T: trunkline::Payload + std::fmt::Debug>(ty: &str, call: &str) -> (i64, String, Option<String>) {
    let Place { queue, sql, db: _db, .. } = place::<T>(Settings::new(ty)).await;
    let mut consumer = queue.consumer(Wait::Notify);
    let receiver = tokio::spawn(async move { consumer.receive_direct().await.expect("a message") });
    eventually("the consumer waits", || async { waiting(&sql).await == 1 }).await;
    let id: i64 = sql.query_one(call, &[]).await.unwrap_or_else(|error| panic!("{call}: {error:?}")).get(0);
    let message = receiver.await.expect("received");
    assert_eq!(message.id, id, "{call}");
    let stored: i64 = sql.query_one("select pg_relation_size('trunkline.queue_q')", &[]).await.expect("read").get(0);
    assert_eq!(stored, 0, "{call}");
    (id, format!("{:?}", message.payload), message.metadata.get("tenant").map(str::to_owned))
}

#[tokio::test(flavor = "multi_thread")]
async fn sql_sends_payloads_of_every_kind_directly() {
    let text = sent_in_sql::<String>("text", "select trunkline.send_direct('q', 'to ada')").await;
    assert_eq!((&*text.1, text.2), ("\"to ada\"", None));
    let call = r#"select trunkline.send_direct('q', '{"to": "ada"}', metadata => '{"tenant": "acme"}')"#;
    let json = sent_in_sql::<serde_json::Value>("jsonb", call).await;
    assert_eq!((&*json.1, json.2.as_deref()), (r#"Object {"to": String("ada")}"#, Some("acme")));
    let typed =
        sent_in_sql::<serde_json::Value>("jsonb", "select trunkline.send_direct('q', jsonb_build_array(1))").await;
    assert_eq!(typed.1, "Array [Number(1)]");
    assert_eq!(sent_in_sql::<i64>("int8", "select trunkline.send_direct('q', 7)").await.1, "7");
    assert_eq!(
        sent_in_sql::<Vec<u8>>("bytea", r"select trunkline.send_direct('q', '\x0102'::bytea)").await.1,
        "[1, 2]"
    );
    let array = sent_in_sql::<Vec<i32>>("int4[]", "select trunkline.send_direct('q', '{1,2}'::int4[])").await;
    assert_eq!(array.1, "[1, 2]");
}

#[tokio::test(flavor = "multi_thread")]
async fn sql_enqueues_what_no_consumer_waits_for() {
    let Place { queue, sql, db: _db, .. } = place::<String>(Settings::new("text")).await;
    let call = "select trunkline.send_direct('q', 'x', '{\"tenant\": \"acme\"}')";
    let id: i64 = sql.query_one(call, &[]).await.expect("enqueued").get(0);
    let found = queue.take(9).await.expect("taken");
    assert_eq!(
        found.iter().map(|message| (message.id, message.metadata.get("tenant"))).collect::<Vec<_>>(),
        [(id, Some("acme"))]
    );
    let error = sql.query_one("select trunkline.send_direct('q', null::text)", &[]).await.expect_err("null");
    assert!(error.as_db_error().is_some_and(|error| error.message().contains("null")), "{error:?}");
    // A message that does not fit into a notification is enqueued, and wakes the consumer.
    let mut consumer = queue.consumer(Wait::Notify);
    let receiver = tokio::spawn(async move { consumer.receive_direct().await.expect("a message").payload.len() });
    eventually("the consumer waits", || async { waiting(&sql).await == 1 }).await;
    sql.query_one("select trunkline.send_direct('q', repeat('x', 7000))", &[]).await.expect("enqueued");
    assert_eq!(receiver.await.expect("received"), 7000);
}

/// An offer that is dropped puts back the message that has arrived.
#[tokio::test(flavor = "multi_thread")]
async fn an_offered_message_that_is_refused_is_enqueued() {
    let Place { queue, sql, db: _db, .. } = place::<String>(Settings::new("text")).await;
    let mut consumer = queue.consumer(Wait::Notify);
    let receiver = tokio::spawn(async move { consumer.offer_receive_direct().await.expect("a message") });
    eventually("the consumer waits", || async { waiting(&sql).await == 1 }).await;
    let id = queue.send_direct("x".to_owned()).await.expect("sent").id();
    let offer = receiver.await.expect("received");
    assert_eq!((offer.len(), offer.is_empty()), (1, false));
    drop(offer);
    eventually("it is back", || async { queue.stats().await.expect("counted").messages == 1 }).await;
    let back = queue.take(9).await.expect("taken");
    assert_eq!(back.iter().map(|message| (message.id, &*message.payload)).collect::<Vec<_>>(), [(id, "x")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn draft_with_a_key_or_a_priority_is_enqueued_with_it() {
    for (settings, draft, expected) in [
        (Settings::new("int8").partitions(2), Draft::new(1).key("a"), (Some("a"), 0)),
        (Settings::new("int8").priorities(3), Draft::new(1).priority(2), (None, 2)),
    ] {
        let Place { queue, db: _db, .. } = place::<i64>(settings).await;
        queue.send_direct(draft).await.expect("enqueued");
        let peeked = queue.peek(1).await.expect("read").remove(0);
        assert_eq!((peeked.key.as_deref(), i32::from(peeked.priority)), expected);
    }
}
