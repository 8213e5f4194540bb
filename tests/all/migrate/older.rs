//! A database of an older version, with queues in use, brought up to this one.

use std::{collections::BTreeMap, path::Path};

use trunkline::{Db, Metadata, SCHEMA_VERSION, Settings};

use super::{empty_database, schema, works};
use crate::fixture::{connect, database};

/// A database as the library of that version left it.
async fn of_version(version: i32, name: &str) -> String {
    let url = empty_database(name).await;
    let sql = connect(&url).await;
    let begin = include_str!("../../../sql/migrate_begin.sql");
    let mut steps: Vec<_> = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations"))
        .expect("there are steps")
        .map(|step| step.expect("readable").path())
        .filter(|step| step.file_name().is_some_and(|name| name != "schema.sql"))
        .collect();
    steps.sort();
    sql.batch_execute(begin).await.expect("begun");
    for (nr, step) in (1..=version).zip(steps) {
        let text = std::fs::read_to_string(&step).expect("readable");
        sql.batch_execute(&text).await.unwrap_or_else(|error| panic!("{}: {error:?}", step.display()));
        sql.execute("insert into trunkline.migration (version, name) values ($1, 'older')", &[&nr])
            .await
            .expect("noted");
    }
    url
}

#[tokio::test(flavor = "multi_thread")]
async fn queues_of_every_older_version_are_taken_along_with_all_that_is_in_them() {
    // The first step alone has no verbs.
    for version in 2..SCHEMA_VERSION {
        let url = of_version(version, &format!("older_{version}")).await;
        let mut sql = connect(&url).await;
        // A batch, cut by leases, and one of each: leased, retried, dead, archived.
        sql.batch_execute(
            "select trunkline.create_queue('q', 'text', max_attempts => 2, max_batch => 32);
             select trunkline.create_queue('arrays', 'int4[]');
             alter table trunkline.queue_q add tenant text default 'acme';
             select trunkline.enqueue_many('q', array(select 'm' || nr from generate_series(0, 39) nr));
             select trunkline.enqueue_many('arrays', array['{1,2}', '{}']);
             select * from trunkline.lease('q', 3);
             select trunkline.retry('q', 1024, 1, '1 hour', 'no'), trunkline.archive('q', 1025, 1);
             update trunkline.queue_q set due_at = trunkline.clock() where error = 'no';
             select * from trunkline.lease('q', 38);
             select trunkline.retry('q', 1024, 2, error => 'no');
             select trunkline.release('q', id, 1) from generate_series(1030, 1034) id",
        )
        .await
        .expect("used");
        let lines = "select id, payload || ' ' || attempt from trunkline.messages('q')";
        let lines = async |sql: &tokio_postgres::Client| -> BTreeMap<i64, String> {
            sql.query(lines, &[]).await.expect("read").iter().map(|row| (row.get(0), row.get(1))).collect()
        };
        let before = lines(&sql).await;
        assert_eq!(before.len(), 38);

        let db = Db::connect(&url).await.expect("connected");
        assert_eq!(db.migrate().await.expect("migrated"), (SCHEMA_VERSION - version).unsigned_abs() as usize);
        assert_eq!(lines(&sql).await, before, "from version {version}");
        let queue = db.queue::<String>("q").await.expect("opened");
        let leased = queue.at_least_once(99).await.expect("leased");
        assert!(leased.len() == 5 && leased.iter().all(|message| message.metadata.is_empty()));
        queue.ack(&leased).await.expect("held");
        let dead = queue.dead_letters(0, 9).await.expect("read");
        assert!(dead.len() == 1 && dead[0].metadata.is_empty());
        assert_eq!(queue.archived(0, 9).await.expect("read")[0].metadata, Metadata::new());
        queue.replay_all().await.expect("replayed");
        queue.purge().await.expect("purged");
        queue.prune(std::time::Duration::ZERO).await.expect("pruned");
        works(&queue, &mut sql).await;
        let arrays = db.queue::<Vec<i32>>("arrays").await.expect("opened");
        let metadata = Metadata::new().with("a", "b");
        arrays.enqueue_with(vec![3], &metadata, std::time::Duration::ZERO).await.expect("enqueued");
        let got = arrays.at_most_once(9).await.expect("taken");
        assert_eq!(got.iter().map(|message| message.payload.len()).collect::<Vec<_>>(), [2, 0, 1]);
        assert_eq!(got[2].metadata, metadata);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_migrated_schema_is_the_one_that_a_new_database_gets() {
    let new = connect(&database().await).await;
    new.batch_execute("select trunkline.create_queue('emails', 'jsonb')").await.expect("created");
    for version in 1..SCHEMA_VERSION {
        let url = of_version(version, &format!("older_schema_{version}")).await;
        let sql = connect(&url).await;
        sql.batch_execute("select trunkline.create_queue('emails', 'jsonb')").await.expect("created");
        Db::connect(&url).await.expect("connected").migrate().await.expect("migrated");
        assert_eq!(schema(&sql).await, schema(&new).await, "from version {version}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_column_of_the_users_with_a_name_that_is_needed_now_is_a_clear_error() {
    let url = of_version(4, "older_named").await;
    let sql = connect(&url).await;
    sql.batch_execute("select trunkline.create_queue('q'); alter table trunkline.queue_q add metadata text")
        .await
        .expect("altered");
    let db = Db::connect(&url).await.expect("connected");
    let error = db.migrate().await.expect_err("refused").to_string();
    assert!(error.contains("trunkline.queue_q") && error.contains("Rename your column"), "{error}");
    assert_eq!(db.schema_version().await.expect("asked"), 4, "and nothing was done");
    sql.batch_execute("alter table trunkline.queue_q rename metadata to meta").await.expect("renamed");
    db.migrate().await.expect("migrated");
    db.create_queue("p", &Settings::new("text")).await.expect("created");
}
