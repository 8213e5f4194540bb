//! Two applications use one database. Each has its own schema until both schemas are dropped.

use std::time::Duration;

use tokio::time::timeout;
use trunkline::{Db, Queue, Settings, Wait};

use crate::fixture::{SOON, connect, empty_database, until_asleep};

async fn queue(db: &Db) -> Queue<String> {
    db.migrate().await.expect("migrated");
    db.create_queue("jobs", &Settings::new("text").max_attempts(1)).await.expect("created");
    db.queue("jobs").await.expect("opened")
}

#[tokio::test(flavor = "multi_thread")]
async fn two_applications_share_a_database_and_do_not_meet() {
    let url = empty_database("two_schemas").await;
    let ours = Db::connect(&format!("{url} schema=ours")).await.expect("connected");
    let theirs = Db::connect(&format!("{url} schema=theirs")).await.expect("connected");
    let (one, other) = (queue(&ours).await, queue(&theirs).await);
    let sql = connect(&url).await;

    // Neither messages nor notifications reach the other schema.
    let mut consumer = other.consumer(Wait::Notify);
    let waiter = tokio::spawn(async move { consumer.take(9).await });
    until_asleep(&sql).await;
    one.enqueue("mine".to_owned()).await.expect("enqueued");
    sql.batch_execute("select ours.enqueue('jobs', 'from SQL'::text)").await.expect("enqueued");
    assert_eq!(one.stats().await.expect("counted").messages, 2);
    assert_eq!(other.stats().await.expect("counted").messages, 0);
    assert!(!waiter.is_finished());
    sql.batch_execute("select theirs.enqueue('jobs', 'theirs'::text)").await.expect("enqueued");
    let got = timeout(SOON, waiter).await.expect("woken").expect("no panic").expect("taken");
    assert_eq!(got.iter().map(|message| &*message.payload).collect::<Vec<_>>(), ["theirs"]);

    // All verbs work in each schema, in Rust and in SQL.
    let leased = one.lease(2).await.expect("leased");
    one.archive(&leased[..1]).await.expect("held");
    one.retry(&leased[1..], Duration::ZERO, "no").await.expect("held");
    assert_eq!(one.replay_all().await.expect("replayed"), 1);
    let call = "select ours.bury('jobs', id, attempt) from ours.lease('jobs', 1)";
    sql.batch_execute(call).await.expect("buried");
    let error = sql.batch_execute("select ours.ack('jobs', 1024, 1)").await.expect_err("lost");
    assert!(
        error.as_db_error().and_then(|error| error.hint()).is_some_and(|hint| hint.contains("ours.extend")),
        "{error:?}"
    );
    let said = "select count(*) from pg_proc p join pg_namespace n on n.oid = p.pronamespace
                where n.nspname = 'ours' and p.prosrc ~ '\\mtrunkline[.]'";
    assert_eq!(sql.query_one(said, &[]).await.expect("read").get::<_, i64>(0), 0, "nothing names the other schema");

    ours.teardown().await.expect("torn down");
    ours.teardown().await.expect("and once more");
    assert_eq!(ours.schema_version().await.expect("asked"), 0);
    assert!(one.enqueue("gone".to_owned()).await.expect_err("gone").is_no_queue());
    other.enqueue("stays".to_owned()).await.expect("enqueued");
    ours.migrate().await.expect("migrated again");
    assert!(ours.list_queues().await.expect("listed").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schema_whose_name_would_need_quotes_is_refused() {
    let url = empty_database("named_schemas").await;
    for name in ["A", "1a", "a-b", "pg_a", "a b", "abcdefghijklmno", "a.b", "ä"] {
        let error = Db::connect(&format!("{url} schema='{name}'")).await.expect_err(name).to_string();
        assert!(error.contains("cannot be named") && error.contains("14 characters"), "{error}");
    }
    let db = Db::connect(&format!("{url} schema=user")).await.expect("connected");
    let error = db.migrate().await.expect_err("a reserved word").to_string();
    assert!(error.contains("reserved word"), "{error}");
}
