//! A right to one queue affects only that queue: its locks, rows and values block no other queue.

use tokio_postgres::error::SqlState;
use trunkline::{Db, Limits, Settings};

use super::refused;
use crate::fixture::{Place, connect, place};

/// Creates two queues of the same kind, and a role with rights to the first queue.
async fn two(kind: &str, role: &str) -> (Place<i64>, tokio_postgres::Client, String) {
    let here = place::<i64>(Settings::new("int8")).await;
    here.db.create_queue("other", &Settings::new("int8")).await.expect("created");
    here.db.create_queue("once", &Settings::new("int8").uniqueness(true)).await.expect("created");
    here.db.create_queue("keys", &Settings::new("int8").partitions(4)).await.expect("created");
    for name in ["q", "other"] {
        here.db.limit_queue(name, &Limits::none().per_second(1000.0)).await.expect("limited");
    }
    let grant = format!(
        "do $$ begin create role {role} login; exception when duplicate_object or unique_violation then null; end $$;
         select trunkline.grant_rights('{role}', '{kind}', name) from unnest(array['q', 'once', 'keys']) name"
    );
    here.sql.batch_execute(&grant).await.expect("granted");
    let url = format!("{} user={role}", here.url);
    let sql = connect(&url).await;
    (here, sql, url)
}

#[tokio::test(flavor = "multi_thread")]
async fn no_role_locks_a_table_that_queues_share() {
    for (kind, role) in [("producer", "apart_producer"), ("consumer", "apart_consumer"), ("operator", "apart_operator")]
    {
        let (here, sql, _) = two(kind, role).await;
        let shared = "select format('trunkline.%I', c.relname), has_table_privilege($1, c.oid, 'update') or has_table_privilege($1, c.oid, 'delete')
                          or has_table_privilege($1, c.oid, 'truncate')
                      from pg_class c where c.relnamespace = 'trunkline'::regnamespace and c.relkind = 'r' and c.relname !~ '_' order by 1";
        let rows = here.sql.query(shared, &[&role]).await.expect("read");
        assert!(rows.len() >= 9, "{}", rows.len());
        for row in rows {
            let (table, may): (String, bool) = (row.get(0), row.get(1));
            assert!(!may, "{role} may lock {table}");
            for mode in ["access exclusive", "share row exclusive", "share"] {
                let error = sql
                    .batch_execute(&format!("begin; lock table {table} in {mode} mode nowait"))
                    .await
                    .expect_err(&table);
                assert_eq!(error.code(), Some(&SqlState::INSUFFICIENT_PRIVILEGE), "{table}: {error:?}");
                sql.batch_execute("rollback").await.expect("rolled back");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn consumer_sees_and_changes_shared_rows_of_its_queues_alone() {
    let (here, sql, _) = two("consumer", "apart_consumer").await;
    here.sql
        .batch_execute(
            "insert into trunkline.waiting values ('theirs', 'other', 1);
             insert into trunkline.relay (name, queue, broker, inward, seen_at) values ('theirs', 'other', 'b', true, '-infinity');
             insert into trunkline.worker (worker, queue, process, version, started_at, ended, seconds, handled, failed, running, hands)
             values (gen_random_uuid(), 'other', 1, '1', now(), false, 1, 1, 1, 1, 1)",
        )
        .await
        .expect("inserted");
    for table in ["floor", "bucket", "waiting", "worker", "relay"] {
        let seen = format!("select count(*) from trunkline.{table} where queue = 'other'");
        assert_eq!(sql.query_one(&seen, &[]).await.expect("read").get::<_, i64>(0), 0, "{table}");
    }
    for change in [
        "update trunkline.floor set reached = now()",
        "update trunkline.bucket set tokens = 1, filled_at = now()",
        "update trunkline.relay set position = 'x'",
        "select trunkline.keep_floor('other', now())",
        "select trunkline.forget_workers(), trunkline.forget_relays()",
    ] {
        sql.batch_execute(change).await.unwrap_or_else(|error| panic!("{change}: {error:?}"));
    }
    refused(
        &sql,
        &[
            "insert into trunkline.waiting values ('mine', 'other', 1)",
            "insert into trunkline.relay (name, queue, broker, inward) values ('mine', 'other', 'b', true)",
            "insert into trunkline.worker (worker, queue, process, version, started_at, ended, seconds, handled, failed, running, hands)
             values (gen_random_uuid(), 'other', 1, '1', now(), false, 1, 1, 1, 1, 1)",
            "delete from trunkline.worker",
            "delete from trunkline.relay",
            "delete from trunkline.waiting",
            "select trunkline.rebuild('q')",
        ],
    )
    .await;
    let left = "select (select position is null from trunkline.relay where name = 'theirs') and (select reached = '-infinity' from trunkline.floor where queue = 'other')
                   and (select tokens > 100 from trunkline.bucket where queue = 'other') and exists (select from trunkline.waiting where consumer = 'theirs')";
    assert!(
        here.sql.query_one(left, &[]).await.expect("read").get::<_, bool>(0),
        "nothing of the other queue has changed"
    );
    // Impossible values are refused, even in the role's own queue.
    for wild in ["tokens = -1e18", "tokens = 'nan'", "tokens = 1e18", "filled_at = 'infinity'"] {
        let error = sql.batch_execute(&format!("update trunkline.bucket set {wild}")).await.expect_err(wild);
        assert_eq!(error.code(), Some(&SqlState::CHECK_VIOLATION), "{wild}: {error:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn operator_writes_entries_of_its_queues_without_id_or_time() {
    let (here, sql, _) = two("operator", "apart_operator").await;
    sql.batch_execute(
        "insert into trunkline.audit (who, action, queue, what, affected) values ('me', 'purge', 'q', 'x', 1)",
    )
    .await
    .expect("its own");
    refused(
        &sql,
        &[
            "insert into trunkline.audit (id, who, action, what, affected) overriding system value values (2, 'me', 'purge', 'x', 1)",
            "insert into trunkline.audit (role, who, action, what, affected) values ('postgres', 'me', 'purge', 'x', 1)",
            "insert into trunkline.audit (who, action, queue, what, affected) values ('me', 'purge', 'other', 'x', 1)",
            "insert into trunkline.audit (who, action, what, affected) values ('me', 'pause-schedule', 'x', 1)",
            "insert into trunkline.worker (at, worker, queue, process, version, started_at, ended, seconds, handled, failed, running, hands)
             values ('infinity', gen_random_uuid(), 'q', 1, '1', now(), false, 1, 1, 1, 1, 1)",
        ],
    )
    .await;
    let role = "select role from trunkline.audit";
    assert_eq!(here.sql.query_one(role, &[]).await.expect("read").get::<_, &str>(0), "apart_operator");
}

#[tokio::test(flavor = "multi_thread")]
async fn advisory_locks_of_another_role_stop_nothing() {
    let (here, _, url) = two("operator", "apart_operator").await;
    let create = "do $$ begin create role apart_nobody login; exception when duplicate_object or unique_violation then null; end $$";
    here.sql.batch_execute(create).await.expect("created");
    let outsider = connect(&format!("{} user=apart_nobody", here.url)).await;
    outsider
        .batch_execute(
            "select pg_advisory_lock(hashtextextended(name, 0)) from unnest(array['trunkline.migrate', 'trunkline.queue q', 'trunkline.bucket q']) name;
             select pg_advisory_lock(hashtext('trunkline.lane keys'), lane) from generate_series(-1, 8) lane",
        )
        .await
        .expect("every role may");
    let in_time = async {
        here.sql
            .batch_execute(
                "set statement_timeout = '20s'; select trunkline.create_queue('new'), trunkline.alter_queue('q', 3)",
            )
            .await
            .expect("not kept");
        here.db.migrate().await.expect("not kept");
        here.queue.enqueue(1).await.expect("enqueued");
        let theirs = Db::connect(&url).await.expect("connected");
        assert_eq!(
            theirs.queue::<i64>("q").await.expect("opened").take(1).await.expect("taken").len(),
            1,
            "within its limits"
        );
        here.sql.batch_execute("select trunkline.enqueue('keys', 1::int8, key => 'k')").await.expect("enqueued");
        let leased = here.sql.query("select * from trunkline.lease_partition('keys')", &[]).await.expect("leased");
        assert_eq!(leased.len(), 1);
    };
    in_time.await;
}

#[tokio::test(flavor = "multi_thread")]
async fn producer_cannot_remove_unique_keys_or_keep_stale_ones() {
    let (here, sql, _) = two("producer", "apart_producer").await;
    refused(&sql, &["delete from trunkline.unique_once", "begin; lock table trunkline.unique_once in share mode"])
        .await;
    sql.batch_execute("rollback").await.expect("rolled back");
    let enqueue = "select outcome from trunkline.enqueue_unique('once', 1::int8, 'k')";
    assert_eq!(sql.query_one(enqueue, &[]).await.expect("enqueued").get::<_, &str>(0), "new");
    sql.batch_execute("update trunkline.unique_once set id = 77777").await.expect("its own queue's");
    assert_eq!(sql.query_one(enqueue, &[]).await.expect("enqueued").get::<_, &str>(0), "new", "no message has it");
    assert_eq!(sql.query_one(enqueue, &[]).await.expect("enqueued").get::<_, &str>(0), "duplicate");
    drop(here);
}

/// Rights that an older version granted are replaced by the current ones during a migration, so a
/// role keeps its work and loses the rest.
#[tokio::test(flavor = "multi_thread")]
async fn migration_revokes_rights_of_an_older_schema() {
    let (here, sql, url) = two("consumer", "apart_consumer").await;
    here.sql
        .batch_execute(
            "drop policy reads on trunkline.audit; drop policy acts on trunkline.audit; alter table trunkline.audit disable row level security;
             do $$ declare name text; begin
                 foreach name in array array['floor', 'bucket', 'worker', 'waiting', 'relay'] loop
                     execute format('alter table trunkline.%I disable row level security', name);
                     execute format('drop policy if exists reads on trunkline.%I', name);
                     execute format('drop policy if exists consumes on trunkline.%I', name);
                     execute format('drop policy if exists relays on trunkline.%I', name);
                     execute format('grant select, insert, update, delete on trunkline.%I to apart_consumer', name);
                 end loop;
                 for name in select q.name from trunkline.queue q loop
                     execute format('drop trigger keep_letter on trunkline.%I', 'dead_' || name);
                     execute format('drop trigger keep_letter on trunkline.%I', 'archive_' || name);
                     execute format('drop table if exists trunkline.%I', 'limit_' || name);
                 end loop;
             end $$;
             drop function trunkline.drop_queue;
             alter table trunkline.worker drop constraint worker_process, drop constraint worker_version, drop constraint worker_started_at,
                 drop constraint worker_numbers, drop constraint worker_calls;
             alter table trunkline.floor drop constraint floor_times; alter table trunkline.schedule drop constraint schedule_times;
             alter table trunkline.unique_once drop constraint kept;
             drop function trunkline.keep_letter; delete from trunkline.lane_keys where lane < 0;
             alter table trunkline.bucket drop constraint bucket_tokens, drop constraint bucket_filled_at;
             alter table trunkline.relay drop constraint pk_relay, add constraint pk_relay primary key (name);
             grant update, delete on trunkline.unique_once to apart_consumer;
             delete from trunkline.version where version >= 20",
        )
        .await
        .expect("as it was");
    sql.batch_execute("begin; lock table trunkline.floor in share mode; rollback").await.expect("it could");
    here.db.migrate().await.expect("migrated");
    refused(&sql, &["begin; lock table trunkline.floor in share mode"]).await;
    sql.batch_execute("rollback").await.expect("rolled back");
    here.queue.enqueue(1).await.expect("enqueued");
    let theirs = Db::connect(&url).await.expect("connected");
    assert_eq!(theirs.queue::<i64>("q").await.expect("opened").take(1).await.expect("taken").len(), 1);
    here.sql.batch_execute("select trunkline.enqueue('keys', 1::int8, key => 'k')").await.expect("enqueued");
    assert_eq!(sql.query("select * from trunkline.lease_partition('keys')", &[]).await.expect("leased").len(), 1);
}
