//! A migration updates functions of another library version while queues are in use. It refuses a
//! schema that other roles can change.

use tokio_postgres::NoTls;
use trunkline::{Db, SCHEMA_VERSION, Settings};

use super::{all_steps, empty_database, schema, two_attempts, works};
use crate::fixture::{cluster, connect, database};

#[tokio::test(flavor = "multi_thread")]
async fn functions_are_renewed_with_every_queue_and_its_messages() {
    let url = database().await;
    let (db, mut sql) = (Db::connect(&url).await.expect("connected"), connect(&url).await);
    db.create_queue("q", &two_attempts()).await.expect("created");
    db.create_queue("emails", &Settings::new("jsonb")).await.expect("created");
    let queue = db.queue::<String>("q").await.expect("opened");
    let id = queue.enqueue("kept".to_owned()).await.expect("enqueued").id();
    let wanted = schema(&sql).await;
    // These functions are from another library version. One function differs, one is missing, and
    // one template does not exist yet.
    sql.batch_execute(
        "create or replace function trunkline.check_n(n int) returns int language plpgsql as 'begin return 0; end';
         create or replace function trunkline.do_stray_q(floor timestamptz, low tid, high tid)
             returns timestamptz language plpgsql as 'begin end';
         drop function trunkline.do_ack_q, trunkline.do_keptof_q;
         delete from trunkline.template where name = 'retry';
         update trunkline.version set functions = 'others'",
    )
    .await
    .expect("changed");
    assert_ne!(schema(&sql).await, wanted);
    assert_eq!(db.migrate().await.expect("migrated"), 0, "no step was missing");
    assert_eq!(schema(&sql).await, wanted);
    assert_eq!(db.migrate().await.expect("nothing to do"), 0);
    assert_eq!(queue.take(1).await.expect("taken")[0].id, id);
    works(&queue, &mut sql).await;
}

/// Replaces the templates by those of before version 22, when each queue had the functions of all
/// kinds, and templates had other columns. The migration removes the functions of other kinds.
#[tokio::test(flavor = "multi_thread")]
async fn functions_of_other_kinds_go_with_the_upgrade() {
    let url = database().await;
    let (db, mut sql) = (Db::connect(&url).await.expect("connected"), connect(&url).await);
    db.create_queue("q", &two_attempts()).await.expect("created");
    db.create_queue("lanes_q", &Settings::new("text").priorities(3)).await.expect("created");
    let queue = db.queue::<String>("q").await.expect("opened");
    let id = queue.enqueue("kept".to_owned()).await.expect("enqueued").id();
    let wanted = schema(&sql).await;
    sql.batch_execute(
        "drop table trunkline.template;
         create table trunkline.template (name text constraint pk_template primary key, kind text not null, text text not null);
         drop function trunkline.fill(text, text, text);
         create function trunkline.fill(template text, queue text) returns text language plpgsql as 'begin return 0; end';
         create function trunkline.do_along_q(n int, lane int) returns void language plpgsql as 'begin end';
         create function trunkline.do_turn_q(dues timestamptz[], ids bigint[]) returns void language plpgsql as 'begin end';
         create function trunkline.do_lanes_lanes_q(n int) returns void language plpgsql as 'begin end';
         create function trunkline.do_allowed_lanes_q(n int, locks bool) returns int language plpgsql as 'begin return 0; end';
         create function trunkline.do_dead_q(after bigint, n bigint) returns setof trunkline.dead_q language plpgsql as 'begin end';
         drop function trunkline.do_keptof_q, trunkline.do_wrong_lanes_q;
         delete from trunkline.version where version >= 23",
    )
    .await
    .expect("aged");
    assert!(db.migrate().await.expect("migrated") > 0);
    assert_eq!(schema(&sql).await, wanted);
    assert_eq!(queue.take(1).await.expect("taken")[0].id, id);
    works(&queue, &mut sql).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn vacuum_stops_pausing_with_the_upgrade_unless_an_operator_set_it() {
    let url = database().await;
    let (db, sql) = (Db::connect(&url).await.expect("connected"), connect(&url).await);
    for queue in ["q", "slow"] {
        db.create_queue(queue, &two_attempts().uniqueness(true)).await.expect("created");
    }
    let settings = async |table: &str| {
        let query = "select (select option_value from pg_options_to_table(c.reloptions) where option_name = $2), \
             (select option_value from pg_options_to_table(t.reloptions) where option_name = $2) \
             from pg_class c left join pg_class t on t.oid = c.reltoastrelid where c.oid = to_regclass($1)";
        let row = sql.query_one(query, &[&table, &"autovacuum_vacuum_cost_delay"]).await.expect("a table");
        [0, 1].map(|column| row.get::<_, Option<String>>(column))
    };
    let never = Some("0".to_owned());
    let queue = [never.clone(), never.clone()];
    assert_eq!(settings("trunkline.queue_q").await, queue);
    let before = "alter table trunkline.queue_q reset (autovacuum_vacuum_cost_delay, toast.autovacuum_vacuum_cost_delay); \
         alter table trunkline.unique_q reset (autovacuum_vacuum_cost_delay); \
         alter table trunkline.queue_slow set (autovacuum_vacuum_cost_delay = 7); \
         delete from trunkline.version where version >= 26";
    sql.batch_execute(before).await.expect("the schema before");
    assert!(db.migrate().await.expect("migrated") > 0);
    assert_eq!(settings("trunkline.queue_q").await, queue);
    assert_eq!(settings("trunkline.unique_q").await, [never.clone(), None]);
    assert_eq!(settings("trunkline.queue_slow").await, [Some("7".to_owned()), never]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schema_that_others_can_change_is_refused() {
    let url = empty_database("squatted").await;
    let sql = connect(&url).await;
    sql.batch_execute("create role squatter login; create schema trunkline authorization squatter")
        .await
        .expect("made");
    let db = Db::connect(&url).await.expect("connected");
    let error = db.migrate().await.expect_err("refused");
    assert!(error.to_string().contains("belongs to squatter"), "{error}");
    assert_eq!(db.schema_version().await.expect("asked"), 0, "and nothing was done");

    // A schema that was taken over from another role is refused as long as it contains a function
    // of that role.
    sql.batch_execute(
        "set role squatter; create function trunkline.check_queue(queue text) returns void language sql as ''; reset role;
         alter schema trunkline owner to current_user",
    )
    .await
    .expect("left");
    assert!(db.migrate().await.expect_err("refused").to_string().contains("belongs to squatter"));
    sql.batch_execute("drop function trunkline.check_queue").await.expect("dropped");
    assert_eq!(db.migrate().await.expect("migrated"), all_steps());
    assert_eq!(db.schema_version().await.expect("asked"), SCHEMA_VERSION);
}

#[tokio::test(flavor = "multi_thread")]
async fn schema_from_before_the_first_release_is_refused_and_left_alone() {
    let url = database().await;
    let (db, sql) = (Db::connect(&url).await.expect("connected"), connect(&url).await);
    sql.batch_execute("delete from trunkline.version; insert into trunkline.version values (14, 'old', now(), '', 14)")
        .await
        .expect("aged");
    let before = schema(&sql).await;
    let error = db.migrate().await.expect_err("refused").to_string();
    assert!(error.contains("version 14") && error.contains("before 0.1.0") && error.contains("new schema"), "{error}");
    assert_eq!((db.schema_version().await.expect("asked"), schema(&sql).await), (14, before));
}

#[tokio::test(flavor = "multi_thread")]
async fn databases_of_other_encodings_work_or_are_refused() {
    let admin = connect(&cluster().url("postgres")).await;
    for (name, encoding) in
        [("latin", "LATIN1"), ("japanese", "EUC_JP"), ("windows", "WIN1252"), ("bytes", "SQL_ASCII")]
    {
        let create =
            format!("create database enc_{name} encoding '{encoding}' lc_collate 'C' lc_ctype 'C' template template0");
        admin.batch_execute(&create).await.expect("created");
        let db =
            Db::connect(&crate::fixture::settled(&cluster().url(&format!("enc_{name}")))).await.expect("connected");
        if encoding == "SQL_ASCII" {
            let error = db.migrate().await.expect_err("refused").to_string();
            assert!(error.contains("SQL_ASCII") && error.contains("UTF8"), "{error}");
            continue;
        }
        db.migrate().await.expect("migrated");
        db.create_queue("q", &two_attempts()).await.expect("created");
        let mut sql = connect(&cluster().url(&format!("enc_{name}"))).await;
        works(&db.queue("q").await.expect("opened"), &mut sql).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_function_says_where_names_are_looked_up() {
    let url = database().await;
    let (db, sql) = (Db::connect(&url).await.expect("connected"), connect(&url).await);
    db.create_queue("q", &Settings::new("int8[]")).await.expect("created");
    let unsafe_ones = "select p.oid::regprocedure::text from pg_proc p
        where p.pronamespace = 'trunkline'::regnamespace and p.prosqlbody is null
          -- They qualify every name instead; the next test lays traps for them.
          and p.proname not in ('refuse_row', 'enqueue', 'floor')
          -- It finds a type through the caller's path.
          and p.oid <> 'trunkline.create_queue(text, text, int, interval, int, int, interval, bool, int, int)'::regprocedure
          and 'search_path=pg_catalog, pg_temp' <> all (coalesce(p.proconfig, '{}'))";
    let found: Vec<String> = sql.query(unsafe_ones, &[]).await.expect("read").iter().map(|row| row.get(0)).collect();
    assert!(found.is_empty(), "{found:?}");
    // These functions delete stale rows, return an id to its pool, or copy a table that the caller
    // may delete from. A role that may call them can do nothing else with them.
    let definer = "select array_agg(proname::text order by proname) from pg_proc where pronamespace = 'trunkline'::regnamespace and prosecdef";
    let definers: Vec<String> = sql.query_one(definer, &[]).await.expect("read").get(0);
    assert_eq!(definers, ["forget_relays", "forget_workers", "keep_letter", "rewrite", "wait_no_more"]);
}

/// An enqueue and the check of its row run with the search path of the session.
#[tokio::test(flavor = "multi_thread")]
async fn enqueue_and_its_check_find_no_name_of_others() {
    let url = database().await;
    let (db, sql) = (Db::connect(&url).await.expect("connected"), connect(&url).await);
    db.create_queue("q", &Settings::new("int8")).await.expect("created");
    sql.batch_execute(
        "create schema trap; create function trap.yes(int, int) returns bool language plpgsql as $$ begin raise exception 'trapped'; end $$;
         create function trap.yes(text, text) returns bool language plpgsql as $$ begin raise exception 'trapped'; end $$;
         create operator trap.= (leftarg = int, rightarg = int, function = trap.yes);
         create operator trap.>= (leftarg = int, rightarg = int, function = trap.yes);
         create operator trap.<= (leftarg = int, rightarg = int, function = trap.yes);
         create operator trap.= (leftarg = text, rightarg = text, function = trap.yes);
         create function trap.yes(interval, interval) returns bool language plpgsql as $$ begin raise exception 'trapped'; end $$;
         create operator trap.= (leftarg = interval, rightarg = interval, function = trap.yes);
         create function trap.join(text, text) returns text language plpgsql as $$ begin raise exception 'trapped'; end $$;
         create operator trap.|| (leftarg = text, rightarg = text, function = trap.join);
         create operator trap.<> (leftarg = text, rightarg = text, function = trap.yes);
         create function trap.yes(float8, int) returns bool language plpgsql as $$ begin raise exception 'trapped'; end $$;
         create operator trap.>= (leftarg = float8, rightarg = int, function = trap.yes);
         create operator trap.< (leftarg = float8, rightarg = int, function = trap.yes);
         create function trap.current_setting(text, bool) returns text language plpgsql as $$ begin raise exception 'trapped'; end $$;
         create function trap.to_regclass(text) returns regclass language plpgsql as $$ begin raise exception 'trapped'; end $$;
         create type trap.int8 as enum ('trap'); create type trap.interval as enum ('trap');
         create function trap.format(text, text) returns text language sql as $$ select 'select null::bigint'::text $$;
         create function trap.to_regproc(text) returns regproc language sql as $$ select null::regproc $$;
         create function trap.pg_column_size(bigint) returns int language sql as $$ select null::int $$;
         create function trap.pg_column_size(text) returns int language sql as $$ select null::int $$;
         create function trap.pg_notify(text, text) returns void language plpgsql as $$ begin raise exception 'trapped'; end $$;
         create function trap.array_dims(int8[]) returns text language sql as $$ select '[1:1]'::text $$;
         create function trap.array_ndims(int8[]) returns int language sql as $$ select 1 $$;
         create function trap.array_lower(int8[], int) returns int language sql as $$ select 1 $$;
         create function trap.cardinality(int8[]) returns int language sql as $$ select 2 $$;
         create function trap.num_nulls(variadic int8[]) returns int language sql as $$ select 0 $$;
         set search_path = trap, pg_catalog",
    )
    .await
    .expect("laid");
    let bare = sql.batch_execute("select 1 = 1").await.expect_err("the trap works");
    assert!(bare.as_db_error().is_some_and(|error| error.message() == "trapped"), "{bare}");
    for good in ["(1, array[7])", "(2, array[7, 8])"] {
        sql.batch_execute(&format!("insert into trunkline.queue_q (size, payload) values {good}"))
            .await
            .expect("let in");
    }
    // Enqueues twice. The second enqueue also notifies, because the session then listens.
    for _ in 0..2 {
        sql.batch_execute("select trunkline.enqueue('q', 7::pg_catalog.int8), trunkline.enqueue('q', '7'::text)")
            .await
            .expect("enqueued");
        sql.batch_execute("select trunkline.listen('q')").await.expect("listens");
    }
    // Calls the function twice: the first call of a session probes the queue, and the second
    // compares numbers and times.
    for _ in 0..2 {
        sql.batch_execute("select trunkline.floor('q')").await.expect("a floor");
    }
    for bad in [
        "(1, array[null::pg_catalog.int8])",
        "(1, array[7, 8])",
        "(2, array[7])",
        "(1, array[[7]])",
        "(1, '[0:0]={7}')",
        "(0, '{}')",
    ] {
        let why = sql.batch_execute(&format!("insert into trunkline.queue_q (size, payload) values {bad}")).await;
        assert_eq!(why.expect_err(bad).code(), Some(&tokio_postgres::error::SqlState::CHECK_VIOLATION), "{bad}");
    }
}

/// A role that may create objects in `public` creates functions and operators there. They match
/// better than the system's own.
#[tokio::test(flavor = "multi_thread")]
async fn foreign_function_never_runs_with_the_rights_of_a_caller() {
    let url = database().await;
    let (db, sql) = (Db::connect(&url).await.expect("connected"), connect(&url).await);
    db.create_queue("q", &Settings::new("text")).await.expect("created");
    sql.batch_execute(
        "create role mallory; grant create on schema public to mallory; set role mallory;
         create function public.trap(text) returns text language plpgsql as $$ begin raise exception 'trapped by %', $1; end $$;
         create function public.format(text, text) returns text language sql as $$ select public.trap('format') $$;
         create function public.cat(bigint[], bigint[]) returns bigint[] language sql as $$ select public.trap('bigint')::bigint[] $$;
         create function public.cat(int[], int[]) returns int[] language sql as $$ select public.trap('int')::int[] $$;
         create operator public.|| (leftarg = bigint[], rightarg = bigint[], function = public.cat);
         create operator public.|| (leftarg = int[], rightarg = int[], function = public.cat);
         create function public.quote_literal(text) returns text language sql as $$ select public.trap('quote') $$;
         reset role; set search_path = public, pg_catalog",
    )
    .await
    .expect("laid");
    for call in [
        "select trunkline.enqueue('q', 'a'::text)",
        "select * from trunkline.enqueue_many('q', array['b', 'c', 'd'])",
        "select trunkline.ack(q.queue, q.id, q.attempt) from (select 'q' as queue, * from trunkline.lease('q', 2)) q",
        "select trunkline.retry('q', id, attempt, error => 'no') from trunkline.lease('q', 1)",
        "select * from trunkline.take('q', 9)",
        "select * from trunkline.stats('q')",
        "select * from trunkline.messages('q')",
        "select trunkline.create_queue('other', 'text')",
        "select trunkline.alter_queue('other', max_attempts => 3)",
        "select trunkline.drop_queue('other')",
        "select trunkline.purge('q'), trunkline.replay_all('q'), trunkline.discard_all('q'), trunkline.prune('q', '0')",
    ] {
        sql.query(call, &[]).await.unwrap_or_else(|error| panic!("{call}: {error:?}"));
    }
    // The library and its migration also work if this search path is the default of the database.
    let name: String = sql.query_one("select current_database()::text", &[]).await.expect("asked").get(0);
    sql.batch_execute(&format!(
        "alter database {name} set search_path = public, pg_catalog; update trunkline.version set functions = ''"
    ))
    .await
    .expect("set");
    let db = Db::connect(&url).await.expect("connected");
    db.migrate().await.expect("migrated");
    let (mut sql, connection) = tokio_postgres::connect(&url, NoTls).await.expect("connected");
    tokio::spawn(connection);
    sql.batch_execute("select trunkline.alter_queue('q', max_attempts => 2, max_batch => 32)").await.expect("altered");
    works(&db.queue("q").await.expect("opened"), &mut sql).await;
}
