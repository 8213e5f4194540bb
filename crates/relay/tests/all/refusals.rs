//! A broker that refuses bodies on request. A message that it refuses for good becomes a dead
//! letter with its reason. A message that it refuses for now is tried again, and other messages
//! continue in the meantime.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;
use trunkline::{Db, Draft, Queue, Settings, postgres::Statement};
use trunkline_relay::{Envelope, Outcome, Outgoing, Raw, Sink, relay};

/// A sink that refuses a body if the body asks for it.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<Stored>>);

#[derive(Default)]
struct Stored {
    bodies: Vec<Outgoing>,
    tries: HashMap<String, u32>,
}

impl Sink for Told {
    fn broker(&self) -> &'static str {
        "told"
    }

    fn produce<'a>(&'a self, batch: &'a [Outgoing]) -> BoxFuture<'a, Vec<Outcome>> {
        let mut stored = self.0.lock().expect("not poisoned");
        let answer = |message: &Outgoing| {
            let body = String::from_utf8_lossy(&message.body).into_owned();
            let tries = stored.tries.entry(body.clone()).or_default();
            *tries += 1;
            if body.contains("never") {
                return Outcome::RefusedForGood("told: too large".to_owned());
            }
            if body.contains("always") || body.contains("later") && *tries < 4 {
                return Outcome::RefusedForNow("told: full".to_owned());
            }
            stored.bodies.push(message.clone());
            Outcome::Confirmed
        };
        let outcomes = batch.iter().map(answer).collect();
        Box::pin(async move { outcomes })
    }
}

async fn queue(settings: &Settings) -> Queue<Raw> {
    let db = Db::connect(&trunkline_embedded::test_database().expect("a database")).await.expect("connected");
    db.migrate().await.expect("migrated");
    db.create_queue("q", settings).await.expect("created");
    db.queue("q").await.expect("opened")
}

async fn drained(queue: &Queue<Raw>) {
    let end = tokio::time::Instant::now() + Duration::from_secs(60);
    while queue.stats().await.expect("counted").messages > 0 {
        assert!(tokio::time::Instant::now() < end, "not drained");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn message_refused_for_good_dies_alone_with_brokers_words() {
    let (queue, told) = (queue(&Settings::of::<String>().max_attempts(2)).await, Told::default());
    let bodies = ["a", "never", "later", "b"];
    queue.enqueue_many(bodies.map(|body| Raw(body.into()))).await.expect("enqueued");
    let stop = CancellationToken::new();
    let relay = relay(queue.clone(), told.clone());
    let progress = relay.progress();
    let running = tokio::spawn(relay.run(stop.clone().cancelled_owned()));
    drained(&queue).await;
    stop.cancel();
    running.await.expect("no panic").expect("a clean end");
    let dead = queue.dead_letters(0, 10).await.expect("listed");
    assert_eq!(
        dead.iter().map(|letter| (&*letter.error, letter.attempt)).collect::<Vec<_>>(),
        [("told: too large", 1)]
    );
    let stored = told.0.lock().expect("not poisoned");
    let mut arrived: Vec<_> = stored.bodies.iter().map(|message| message.body.clone()).collect();
    arrived.sort();
    assert_eq!(arrived, ["a", "b", "later"], "tried four times, with two attempts");
    assert_eq!((progress.confirmed(), progress.refused(), progress.again(), progress.held()), (3, 1, 3, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn key_waits_for_refused_message_while_other_keys_pass() {
    let (queue, told) = (queue(&Settings::of::<String>().partitions(4)).await, Told::default());
    for (key, body) in [("x", "x 1 later"), ("x", "x 2"), ("y", "y 1"), ("x", "x 3"), ("y", "y 2")] {
        queue.enqueue(Draft::new(Raw(body.into())).key(key)).await.expect("enqueued");
    }
    let stop = CancellationToken::new();
    let running = tokio::spawn(relay(queue.clone(), told.clone()).run(stop.clone().cancelled_owned()));
    drained(&queue).await;
    stop.cancel();
    running.await.expect("no panic").expect("a clean end");
    let stored = told.0.lock().expect("not poisoned");
    let of = |key: &str| -> Vec<_> {
        let bodies = stored.bodies.iter().map(|message| String::from_utf8_lossy(&message.body).into_owned());
        bodies.filter(|body| body.starts_with(key)).collect()
    };
    assert_eq!(
        (of("x"), of("y")),
        (vec!["x 1 later".into(), "x 2".into(), "x 3".into()], vec!["y 1".into(), "y 2".into()])
    );
    let place = |body: &str| stored.bodies.iter().position(|message| message.body == body);
    assert!(place("y 2") < place("x 1 later"), "others pass");
}

#[tokio::test(flavor = "multi_thread")]
async fn shutdown_gives_back_refused_messages_without_counting_attempts() {
    let (queue, told) = (queue(&Settings::of::<String>()).await, Told::default());
    queue.enqueue(Raw("always later".into())).await.expect("enqueued");
    let stop = CancellationToken::new();
    let relay = relay(queue.clone(), told.clone());
    let progress = relay.progress();
    let running = tokio::spawn(relay.run(stop.clone().cancelled_owned()));
    while progress.again() == 0 {
        tokio::task::yield_now().await;
    }
    stop.cancel();
    running.await.expect("no panic").expect("a clean end");
    let again = queue.lease(1).await.expect("leased");
    assert_eq!(again.iter().map(trunkline::Message::attempts).collect::<Vec<_>>(), [1], "this lease only");
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_whose_release_fails_at_the_end_stay_in_the_queue() {
    let (queue, told) = (queue(&Settings::of::<String>().max_attempts(1)).await, Told::default());
    queue.enqueue_many(["always 1", "always 2"].map(|body| Raw(body.into()))).await.expect("enqueued");
    let stop = CancellationToken::new();
    let relay = relay(queue.clone(), told.clone());
    let progress = relay.progress();
    let running = tokio::spawn(relay.run(stop.clone().cancelled_owned()));
    while progress.held() < 2 {
        tokio::task::yield_now().await;
    }
    let say = async |text: &str| {
        queue.db().run(&Statement::<(), ()>::of(text.to_owned()), ()).await.expect("the owner may");
    };
    let function = "select p.oid::regprocedure::text from pg_proc p where p.proname = 'do_release_q'";
    let function: Statement<(), (String,)> = Statement::of(function.to_owned());
    let (release,) = queue.db().run(&function, ()).await.expect("found");
    say(&format!("alter function {release} rename to do_other_q")).await;
    stop.cancel();
    let tried = "select exists (select from pg_stat_activity where datname = current_database()
                                and query like '%do_release_q%' and pid <> pg_backend_pid())";
    let tried: Statement<(), (bool,)> = Statement::of(tried.to_owned());
    let end = tokio::time::Instant::now() + Duration::from_secs(60);
    while !queue.db().run(&tried, ()).await.expect("activity is visible").0 {
        assert!(tokio::time::Instant::now() < end, "nothing is released");
    }
    assert!(!running.is_finished(), "it tries again");
    say(&format!("alter function {} rename to do_release_q", release.replace("do_release_q", "do_other_q"))).await;
    running.await.expect("no panic").expect("a clean end");
    let again = queue.lease(9).await.expect("leased");
    assert_eq!(again.iter().map(trunkline::Message::attempts).collect::<Vec<_>>(), [1, 1], "these leases only");
}

#[tokio::test(flavor = "multi_thread")]
async fn message_follows_its_fields_in_an_envelope_with_headers() {
    let (queue, told) = (queue(&Settings::of::<serde_json::Value>()).await, Told::default());
    let draft = |body: &'static str| Draft::new(Raw(body.into())).with("tenant", "acme").with("traceparent", TRACE);
    queue.enqueue(draft(r#"{"kind": "new", "n": 1.50}"#)).await.expect("enqueued");
    queue.enqueue(draft(r#"{"n": 2}"#)).await.expect("enqueued");
    let stop = CancellationToken::new();
    let route = "orders.{metadata.tenant}.{payload.kind}".parse().expect("a route");
    let relay = relay(queue.clone(), told.clone()).route(route).envelope(Envelope::CloudEvents);
    let running = tokio::spawn(relay.run(stop.clone().cancelled_owned()));
    drained(&queue).await;
    stop.cancel();
    running.await.expect("no panic").expect("a clean end");
    let bodies = told.0.lock().expect("not poisoned").bodies.clone();
    let [message] = &bodies[..] else { panic!("{} arrived", bodies.len()) };
    assert_eq!(&*message.to, "orders.acme.new");
    let event: serde_json::Value = serde_json::from_slice(&message.body).expect("JSON");
    assert_eq!((&event["specversion"], &event["type"], &event["tenant"]), (&"1.0".into(), &"q".into(), &"acme".into()));
    assert_eq!((&event["data"]["kind"], &event["id"]), (&"new".into(), &message.id.clone().into()));
    let headers: HashMap<_, _> = message.headers().map(|(name, text)| (name.to_owned(), text.into_owned())).collect();
    assert_eq!(headers["traceparent"], TRACE);
    assert_eq!((&*headers["trunkline-id"], &*headers["trunkline-attempt"]), (&*message.id, "1"));
    let dead = queue.dead_letters(0, 10).await.expect("listed");
    assert!(dead[0].error.contains("the payload has no \"kind\""), "{}", dead[0].error);
}

const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

#[tokio::test(flavor = "multi_thread")]
async fn relay_is_seen_while_it_runs_and_not_after() {
    let (queue, told) = (queue(&Settings::of::<String>()).await, Told::default());
    let count = trunkline::postgres::Statement::<(), (i64,)>::new(
        "select count(*) from trunkline.relay where queue = 'q' and broker = 'told' and not inward",
    );
    let stop = CancellationToken::new();
    let running = tokio::spawn(relay(queue.clone(), told).run(stop.clone().cancelled_owned()));
    while queue.db().run(&count, ()).await.expect("counted") != (1,) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    stop.cancel();
    running.await.expect("no panic").expect("a clean end");
    assert_eq!(queue.db().run(&count, ()).await.expect("counted"), (0,));
}

#[tokio::test(flavor = "multi_thread")]
async fn impossible_route_is_refused_at_the_start() {
    let queue = queue(&Settings::of::<Vec<u8>>()).await;
    for route in ["{key}", "{payload.kind}"] {
        let relay = relay(queue.clone(), Told::default()).route(route.parse().expect("a template"));
        let error = relay.run(std::future::pending()).await.expect_err("refused");
        assert!(error.is_usage(), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn queue_named_like_schema_is_relayed_in_another_schema() {
    let url = trunkline_embedded::test_database().expect("a database");
    let and = if url.contains("://") { if url.contains('?') { "&" } else { "?" } } else { " " };
    let db = Db::connect(&format!("{url}{and}schema=other")).await.expect("connected");
    db.migrate().await.expect("migrated");
    for name in ["trunkline.x", "other.x"] {
        db.create_queue(name, &Settings::of::<String>()).await.expect("created");
    }
    let (queue, sibling): (Queue<Raw>, Queue<Raw>) =
        (db.queue("trunkline.x").await.expect("opened"), db.queue("other.x").await.expect("opened"));
    for (queue, body) in [(&queue, "ours"), (&sibling, "theirs")] {
        queue.enqueue(Raw(body.into())).await.expect("enqueued");
    }
    let (told, stop) = (Told::default(), CancellationToken::new());
    let running = tokio::spawn(relay(queue.clone(), told.clone()).run(stop.clone().cancelled_owned()));
    drained(&queue).await;
    let row = trunkline::postgres::Statement::<(), Option<(String,)>>::new("select queue from other.relay");
    let end = tokio::time::Instant::now() + Duration::from_secs(60);
    while db.run(&row, ()).await.expect("asked") != Some(("trunkline.x".to_owned(),)) {
        assert!(tokio::time::Instant::now() < end, "no row of the queue's relay");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    stop.cancel();
    running.await.expect("no panic").expect("a clean end");
    assert_eq!(sibling.stats().await.expect("counted").messages, 1);
    let stored = told.0.lock().expect("not poisoned");
    assert_eq!(
        stored.bodies.iter().map(|one| (&*one.body, &*one.to)).collect::<Vec<_>>(),
        [(&b"ours"[..], "trunkline.x")]
    );
}
