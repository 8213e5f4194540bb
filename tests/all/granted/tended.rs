//! A role without the owner's rights leaves the end of a migration to the owner.

use trunkline::{Db, Settings};

use crate::fixture::{connect, database};

#[tokio::test(flavor = "multi_thread")]
async fn migration_tends_the_queues_that_an_earlier_one_could_not() {
    let url = database().await;
    let (db, sql, holder) = (Db::connect(&url).await.expect("connected"), connect(&url).await, connect(&url).await);
    db.create_queue("q", &Settings::new("jsonb")).await.expect("created");
    sql.batch_execute(
        "alter table trunkline.queue_q reset (autovacuum_vacuum_cost_delay); update trunkline.version set functions = '';
         do $$ begin create role tends_nothing login; exception when duplicate_object then null; end $$;
         select trunkline.grant_rights('tends_nothing', 'consumer', 'q')",
    )
    .await
    .expect("older");
    holder.batch_execute("begin; lock table trunkline.queue_q in share mode").await.expect("in use");
    let is_tended = async || {
        let set = "select coalesce('autovacuum_vacuum_cost_delay=0' = any (reloptions), false) from pg_class where oid = 'trunkline.queue_q'::regclass";
        sql.query_one(set, &[]).await.expect("read").get::<_, bool>(0)
    };
    db.migrate().await.expect("migrated");
    assert!(!is_tended().await, "the table was in use");
    holder.batch_execute("commit").await.expect("let go");
    let reader = Db::connect(&format!("{url} user=tends_nothing")).await.expect("connected");
    assert_eq!(reader.migrate().await.expect("it leaves that to the owner"), 0);
    assert!(!is_tended().await);
    assert_eq!(db.migrate().await.expect("tended"), 0);
    assert!(is_tended().await);
    let finished = "select functions ~ '^[0-9a-f]{16}$' from trunkline.version order by version desc limit 1";
    assert!(sql.query_one(finished, &[]).await.expect("read").get::<_, bool>(0));
}
