//! Tests the schema: its creation, its contents, and the changes that users may make to it.

mod in_use;
mod many;
mod older;
mod racing;

use std::{fmt::Write, future::poll_fn, path::Path, time::Duration};

use futures_util::future::{join_all, try_join_all};
use tokio_postgres::{AsyncMessage, Client, NoTls};
use trunkline::{Db, Queue, SCHEMA_VERSION, Settings};

use crate::fixture::{Ids, Place, connect, database, empty_database, place, run_out, superuser};
use crate::house::files;

/// Runs every verb once.
async fn works(queue: &Queue<String>, sql: &mut Client) {
    let payloads: Vec<String> = (0..40).map(|nr| format!("message {nr}")).collect();
    let ids = queue.enqueue_many(&payloads).await.expect("enqueued").ids();
    queue.enqueue("one".to_owned()).await.expect("enqueued");
    let transaction = sql.transaction().await.expect("begun");
    queue.enqueue_in(&transaction, "in".to_owned()).await.expect("enqueued");
    assert_eq!(queue.take_in(&transaction, 3).await.expect("taken").len(), 3);
    transaction.commit().await.expect("committed");
    assert_eq!(queue.take(3).await.expect("taken").len(), 3);
    let leased = queue.lease(20).await.expect("leased");
    assert_eq!(leased.iter().map(|message| message.id).collect::<Vec<_>>(), ids[6..26]);
    queue.ack(&leased[..5]).await.expect("held");
    queue.retry(&leased[5..6], Duration::ZERO, "again").await.expect("held");
    queue.extend(&leased[6..7], Duration::from_secs(60)).await.expect("held");
    queue.archive(&leased[7..8]).await.expect("held");
    queue.bury(&leased[9..10], "never").await.expect("held");
    let transaction = sql.transaction().await.expect("begun");
    queue.ack_in(&transaction, &leased[8..9]).await.expect("held");
    transaction.commit().await.expect("committed");
    for _ in 0..2 {
        run_out(sql).await;
        // Two attempts are allowed. Each message comes alone, because its lease expired.
        while !queue.lease(100).await.expect("leased").is_empty() {}
    }
    run_out(sql).await;
    assert_eq!(queue.lease(100).await.expect("leased").len(), 0);
    let stats = queue.stats().await.expect("counted");
    assert_eq!((stats.dead, stats.archived, stats.messages), (42 - 6 - 7, 1, 0));
    assert_eq!(queue.dead_letters(0, 5).await.expect("read").len(), 5);
    assert_eq!(queue.archived(0, 5).await.expect("read").len(), 1);
    assert_eq!(queue.replay_all().await.expect("replayed"), 29);
    assert_eq!(queue.peek(99).await.expect("peeked").len(), 29);
    let leased = queue.lease(2).await.expect("leased");
    for error in ["first", "last"] {
        queue.retry(&leased, Duration::ZERO, error).await.ok();
    }
    assert_eq!(queue.purge().await.expect("purged"), 29);
}

fn two_attempts() -> Settings {
    Settings::new("text").max_attempts(2).max_batch(32)
}

/// Returns the number of steps that an empty database needs.
fn all_steps() -> usize {
    files("sql/steps", "sql").len()
}

#[tokio::test(flavor = "multi_thread")]
async fn eight_processes_migrate_an_empty_database_at_once() {
    let url = empty_database("eight_at_once").await;
    let dbs = try_join_all((0..8).map(|_| Db::connect(&url))).await.expect("connected");
    let steps = join_all(dbs.iter().map(|db| {
        let db = db.clone();
        async move { tokio::spawn(async move { db.migrate().await }).await.expect("no panic").expect("migrated") }
    }))
    .await;
    assert_eq!(steps.iter().sum::<usize>(), all_steps(), "one of them did it all: {steps:?}");
    assert!(steps.contains(&all_steps()), "in one transaction: {steps:?}");
    assert_eq!(dbs[0].migrate().await.expect("nothing to do"), 0);
    assert_eq!(dbs[1].schema_version().await.expect("asked"), SCHEMA_VERSION);
    dbs[2].create_queue("q", &two_attempts()).await.expect("created");
    works(&dbs[3].queue("q").await.expect("opened"), &mut connect(&url).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schema_of_another_version_is_a_clear_error() {
    let absent = Db::connect(&empty_database("absent").await).await.expect("connected");
    let url = database().await;
    let (db, sql) = (Db::connect(&url).await.expect("connected"), connect(&url).await);
    db.create_queue("q", &two_attempts()).await.expect("created");
    let refuses = async |db: &Db, words: &[&str]| {
        for outcome in [
            db.create_queue("other", &two_attempts()).await,
            db.queue::<String>("q").await.map(drop),
            db.list_queues().await.map(drop),
            db.describe_queue("q").await.map(drop),
        ] {
            let text = outcome.expect_err("refused").to_string();
            assert!(words.iter().all(|word| text.contains(word)), "{text} says {words:?}");
        }
    };
    refuses(&absent, &["there is no schema `trunkline`", "trunkline migrate"]).await;
    assert_eq!(absent.schema_version().await.expect("asked"), 0);
    of_the_future(&sql, SCHEMA_VERSION + 1).await;
    refuses(&db, &["999", &SCHEMA_VERSION.to_string(), "newer trunkline"]).await;
    let error = db.migrate().await.expect_err("refused").to_string();
    assert!(error.contains("newer trunkline"), "{error}");
    sql.execute("delete from trunkline.version where version >= $1", &[&SCHEMA_VERSION]).await.expect("of the past");
    refuses(&db, &[&(SCHEMA_VERSION - 1).to_string(), "trunkline migrate"]).await;
}

/// Records a migration step of a later release, which supports programs from version `oldest`.
async fn of_the_future(sql: &Client, oldest: i32) {
    sql.execute(
        "insert into trunkline.version (version, name, functions, oldest) values (999, 'of the future', 'others', $1)",
        &[&oldest],
    )
    .await
    .expect("recorded");
}

#[tokio::test(flavor = "multi_thread")]
async fn newer_compatible_schema_is_used_and_left_alone() {
    let url = database().await;
    let (db, mut sql) = (Db::connect(&url).await.expect("connected"), connect(&url).await);
    db.create_queue("q", &two_attempts()).await.expect("created");
    // The functions differ, as in a later release. A migration must not replace them with this
    // library's functions.
    sql.batch_execute("create or replace function trunkline.check_n(n int) returns int language sql as 'select n'")
        .await
        .expect("changed");
    of_the_future(&sql, SCHEMA_VERSION).await;
    let before = schema(&sql).await;
    let db = Db::connect(&url).await.expect("connected again");
    assert_eq!(db.schema_version().await.expect("asked"), 999);
    assert_eq!(db.migrate().await.expect("left alone"), 0);
    assert_eq!(schema(&sql).await, before);
    db.create_queue("other", &two_attempts()).await.expect("created");
    works(&db.queue("q").await.expect("opened"), &mut sql).await;
}

/// Returns the schema as text that is the same on every version of PostgreSQL.
async fn schema(sql: &Client) -> String {
    described(sql, "true").await
}

/// Returns the schema as text, with the bodies of only those functions for which `has_body` is
/// true.
async fn described(sql: &Client, has_body: &str) -> String {
    let mut text = String::new();
    let columns = "select string_agg(format(E'\\n    %I %s%s%s', a.attname, format_type(a.atttypid, a.atttypmod),
            case when a.attnotnull then ' not null' end, ' default ' || pg_get_expr(d.adbin, d.adrelid)), ',' order by a.attnum)
        from pg_attribute a left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
        where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped";
    // The search path shortens the names. By default it starts with the role's own name.
    sql.batch_execute("set search_path = trunkline, public").await.expect("set");
    for query in [
        format!(
            "select format(E'%s %I (%s\\n)%s', case c.relkind when 'v' then 'view' else 'table' end, c.relname, ({columns}),
                ' with (' || array_to_string(c.reloptions, ', ') || ')')
             from pg_class c where c.relnamespace = 'trunkline'::regnamespace and c.relkind in ('r', 'v', 'p') order by c.relname"
        ),
        "select format('sequence %I increment %s minvalue %s start %s', sequencename, increment_by, min_value, start_value)
         from pg_sequences where schemaname = 'trunkline' order by sequencename"
            .to_owned(),
        "select format('alter table %s add constraint %I %s', conrelid::regclass, conname, pg_get_constraintdef(oid))
         from pg_constraint where connamespace = 'trunkline'::regnamespace and contype <> 'n' order by conrelid::regclass::text, conname"
            .to_owned(),
        "select indexdef from pg_indexes where schemaname = 'trunkline' order by indexname".to_owned(),
        format!(
            "select format('function %I(%s) returns %s language %s %s%s%s', p.proname, pg_get_function_arguments(p.oid),
                pg_get_function_result(p.oid), l.lanname, case p.provolatile when 'v' then 'volatile' when 's' then 'stable' else 'immutable' end,
                ' set ' || array_to_string(p.proconfig, ' '),
                case when {has_body} then ' as ' || coalesce(nullif(regexp_replace(p.prosrc, '\\A\\n(--[^\\n]*\\n)+', E'\\n'), ''), regexp_replace(pg_get_function_sqlbody(p.oid), '\\s+', ' ', 'g')) end)
             from pg_proc p join pg_language l on l.oid = p.prolang where p.pronamespace = 'trunkline'::regnamespace
             order by p.proname, pg_get_function_arguments(p.oid)"
        ),
    ] {
        for row in sql.query(&query, &[]).await.expect("the catalog is read") {
            writeln!(text, "\n{};", row.get::<_, String>(0)).expect("into memory");
        }
    }
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn the_schema_is_what_the_golden_file_says() {
    let url = database().await;
    let (db, sql) = (Db::connect(&url).await.expect("connected"), connect(&url).await);
    db.create_queue("emails", &Settings::new("jsonb")).await.expect("created");
    db.create_queue("tasks", &Settings::new("text").priorities(4).uniqueness(true)).await.expect("created");
    db.create_queue("orders", &Settings::new("int8[]").partitions(64)).await.expect("created");
    sql.batch_execute("select trunkline.limit_queue('orders', max_leased => 100, per_second => 50)")
        .await
        .expect("limited");
    let found = format!(
        "-- The schema that the files in this folder install, with one queue of each kind: `emails` is plain, `tasks` has priorities and uniqueness, `orders`\n\
         -- has partitions and limits. A test reads it off the catalog, and writes it with TRUNKLINE_BLESS=1. It is not to be run. Bodies are those\n\
         -- of the queues' own functions; the others' are in functions/.\n{}",
        described(&sql, "p.proname ~ '^do_.*_(emails|tasks|orders)$'").await
    );
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("sql/golden.sql");
    if std::env::var_os("TRUNKLINE_BLESS").is_some() {
        std::fs::write(&path, &found).expect("written");
    }
    let golden = std::fs::read_to_string(&path).expect("sql/golden.sql is there");
    let other = found.lines().zip(golden.lines()).find(|(found, golden)| found != golden);
    assert!(found == golden, "the schema is another now (bless it with TRUNKLINE_BLESS=1): {other:?}");
}

/// Checks the descriptions that `\df+` shows and the headers that `\sf` shows in the functions'
/// texts. A queue's functions have only the header, which a description would repeat in each queue.
#[tokio::test(flavor = "multi_thread")]
async fn installed_functions_are_described_by_their_headers() {
    let url = database().await;
    let (db, sql) = (Db::connect(&url).await.expect("connected"), connect(&url).await);
    db.create_queue("a-b_1", &Settings::new("jsonb").uniqueness(true).priorities(2)).await.expect("created");
    let functions = "select p.proname::text, coalesce(obj_description(p.oid, 'pg_proc'), ''), pg_get_functiondef(p.oid)
                     from pg_proc p where p.pronamespace = 'trunkline'::regnamespace";
    let functions = sql.query(functions, &[]).await.expect("the catalog is read");
    let mut described = 0;
    for function in &functions {
        let [name, description, text] = [0, 1, 2].map(|column| function.get::<_, &str>(column));
        if name.starts_with("do_") {
            let is_expression = ["do_kept_a-b_1", "do_keptof_a-b_1"].contains(&name);
            assert!(is_expression || text.contains("$function$\n-- "), "{name}: {text}");
            assert!(description.is_empty(), "{name}: {description}");
            continue;
        }
        let first = description.lines().next().unwrap_or_default();
        assert!(first.len() > 10 && !first.starts_with('-'), "{name} is not described: {description:?}");
        // Lists functions whose bodies are expressions. Their sources contain no comments.
        let expressions = ["announced", "clock", "due_from", "floors", "tokens"];
        let is_expression = expressions.contains(&name);
        assert!(is_expression || text.contains(&format!("\n-- {first}\n")), "{name}: {text}");
        described += 1;
    }
    assert!(described > 140, "{described}");
}

#[tokio::test(flavor = "multi_thread")]
async fn dropping_a_queue_leaves_nothing_of_it() {
    let url = database().await;
    let (db, sql) = (Db::connect(&url).await.expect("connected"), connect(&url).await);
    let before = schema(&sql).await;
    for payload in ["text", "bytea", "int8[]"] {
        db.create_queue("emails", &Settings::new(payload)).await.expect("created");
        assert_ne!(schema(&sql).await, before);
        db.drop_queue("emails").await.expect("dropped");
        assert_eq!(schema(&sql).await, before);
    }
}

/// Otherwise a terminal would show one notice for each object that a queue lacks.
#[tokio::test(flavor = "multi_thread")]
async fn creating_altering_and_dropping_a_queue_says_nothing() {
    let url = database().await;
    Db::connect(&url).await.expect("connected").migrate().await.expect("migrated");
    let (client, mut connection) = tokio_postgres::connect(&url, NoTls).await.expect("connected");
    let heard = tokio::spawn(async move {
        let mut heard = Vec::new();
        while let Some(message) = poll_fn(|cx| connection.poll_message(cx)).await {
            if let AsyncMessage::Notice(notice) = message.expect("it lasts") {
                heard.push(notice.message().to_owned());
            }
        }
        heard
    });
    for settings in ["", ", priorities => 4", ", partitions => 8", ", uniqueness => true"] {
        let whole = format!(
            "select trunkline.create_queue('q', 'int8'{settings}); select trunkline.alter_queue('q', max_attempts => 3);
             select trunkline.drop_queue('q')"
        );
        client.batch_execute(&whole).await.expect(settings);
    }
    client.batch_execute("do $$ begin raise notice 'the last'; end $$").await.expect("said");
    drop(client);
    assert_eq!(heard.await.expect("no panic"), ["the last"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_users_columns_keep_their_values_through_splits_and_retries() {
    let Place { queue, mut sql, db: _db, .. } = place::<String>(two_attempts()).await;
    let values = "select distinct coalesce(tenant, '') || ' ' || (created_at is not null) from trunkline.queue_q";
    queue.enqueue("before the columns".to_owned()).await.expect("enqueued");
    queue.lease(1).await.expect("leased"); // plans are cached now
    sql.batch_execute(
        "alter table trunkline.queue_q add gone int default 7, add created_at timestamptz not null default now(),
             add tenant text default 'nobody';
         alter table trunkline.queue_q drop gone",
    )
    .await
    .expect("altered");
    assert_eq!(queue.purge().await.expect("purged"), 1);
    works(&queue, &mut sql).await;
    let payloads: Vec<String> = (0..32).map(|nr| nr.to_string()).collect();
    queue.enqueue_many(&payloads).await.expect("enqueued");
    sql.batch_execute("update trunkline.queue_q set tenant = 'acme'").await.expect("set");
    let leased = queue.lease(7).await.expect("leased");
    queue.ack(&leased[2..4]).await.expect("held");
    queue.retry(&leased[5..6], Duration::from_secs(60), "later").await.expect("held");
    run_out(&sql).await;
    queue.lease(2).await.expect("leased");
    let rows = sql.query(values, &[]).await.expect("read");
    assert_eq!(rows.iter().map(|row| row.get::<_, String>(0)).collect::<Vec<_>>(), ["acme true"]);
    assert!(queue.stats().await.expect("counted").rows > 5, "it was split indeed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_users_column_may_have_any_name() {
    let Place { queue, mut sql, db: _db, .. } = place::<String>(two_attempts()).await;
    let names = "reason attempts lease delay delays term floor rows until n ids sizes edge got low high k nr row_id asked settled \
                 settled_ids more pass of_attempt leased seen r line";
    for name in names.split_whitespace() {
        let add = format!("alter table trunkline.queue_q add {name} text default '1900-01-01'");
        sql.batch_execute(&add).await.expect("altered");
    }
    works(&queue, &mut sql).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_needs_the_schema_public_or_a_search_path() {
    let url = empty_database("no_public").await;
    // Objects of other owners must not interfere, either.
    let admin = superuser(&url).await;
    admin
        .batch_execute(
            "drop schema public cascade; alter database no_public set search_path = trap;
         create schema trap; grant usage on schema trap to public; create type trap.int8 as enum ('trap');
         create function trap.clock_timestamp() returns timestamptz language sql as 'select null::timestamptz'",
        )
        .await
        .expect("set");
    let db = Db::connect(&url).await.expect("connected");
    db.migrate().await.expect("migrated");
    db.create_queue("q", &two_attempts()).await.expect("created");
    let mut sql = connect(&url).await;
    works(&db.queue("q").await.expect("opened"), &mut sql).await;
    sql.query_one("select trunkline.enqueue('q', 'plain'::text)", &[]).await.expect("enqueued");
    assert_eq!(sql.query("select * from trunkline.take('q', 9)", &[]).await.expect("taken").len(), 1);
    let said =
        "select count(*) from pg_proc where pronamespace = 'trunkline'::regnamespace and prosrc ~* '\\mpublic\\M'";
    assert_eq!(sql.query_one(said, &[]).await.expect("read").get::<_, i64>(0), 0);
}
