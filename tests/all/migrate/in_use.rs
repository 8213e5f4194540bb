//! A migration whose tables are in use, for example by `pg_dump`.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use tokio_postgres::{Client, error::SqlState};
use trunkline::{Db, SCHEMA_VERSION};

use super::all_steps;
use crate::fixture::{connect, empty_database, eventually, move_time};

/// Creates the tables of 0.1.0, and returns the database's address.
async fn first_release(name: &str) -> String {
    let url = empty_database(name).await;
    let step = Path::new(env!("CARGO_MANIFEST_DIR")).join("sql/steps/0015_tables.sql");
    let step = std::fs::read_to_string(step).expect("a step");
    let sql = connect(&url).await;
    sql.batch_execute(&format!(
        "create schema trunkline;
         create table trunkline.migration (version int constraint pk_migration primary key, name text not null,
             applied_at timestamptz not null default now(), functions text not null default '');
         set search_path = pg_catalog, pg_temp; {step}; reset search_path;
         insert into trunkline.migration (version, name) select n, 'of 0.1.0' from generate_series(1, 15) n"
    ))
    .await
    .expect("made");
    url
}

/// Waits until a migration waits for the table `queue`, or no longer waits.
async fn until_it_waits(sql: &Client, is_waiting: bool) {
    eventually("a lock is waited for, or no longer", async || {
        let waits = "select exists (select from pg_locks where relation = 'trunkline.queue'::regclass and not granted
                     and mode = 'AccessExclusiveLock'
                     and database = (select oid from pg_database where datname = current_database()))";
        sql.query_one(waits, &[]).await.expect("read").get::<_, bool>(0) == is_waiting
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn migration_behind_a_long_transaction_holds_up_others_only_briefly() {
    let url = first_release("in_use_for_long").await;
    let (db, sql, holder, reader) =
        (Db::connect(&url).await.expect("connected"), connect(&url).await, connect(&url).await, connect(&url).await);
    holder.batch_execute("begin; select from trunkline.queue").await.expect("in use");
    let migrates = tokio::spawn(async move { db.migrate().await });
    let is_over = Arc::new(AtomicBool::new(false));
    let reads = tokio::spawn({
        let is_over = Arc::clone(&is_over);
        async move {
            let mut longest = Duration::ZERO;
            while !is_over.load(Ordering::Relaxed) {
                let since = Instant::now();
                reader.batch_execute("select from trunkline.queue").await.expect("read");
                longest = longest.max(since.elapsed());
            }
            longest
        }
    });
    for _ in 0..3 {
        until_it_waits(&sql, true).await;
        until_it_waits(&sql, false).await;
    }
    is_over.store(true, Ordering::Relaxed);
    let longest = reads.await.expect("no panic");
    assert!(longest < Duration::from_secs(2), "a read took {longest:?}");
    holder.batch_execute("commit").await.expect("let go");
    assert_eq!(migrates.await.expect("no panic").expect("migrated"), all_steps() - 1);
    let db = Db::connect(&url).await.expect("connected");
    assert_eq!(db.schema_version().await.expect("asked"), SCHEMA_VERSION);
}

#[tokio::test]
async fn migration_that_never_gets_its_locks_names_who_holds_them() {
    let url = first_release("in_use_for_ever").await;
    let (db, sql, holder) = (Db::connect(&url).await.expect("connected"), connect(&url).await, connect(&url).await);
    let pid: i32 = holder.query_one("select pg_backend_pid()", &[]).await.expect("read").get(0);
    let prepare = "begin; select from trunkline.queue; prepare transaction 'in_use_for_ever'";
    sql.batch_execute(prepare).await.expect("prepared");
    holder.batch_execute("begin; select from trunkline.queue").await.expect("in use");
    let migrates = tokio::spawn({
        let db = db.clone();
        async move { db.migrate().await }
    });
    until_it_waits(&sql, true).await;
    move_time(Duration::from_secs(61)).await;
    let error = migrates.await.expect("no panic").expect_err("the table is in use");
    assert_eq!(error.sqlstate(), Some(&SqlState::LOCK_NOT_AVAILABLE), "{error}");
    assert!(error.to_string().contains(&format!("Sessions that use the schema now: {pid}.")), "{error}");
    assert!(error.to_string().contains("Prepared transactions that use the schema now: 'in_use_for_ever'."), "{error}");
    assert_eq!(db.schema_version().await.expect("asked"), 15, "nothing was changed");
    holder.batch_execute("commit").await.expect("let go");
    sql.batch_execute("rollback prepared 'in_use_for_ever'").await.expect("let go");
    assert_eq!(db.migrate().await.expect("migrated"), all_steps() - 1);
}
