//! A consumer gets an error if its queue is dropped or its rights are revoked.

use std::time::Instant;

use tokio::time::timeout;
use trunkline::{Db, Error, Failure, Settings, Wait, Worker};

use super::code;
use crate::{
    contract::{GUARANTEES, Guarantee, next},
    fixture::{Place, SOON, connect, eventually, of_role, place, superuser},
};

#[tokio::test(flavor = "multi_thread")]
async fn consumers_of_a_queue_that_is_dropped_are_told() {
    let Place { db, queue, url, .. } = place::<i64>(Settings::new("int8")).await;
    let mut consumers = Vec::new();
    for wait in [Wait::poll(), Wait::Notify, Wait::Adaptive] {
        // Omits takes in the caller's transaction. While it is open, it would lock the table, so
        // the queue could not be dropped.
        for guarantee in GUARANTEES.into_iter().filter(|guarantee| *guarantee != Guarantee::ExactlyOnceIn) {
            let (queue, mut sql) = (queue.clone(), connect(&url).await);
            consumers.push(tokio::spawn(async move {
                let mut consumer = queue.consumer(wait);
                loop {
                    next(&mut consumer, guarantee, 1, &mut sql).await;
                }
            }));
        }
    }
    for payload in 0..50 {
        queue.enqueue(payload).await.expect("enqueued");
    }
    eventually("all is consumed", || async { queue.stats().await.expect("counted").messages == 0 }).await;
    timeout(SOON, db.drop_queue("q")).await.expect("no session holds it").expect("dropped");
    let began = Instant::now();
    for consumer in consumers {
        let panic = timeout(SOON, consumer).await.expect("it is told before it hangs").expect_err("there is no queue");
        let text = *panic.into_panic().downcast::<String>().expect("a text");
        assert!(text.contains("NoQueue"), "{text}");
    }
    assert!(began.elapsed() < SOON, "each of them soon");
    assert!(queue.enqueue(1).await.expect_err("dropped").is_no_queue());
    assert!(queue.stats().await.expect_err("dropped").is_no_queue());
    db.create_queue("q", &Settings::new("int8")).await.expect("created again");
    queue.enqueue(1).await.expect("the old handle finds the new queue");
    assert_eq!(queue.take(5).await.expect("taken").len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_right_is_named_and_no_message_is_lost() {
    let Place { queue, sql, url, db: _db } = place::<i64>(Settings::new("int8")).await;
    queue.enqueue(1).await.expect("enqueued");
    let admin = superuser(&url).await;
    admin.batch_execute("create role nobody_here login").await.expect("a role");
    let poor = Db::connect(&of_role(&url, "nobody_here")).await.expect("it may connect");
    let denied = |error: Error, object: &str| {
        let text = error.to_string();
        assert!(code(&error) == "42501" && text.contains(object), "{text} names {object}");
        text
    };
    let needs = |error: Error, object: &str, right: &str, role: &str| {
        let text = denied(error, object);
        let grant = format!("`trunkline grant q {role} ROLE`");
        assert!(text.contains(right) && text.contains(&grant), "{text}, but not {right}, {grant}");
    };
    denied(poor.queue::<i64>("q").await.expect_err("no schema"), "schema trunkline");
    denied(poor.migrate().await.expect_err("no schema"), "trunkline");
    sql.batch_execute("grant usage on schema trunkline to nobody_here").await.expect("granted");
    denied(poor.queue::<i64>("q").await.expect_err("no table"), "table version");
    sql.batch_execute("grant select on trunkline.version, trunkline.queue, trunkline.floor to nobody_here")
        .await
        .expect("granted");
    denied(poor.create_queue("mine", &Settings::new("int8")).await.expect_err("no right"), "table migration");
    denied(poor.drop_queue("q").await.expect_err("no right"), "table migration");
    let poorer = connect(&of_role(&url, "nobody_here")).await;
    for call in [
        "create_queue('q', 'int8')",
        "alter_queue('q', max_attempts => 9)",
        "limit_queue('q', max_leased => 1)",
        "pause_queue('q')",
        "resume_queue('q')",
        "drop_queue('q')",
        "rebuild('q')",
        "grant_rights('nobody_here', 'producer', 'q')",
        "revoke_rights('nobody_here')",
    ] {
        let error = poorer.batch_execute(&format!("select trunkline.{call}")).await.expect_err(call);
        let error = error.as_db_error().expect("the server's");
        let is_advised = error.hint().is_some_and(|hint| hint.contains("Only the role that owns the schema"));
        assert!(error.code().code() == "42501" && is_advised, "{call}: {error:?}");
    }
    let poor = poor.queue::<i64>("q").await.expect("it may know of it");
    needs(poor.enqueue(2).await.expect_err("no right"), "table queue_q", "insert", "--producer");
    needs(poor.enqueue_many(&[2]).await.expect_err("no right"), "table queue_q", "insert", "--producer");
    needs(poor.take(1).await.expect_err("no right"), "queue_q", "consume", "--consumer");
    denied(poor.consumer(Wait::Adaptive).lease(1).await.expect_err("no right"), "queue_q");
    denied(poor.stats().await.expect_err("no right"), "queue_q");
    needs(poor.purge().await.expect_err("no right"), "queue_q", "purge", "--consumer");
    let worker = Worker::new(poor.clone(), |_| async { Ok::<(), Failure>(()) });
    let ended = timeout(SOON, worker.run(std::future::pending())).await.expect("it ends by itself");
    needs(ended.expect_err("no right"), "queue_q", "consume", "--consumer");
    sql.batch_execute("grant insert, select on trunkline.queue_q to nobody_here").await.expect("granted");
    needs(poor.enqueue(2).await.expect_err("no right"), "sequence id_q", "USAGE", "--producer");
    assert_eq!(queue.take(5).await.expect("taken").len(), 1, "nothing is lost");
    admin.batch_execute("drop owned by nobody_here").await.expect("cleaned up");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_only_database_says_so() {
    let Place { queue, url, db: _db, .. } = place::<i64>(Settings::new("int8")).await;
    queue.enqueue(1).await.expect("enqueued");
    let db = Db::connect(&format!("{url} options='-c default_transaction_read_only=on'")).await.expect("connected");
    let queue = db.queue::<i64>("q").await.expect("opened");
    assert_eq!(queue.peek(9).await.expect("reading goes").len(), 1);
    for error in [
        queue.enqueue(2).await.expect_err("read only"),
        queue.take(1).await.expect_err("read only"),
        queue.consumer(Wait::Notify).lease(1).await.expect_err("read only"),
    ] {
        assert!(code(&error) == "25006" && error.to_string().contains("read-only"), "{error}");
    }
    assert_eq!(queue.stats().await.expect("counted").due, 1, "nothing is lost");
}
