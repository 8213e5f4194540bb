//! Migrations that wait for each other, that end early, and that are repeated.

use tokio::task::JoinHandle;
use tokio_postgres::Client;
use trunkline::{Db, Result, SCHEMA_VERSION};

use super::{of_the_future, schema, two_attempts};
use crate::fixture::{connect, database, eventually};

/// Starts migrations, and waits until all of them wait for the lock that another session holds.
async fn waiting(url: &str, sql: &Client, count: i64) -> Vec<JoinHandle<Result<usize>>> {
    let mut all = Vec::new();
    for _ in 0..count {
        let db = Db::connect(url).await.expect("connected");
        all.push(tokio::spawn(async move { db.migrate().await }));
    }
    eventually("they wait", async || {
        // Databases that were copied from one template have tables with the same numbers.
        let waiting = "select count(*) from pg_locks where relation = 'trunkline.migration'::regclass and not granted
                       and database = (select oid from pg_database where datname = current_database())";
        sql.query_one(waiting, &[]).await.expect("read").get::<_, i64>(0) == count
    })
    .await;
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn migration_that_waited_for_another_repeats_nothing() {
    let url = database().await;
    let (sql, holder) = (connect(&url).await, connect(&url).await);
    let counted = "create sequence public.migrations minvalue 0 start 0;
         create function public.count() returns trigger language plpgsql as $$ begin perform nextval('public.migrations'); return new; end $$;
         create trigger count before insert on trunkline.version for each row execute function public.count();
         update trunkline.version set functions = ''";
    sql.batch_execute(counted).await.expect("changed");
    holder.batch_execute("begin; lock table trunkline.migration in share row exclusive mode").await.expect("locked");
    let all = waiting(&url, &sql, 4).await;
    holder.batch_execute("commit").await.expect("let go");
    for one in all {
        assert_eq!(one.await.expect("no panic").expect("migrated"), 0);
    }
    let count = "select last_value + is_called::int from public.migrations";
    assert_eq!(sql.query_one(count, &[]).await.expect("read").get::<_, i64>(0), 1, "one of them did it all");
}

#[tokio::test(flavor = "multi_thread")]
async fn migration_that_waited_for_a_newer_one_changes_nothing() {
    let url = database().await;
    let (db, sql, holder) = (Db::connect(&url).await.expect("connected"), connect(&url).await, connect(&url).await);
    db.create_queue("q", &two_attempts()).await.expect("created");
    sql.batch_execute("update trunkline.version set functions = ''").await.expect("older");
    let before = schema(&sql).await;
    holder.batch_execute("begin; lock table trunkline.migration in share row exclusive mode").await.expect("locked");
    let all = waiting(&url, &sql, 1).await;
    of_the_future(&holder, SCHEMA_VERSION).await;
    holder.batch_execute("commit").await.expect("let go");
    for one in all {
        assert_eq!(one.await.expect("no panic").expect("nothing to do"), 0);
    }
    assert_eq!(schema(&sql).await, before);
    let found = "select functions from trunkline.version order by version desc limit 1";
    assert_eq!(sql.query_one(found, &[]).await.expect("read").get::<_, String>(0), "others");
}

#[tokio::test(flavor = "multi_thread")]
async fn migration_outlasts_the_timeouts_of_its_role() {
    let url = database().await;
    let (sql, holder) = (connect(&url).await, connect(&url).await);
    let version = "select current_setting('server_version_num')::int";
    let version: i32 = sql.query_one(version, &[]).await.expect("read").get(0);
    let newer = if version >= 170_000 { "-c transaction_timeout=1s" } else { "" };
    let timeouts = format!("-c statement_timeout=1s -c idle_in_transaction_session_timeout=1s {newer}");
    sql.batch_execute("update trunkline.version set functions = ''").await.expect("older");
    holder.batch_execute("begin; lock table trunkline.migration in share row exclusive mode").await.expect("locked");
    let all = waiting(&format!("{url} options='{timeouts}'"), &sql, 1).await;
    eventually("it waits for longer than the timeouts", async || {
        let waits = "select exists (select from pg_stat_activity where datname = current_database()
            and wait_event_type = 'Lock' and query_start < clock_timestamp() - interval '1.2 s')";
        sql.query_one(waits, &[]).await.expect("read").get::<_, bool>(0)
    })
    .await;
    holder.batch_execute("commit").await.expect("let go");
    for one in all {
        assert_eq!(one.await.expect("no panic").expect("migrated"), 0);
    }
}
