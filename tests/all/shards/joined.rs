//! Tests the rules for shards of the same set, and a server that joins the set.

use std::time::Duration;

use futures_util::{StreamExt, future::try_join_all};
use tokio::time::timeout;
use trunkline::{
    Db, Message,
    Right::{Consumer, Producer},
    Wait, Worker, shards,
};

use super::{counts, numbers, shard, three};
use crate::fixture::{SOON, Said, Seen, connect, database, eventually, of_role, settled, superuser};

#[tokio::test(flavor = "multi_thread")]
async fn server_named_twice_or_copied_is_refused() {
    let url = shard().await;
    let error = shards::Set::connect([&url, &url]).await.expect_err("one shard twice");
    assert!(error.to_string().contains("name each server once"), "{error}");
    assert!(!error.to_string().contains("user="), "{error}");
    // Connects to two databases that are copies of one template, and so have the same shard number.
    let (one, other) = (database().await, database().await);
    let error = shards::Set::connect([&one, &other]).await.expect_err("copies");
    assert!(error.to_string().contains("set number = default"), "{error}");
    superuser(&other).await.batch_execute("update trunkline.stripe set number = default").await.expect("renewed");
    shards::Set::connect([&one, &other]).await.expect("two shards");
}

#[tokio::test(flavor = "multi_thread")]
async fn permanent_problem_is_an_error_that_names_its_server() {
    let url = shard().await;
    let nothing = crate::fixture::empty_database("no_shard").await;
    let error = shards::Set::connect([&url, &nothing]).await.expect_err("no schema");
    assert!(error.to_string().contains("/no_shard: ") && error.to_string().contains("migrate"), "{error}");
    let error =
        shards::Set::connect([&url, &settled(&url.replace("dbname=", "dbname=no_"))]).await.expect_err("no database");
    assert_eq!(error.sqlstate().map(|code| code.code().to_owned()).as_deref(), Some("3D000"), "{error}");
    shards::Set::connect([&url, "host=a port=none"]).await.expect_err("no port");
    let none: [&str; 0] = [];
    let error = shards::Set::connect(none).await.expect_err("none");
    assert!(error.to_string().contains("no shard was reached"), "{error}");
    let shards = shards::Set::connect([&url]).await.expect("one is a shard, too");
    let error = shards.queue::<i64>("q").await.expect_err("no queue");
    assert!(error.is_no_queue() && error.to_string().contains("shard "), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn address_of_another_shard_is_down_and_settles_nothing() {
    let three = three(numbers()).await;
    let id = three.queue.enqueue(1).await.expect("enqueued").id();
    let mut consumer = three.queue.consumer(Wait::Adaptive);
    let leased = timeout(SOON, consumer.lease(1)).await.expect("in time").expect("leased");
    assert_eq!(leased[0].id(), id);
    let sql = superuser(&three.url(id.shard).await).await;
    let queue = three.queue.clone();
    let waiting = tokio::spawn(async move {
        let mut messages = queue.consumer(Wait::Notify).messages(1);
        while messages.next().await.is_some() {} // goes on after errors
    });
    let announced = async || -> bool {
        sql.query_one("select trunkline.announced('trunkline.q')", &[]).await.expect("asked").get(0)
    };
    eventually("a consumer listens", announced).await;
    let other = shards::Id(!id.shard.0);
    // Changes the number and ends all connections, as if the address led to another database that
    // has a message of the same id.
    let becomes = async |shard: shards::Id| {
        let number = shard.0.cast_signed();
        sql.batch_execute(&format!("update trunkline.stripe set number = {number}")).await.expect("renumbered");
        let end = "select pg_terminate_backend(pid, 10000) from pg_stat_activity
                   where datname = current_database() and pid <> pg_backend_pid()";
        sql.query(end, &[]).await.expect("ended");
    };
    becomes(other).await;
    eventually("a new connection is refused", async || {
        let acked = timeout(SOON, three.queue.ack(&leased)).await.expect("in time");
        acked.expect_err("it is another shard").to_string().contains(&other.to_string())
    })
    .await;
    eventually("the shard is down, and both are named", async || {
        let _ = three.queue.routing(shards::Routing::RoundRobin).enqueue(2).await;
        let state = three.shards.list().into_iter().find(|state| state.id == Some(id.shard)).expect("in the set");
        let told = state.down.map(|error| error.to_string()).unwrap_or_default();
        told.contains(&id.shard.to_string()) && told.contains(&other.to_string())
    })
    .await;
    assert!(!announced().await, "no listener stays at another shard");
    becomes(id.shard).await;
    eventually("a consumer listens again", announced).await;
    waiting.abort();
    eventually("it is up again", async || three.shards.list().iter().all(|state| state.down.is_none())).await;
    three.queue.ack(&leased).await.expect("it is the same shard again");
}

#[tokio::test]
async fn server_that_is_down_at_the_start_is_a_warning() {
    let warnings = Said::warnings();
    let _ear = warnings.listen();
    let url = shard().await;
    let down = "host=127.0.0.1 port=1 user=u dbname=d sslmode=disable";
    let shards = shards::Set::connect([url.as_str(), down]).await.expect("one was reached");
    assert!(warnings.contains("cannot reach a shard") && warnings.contains("127.0.0.1:1/d"), "{:?}", warnings.take());
    shards.add("host=127.0.0.1 port=2 user=u dbname=d sslmode=disable").await.expect("tried again");
    assert!(warnings.contains("127.0.0.1:2/d"), "{:?}", warnings.take());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shard_more_is_taken_in_by_what_runs_already() {
    let three = three(numbers()).await;
    let url = shard().await;
    Db::connect(&url).await.expect("connected").create_queue("q", &numbers()).await.expect("created");
    let seen = Seen::default();
    let count = seen.clone();
    let worker = shards::Worker::new(three.queue.clone(), move |_, queue| {
        let count = count.clone();
        Worker::new(queue, move |message: Message<i64>| {
            count.add(&message);
            async { Ok::<(), trunkline::Failure>(()) }
        })
    });
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let working = tokio::spawn(worker.run(async { stopped.await.unwrap_or(()) }));
    three.shards.add(&url).await.expect("added");
    eventually("the queue is open there, too", || async { three.queue.queues().len() == 4 }).await;
    let ids = try_join_all((0..40).map(|n| three.queue.enqueue(n))).await.expect("enqueued");
    assert_eq!(counts(ids).len(), 4);
    eventually("all are worked on", || async { seen.all().len() == 40 }).await;
    stop.send(()).expect("it runs");
    assert_eq!(working.await.expect("no panic").expect("no error").done, 40);

    // A consumer that is already waiting also takes from the new shard.
    let url = shard().await;
    Db::connect(&url).await.expect("connected").create_queue("q", &numbers()).await.expect("created");
    let mut consumer = three.queue.consumer(Wait::Notify);
    let waiter = tokio::spawn(async move { consumer.lease(1).await });
    let sql = connect(&three.urls[0]).await;
    crate::fixture::until_asleep(&sql).await;
    three.shards.add(&url).await.expect("added");
    eventually("the queue is open there, too", || async { three.queue.queues().len() == 5 }).await;
    let number = connect(&url).await.query_one("select number from trunkline.stripe", &[]).await.expect("one row");
    let id = shards::Id(number.get::<_, i32>(0).cast_unsigned());
    let part = three.queue.queues().into_iter().find(|part| part.shard == id).expect("the fifth");
    part.enqueue(7).await.expect("enqueued");
    let leased = tokio::time::timeout(Duration::from_secs(20), waiter)
        .await
        .expect("in time")
        .expect("no panic")
        .expect("leased");
    assert_eq!((leased[0].shard, leased[0].payload), (part.shard, 7));
}

#[tokio::test(flavor = "multi_thread")]
async fn roles_with_the_least_rights_can_use_shards() {
    let three = three(numbers()).await;
    for (nr, url) in three.urls.iter().enumerate() {
        let sql = superuser(url).await;
        let create = "do $$ begin create role sharded_producer login; create role sharded_consumer login; exception when duplicate_object then null; end $$";
        if nr == 0 {
            sql.batch_execute(create).await.expect("created");
        }
        let db = Db::connect(url).await.expect("connected");
        db.grant(&[(Producer, "sharded_producer"), (Consumer, "sharded_consumer")], Some("q")).await.expect("granted");
    }
    let of = |role: &'static str| three.urls.iter().map(move |url| settled(&of_role(url, role))).collect::<Vec<_>>();
    let produced = shards::Set::connect(of("sharded_producer")).await.expect("connected");
    let ids = {
        let queue = produced.queue::<i64>("q").await.expect("opened");
        try_join_all((0..9).map(|n| queue.enqueue(n))).await.expect("enqueued")
    };
    assert_eq!(counts(ids).len(), 3);
    let consumed = shards::Set::connect(of("sharded_consumer")).await.expect("connected");
    let queue = consumed.queue::<i64>("q").await.expect("opened");
    let (mut all, mut leased) = (queue.consumer(Wait::Adaptive), Vec::new());
    while leased.len() < 9 {
        leased.extend(timeout(SOON, all.lease(9)).await.expect("in time").expect("leased"));
    }
    assert_eq!(leased.len(), 9);
    queue.ack(&leased).await.expect("acknowledged");
    let id = leased[0].shard;
    let error = consumed.drain(id, |_| ()).await.expect_err("the owner's");
    assert_eq!(error.sqlstate().map(|code| code.code().to_owned()).as_deref(), Some("42501"), "{error}");
    assert!(consumed.drain(trunkline::shards::Id(1), |_| ()).await.is_err());
}
