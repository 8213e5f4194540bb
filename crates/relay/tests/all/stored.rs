//! A source that delivers given bodies: bodies that the queue cannot store, and a position that no
//! longer exists. A source that hangs.

use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;
use trunkline::{Db, Settings, postgres::Statement};
use trunkline_relay::{Incoming, Raw, Result, Source, relay_from};

/// A source that delivers these messages, one per position.
struct Told(Vec<Incoming>);

fn told(bodies: Vec<String>) -> Told {
    Told(bodies.into_iter().map(|body| Incoming { body: body.into(), ..Incoming::default() }).collect())
}

impl Source for Told {
    fn broker(&self) -> &'static str {
        "told"
    }

    fn read<'a>(&'a mut self, after: Option<&'a str>, most: usize) -> BoxFuture<'a, Result<Vec<Incoming>>> {
        Box::pin(async move {
            let next = after.map_or(0, |at| at.parse::<usize>().expect("a position") + 1);
            let at = |(at, message): (usize, &Incoming)| Incoming { position: at.to_string(), ..message.clone() };
            let read: Vec<_> = self.0.iter().enumerate().skip(next).take(most).map(at).collect();
            if read.is_empty() {
                tokio::time::sleep(Duration::from_millis(100)).await; // waits for messages, as every source does
            }
            Ok(read)
        })
    }
}

/// A source whose broker does not answer.
struct Hanging;

impl Source for Hanging {
    fn broker(&self) -> &'static str {
        "hanging"
    }

    fn read<'a>(&'a mut self, _after: Option<&'a str>, _most: usize) -> BoxFuture<'a, Result<Vec<Incoming>>> {
        Box::pin(std::future::pending())
    }
}

async fn database() -> Db {
    let db = Db::connect(&trunkline_embedded::test_database().expect("a database")).await.expect("connected");
    db.migrate().await.expect("migrated");
    db.create_queue("q", &Settings::of::<serde_json::Value>()).await.expect("created");
    db
}

/// Returns JSON with arrays nested more deeply than PostgreSQL parses.
fn deep() -> String {
    "[".repeat(200_000) + &"]".repeat(200_000)
}

#[tokio::test(flavor = "multi_thread")]
async fn too_deep_message_is_passed_over_counted_and_named() {
    let db = database().await;
    let source = told(vec!["1".to_owned(), deep(), "no JSON".to_owned(), "2".to_owned()]);
    let queue = db.queue::<Raw>("q").await.expect("opened");
    let stop = CancellationToken::new();
    let relay = relay_from(source, queue.clone()).pass_over(true);
    let running = tokio::spawn(relay.run(stop.clone().cancelled_owned()));
    crate::stand::until("the last one is there", async || queue.stats().await.is_ok_and(|stats| stats.messages == 2))
        .await;
    let row = Statement::<(), (i64, i64, String)>::new(
        "select confirmed, refused, coalesce(last_error, '') from trunkline.relay where queue = 'q'",
    );
    let (confirmed, refused, error) = db.run(&row, ()).await.expect("asked");
    assert_eq!((confirmed, refused), (2, 2));
    assert!(error.contains("the message at \"2\"") && error.contains("JSON"), "{error}");
    stop.cancel();
    running.await.expect("no panic").expect("a clean end");
}

#[tokio::test(flavor = "multi_thread")]
async fn too_deep_message_ends_a_relay_with_its_position() {
    let db = database().await;
    let queue = db.queue::<Raw>("q").await.expect("opened");
    let relay = relay_from(told(vec!["1".to_owned(), deep()]), queue);
    let error = relay.run(std::future::pending()).await.expect_err("it cannot be stored").to_string();
    assert!(error.contains("the message at \"1\""), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn relay_keeps_its_position_while_its_broker_hangs() {
    let db = database().await;
    let queue = db.queue::<Raw>("q").await.expect("opened");
    let stop = CancellationToken::new();
    let running = tokio::spawn(relay_from(Hanging, queue).run(stop.clone().cancelled_owned()));
    let is_held = Statement::<(), (bool,)>::new("select coalesce(max(held_until) > now(), false) from trunkline.relay");
    crate::stand::until("it has claimed the position", async || db.run(&is_held, ()).await.expect("asked").0).await;
    // Expires the hold, which has the same effect as a time without reports.
    let late = Statement::<(), u64>::new("update trunkline.relay set held_until = '-infinity'");
    assert_eq!(db.run(&late, ()).await.expect("updated"), 1);
    crate::stand::until("it has reported", async || db.run(&is_held, ()).await.expect("asked").0).await;
    stop.cancel();
    running.await.expect("no panic").expect("a clean end");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relay_ends_when_its_position_is_gone() {
    let ends = async |gone: &'static str| {
        let db = database().await;
        let queue = db.queue::<Raw>("q").await.expect("opened");
        let running = tokio::spawn(relay_from(told(vec!["1".to_owned()]), queue).run(std::future::pending()));
        let row = Statement::<(), Option<(String,)>>::new(
            "select position from trunkline.relay where queue = 'q' and position is not null",
        );
        crate::stand::until("it has a position", async || db.run(&row, ()).await.expect("asked").is_some()).await;
        db.run(&Statement::<(), u64>::new(gone), ()).await.expect("gone");
        let error = running.await.expect("no panic").expect_err("there is no position").to_string();
        assert!(error.contains("the position of relay \"q from told\" is gone"), "{error}");
    };
    tokio::join!(ends("delete from trunkline.relay"), ends("select trunkline.drop_queue('q')"));
}

#[tokio::test(flavor = "multi_thread")]
async fn queue_that_refuses_everything_loses_no_message() {
    let refuses = [
        "alter table trunkline.queue_q add constraint drained check (false) not valid",
        "select setval('trunkline.id_q', 1024, false)",
        "alter sequence trunkline.id_q maxvalue 2048; select setval('trunkline.id_q', 2048)",
    ];
    let accepts = [
        "alter table trunkline.queue_q drop constraint drained",
        "select trunkline.repair_sequence('q')",
        "alter sequence trunkline.id_q maxvalue 9223372036854775807",
    ];
    for (refuses, accepts) in refuses.into_iter().zip(accepts) {
        let db = database().await;
        let queue = db.queue::<Raw>("q").await.expect("opened");
        queue.enqueue(Raw("0".into())).await.expect("enqueued");
        let sql = async |text: &str| {
            for text in text.split("; ") {
                db.run(&Statement::<(), ()>::of(text.to_owned()), ()).await.expect("done");
            }
        };
        sql(refuses).await;
        let stop = CancellationToken::new();
        let relay = relay_from(told(vec!["1".to_owned(), "2".to_owned()]), queue.clone()).pass_over(true);
        let progress = relay.progress();
        let running = tokio::spawn(relay.run(stop.clone().cancelled_owned()));
        crate::stand::until("it has failed", async || progress.last_error().is_some()).await;
        let reported = Statement::<(), (bool,)>::new("select bool_and(last_error is not null) from trunkline.relay");
        crate::stand::until("it reports that", async || db.run(&reported, ()).await.expect("asked").0).await;
        sql(accepts).await;
        crate::stand::until("all are there", async || queue.stats().await.is_ok_and(|stats| stats.messages == 3)).await;
        let skipped = Statement::<(), (i64,)>::new("select coalesce(sum(refused), 0)::int8 from trunkline.relay");
        assert_eq!(db.run(&skipped, ()).await.expect("asked"), (0,), "{refuses}");
        stop.cancel();
        running.await.expect("no panic").expect("a clean end");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn relay_ends_when_its_queues_function_is_missing_and_skips_nothing() {
    let db = database().await;
    let queue = db.queue::<Raw>("q").await.expect("opened");
    let sql = async |text: &str| db.run(&Statement::<(), ()>::of(text.to_owned()), ()).await.expect("done");
    let function = "select oid::regprocedure::text from pg_proc where proname = 'do_batch_q'";
    let (batch,) = db.run(&Statement::<(), (String,)>::of(function.to_owned()), ()).await.expect("found");
    sql(&format!("alter function {batch} rename to away")).await;
    let three = || told(vec!["1".to_owned(), "2".to_owned(), "3".to_owned()]);
    let relay = relay_from(three(), queue.clone()).pass_over(true);
    let progress = relay.progress();
    let running = tokio::spawn(relay.run(std::future::pending()));
    let over = async || running.is_finished() || progress.refused() > 0;
    crate::stand::until("it ends, or skips a message", over).await;
    assert_eq!(progress.refused(), 0, "no message is skipped");
    let error = running.await.expect("no panic").expect_err("there is no queue");
    assert!(error.database().is_some_and(trunkline::Error::is_no_queue), "{error}");
    let row = Statement::<(), (Option<String>, i64)>::new("select position, refused from trunkline.relay");
    assert_eq!(db.run(&row, ()).await.expect("asked"), (None, 0));
    sql(&format!("alter function {} rename to do_batch_q", batch.replace("do_batch_q", "away"))).await;
    let stop = CancellationToken::new();
    let running = tokio::spawn(relay_from(three(), queue.clone()).run(stop.clone().cancelled_owned()));
    crate::stand::until("all are there", async || queue.stats().await.is_ok_and(|stats| stats.messages == 3)).await;
    stop.cancel();
    running.await.expect("no panic").expect("a clean end");
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_with_impossible_keys_or_metadata_are_passed_over_and_named() {
    let db = database().await;
    db.create_queue("keyed", &Settings::of::<String>().partitions(2)).await.expect("created");
    let queue = db.queue::<Raw>("keyed").await.expect("opened");
    let of = |key: Option<&str>| Incoming { key: key.map(str::to_owned), body: "x".into(), ..Incoming::default() };
    let mut large = of(Some("a"));
    large.metadata.insert("large", "x".repeat(17 << 10));
    let (longest, longer) = ("k".repeat(1024), "k".repeat(1025));
    let all = vec![of(Some("a")), of(None), of(Some("")), large, of(Some(&longer)), of(Some(&longest))];
    let (stop, relay) = (CancellationToken::new(), relay_from(Told(all), queue.clone()).pass_over(true));
    let progress = relay.progress();
    let running = tokio::spawn(relay.run(stop.clone().cancelled_owned()));
    crate::stand::until("the last one is there", async || progress.confirmed() == 2).await;
    stop.cancel();
    running.await.expect("no panic").expect("a clean end");
    let row = Statement::<(), (i64, i64)>::new("select confirmed, refused from trunkline.relay");
    assert_eq!(db.run(&row, ()).await.expect("asked"), (2, 4));
    assert_eq!(queue.stats().await.expect("counted").messages, 2);
    let (_, error) = progress.last_error().expect("the last one that was skipped");
    assert!(error.contains("the message at \"4\"") && error.contains("1025 bytes"), "{error}");
    let relay = relay_from(Told(vec![of(None)]), queue).name("other");
    let error = relay.run(std::future::pending()).await.expect_err("it has no key");
    assert!(error.is_stopped() && error.to_string().contains("needs a key"), "{error}");
}
