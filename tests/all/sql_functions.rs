//! Tests the verbs in SQL through a plain connection, as clients in other languages call them.

mod floor;

use std::time::Duration;

use tokio::time::timeout;
use tokio_postgres::{Client, error::DbError};
use trunkline::{Settings, Wait};

use crate::fixture::{Place, SOON, connect, database, eventually, place};

/// Returns the rows of a query, each as one text.
async fn texts(sql: &Client, query: &str) -> Vec<String> {
    let query = format!("select r::text from ({query}) r");
    let rows = sql.query(&query, &[]).await.unwrap_or_else(|error| panic!("{query}: {error:?}"));
    rows.iter().map(|row| row.get(0)).collect()
}

async fn refused(sql: &Client, call: &str) -> DbError {
    let error = sql.query(&format!("select * from trunkline.{call}"), &[]).await.expect_err(call);
    error.as_db_error().expect("the server's").clone()
}

/// Opens a plain connection to a database with the queue `q` of `text`, created in SQL.
async fn plain() -> Client {
    let sql = connect(&database().await).await;
    sql.batch_execute("select trunkline.create_queue('q', 'text', max_attempts => 2)").await.expect("created");
    sql
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_goes_its_whole_way_in_sql() {
    let sql = plain().await;
    let ids = texts(&sql, "select * from trunkline.enqueue_many('q', array['a', 'b', 'c', 'd', 'e'])").await;
    assert_eq!(ids, ["(1024)", "(1025)", "(1026)", "(1027)", "(1028)"]);
    assert_eq!(texts(&sql, "select trunkline.enqueue('q', 'later', '1 hour')").await, ["(2048)"]);
    let lines = texts(&sql, "select id, attempt, payload from trunkline.messages('q')").await;
    assert_eq!(lines, ["(1024,0,a)", "(1025,0,b)", "(1026,0,c)", "(1027,0,d)", "(1028,0,e)", "(2048,0,later)"]);

    assert_eq!(texts(&sql, "select id, attempt, payload from trunkline.take('q')").await, ["(1024,0,a)"]);
    let leased = texts(&sql, "select id, attempt, payload from trunkline.lease('q', 9, '1 minute')").await;
    assert_eq!(leased, ["(1025,1,b)", "(1026,1,c)", "(1027,1,d)", "(1028,1,e)"]);
    let stats = texts(&sql, "select due, delayed, leased, to_retry, dead from trunkline.stats('q')").await;
    assert_eq!(stats, ["(0,1,4,0,0)"]);

    sql.batch_execute(
        "select trunkline.ack('q', 1025, 1);
         select trunkline.archive('q', 1026, 1);
         select trunkline.extend('q', 1027, 1, '2 hours');
         select trunkline.retry('q', 1028, 1, error => 'not yet')",
    )
    .await
    .expect("settled");
    let lines = "select id, attempt, error, due_at > now() + interval '1 hour' as far from trunkline.messages('q') where id < 2048";
    assert_eq!(texts(&sql, lines).await, ["(1028,1,\"not yet\",f)", "(1027,1,,t)"]);
    assert_eq!(texts(&sql, "select id, attempt, payload from trunkline.archive_q").await, ["(1026,1,c)"]);

    assert_eq!(texts(&sql, "select id, attempt from trunkline.lease('q', 9)").await, ["(1028,2)"]);
    sql.batch_execute("select trunkline.retry('q', 1028, 2, '1 hour', 'never')").await.expect("its last attempt");
    let dead = "select id, attempt, error, payload from trunkline.dead_letters('q')";
    assert_eq!(texts(&sql, dead).await, ["(1028,2,never,e)"]);
    assert_eq!(texts(&sql, "select * from trunkline.dead_letters('q', 1028)").await.len(), 0, "the next page");
    assert_eq!(texts(&sql, "select trunkline.replay('q', array[1, 1028])").await, ["(1)"]);
    assert_eq!(texts(&sql, "select id, attempt, payload from trunkline.take('q', 9)").await, ["(1028,2,e)"]);

    sql.batch_execute("insert into trunkline.dead_q select i, now(), now(), 2, 'x', 'y' from generate_series(1, 3) i")
        .await
        .expect("dead letters");
    assert_eq!(texts(&sql, "select trunkline.discard('q', array[1])").await, ["(1)"]);
    assert_eq!(texts(&sql, "select trunkline.discard_all('q')").await, ["(2)"]);
    assert_eq!(texts(&sql, "select trunkline.prune('q', '1 hour')").await, ["(0)"]);
    assert_eq!(texts(&sql, "select trunkline.prune('q', '178000000 years')").await, ["(0)"]);
    assert_eq!(texts(&sql, "select trunkline.prune('q', '0')").await, ["(1)"]);
    assert_eq!(texts(&sql, "select trunkline.purge('q')").await, ["(2)"], "the leased one and the delayed one");
    let released = "select trunkline.enqueue('q', 'r'); select * from trunkline.lease('q'); select trunkline.release('q', 3072, 1)";
    sql.batch_execute(released).await.expect("released");
    let stats = texts(&sql, "select due, rows from trunkline.stats('q')").await;
    assert_eq!(stats, ["(1,1)"]);
    let buried = "select * from trunkline.lease('q'); select trunkline.bury('q', 3072, 2, 'hopeless')";
    sql.batch_execute(buried).await.expect("buried");
    let dead = "select id, attempt, error, payload from trunkline.dead_letters('q')";
    assert_eq!(texts(&sql, dead).await, ["(3072,1,hopeless,r)"], "with its first charged attempt");
    sql.batch_execute("select trunkline.drop_queue('q')").await.expect("dropped");
    assert_eq!(refused(&sql, "take('q')").await.message(), "there is no queue 'q'");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_acknowledged_together_cost_what_one_does() {
    let sql = plain().await;
    sql.batch_execute("select trunkline.enqueue_many('q', array(select 'x' from generate_series(1, 200)))")
        .await
        .expect("enqueued");
    let leased = "create temp table l as select * from trunkline.lease('q', 100)";
    sql.batch_execute(leased).await.expect("leased");
    let changed = "select n_tup_ins + n_tup_upd + n_tup_del from pg_stat_xact_user_tables where relname = 'queue_q'";
    let before: i64 = sql.query_one(changed, &[]).await.expect("counted").get(0);
    sql.batch_execute("begin; select trunkline.ack_many('q', array_agg(id), array_agg(attempt)) from l")
        .await
        .expect("acked");
    let after: i64 = sql.query_one(changed, &[]).await.expect("counted").get(0);
    sql.batch_execute("commit").await.expect("committed");
    assert!(after - before <= 20, "{} rows were written for a hundred messages of one batch", after - before);
    assert_eq!(texts(&sql, "select due, leased from trunkline.stats('q')").await, ["(100,0)"]);

    // The function disables JIT, so that the session does not compile its queries.
    let setting = "select proconfig::text from pg_proc where oid = 'trunkline.settle'::regproc";
    assert_eq!(texts(&sql, setting).await, ["(\"{\"\"search_path=pg_catalog, pg_temp\"\",jit=off}\")"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_worker_is_told_so_and_nothing_changes() {
    let sql = plain().await;
    sql.batch_execute(
        "select trunkline.enqueue_many('q', array['a', 'b', 'c']); select * from trunkline.lease('q', 3)",
    )
    .await
    .expect("leased");
    let lost = [
        "ack('q', 1024, 2)",
        "ack('q', 1, 1)",
        "ack_many('q', array[1024, 1025, 1026], array[1, 1, 2])",
        "ack_many('q', array[1024, 1024], array[1, 2])",
        "archive('q', 1024, 0)",
        "extend('q', 1024, 2, '1 s')",
        "retry('q', 1024, 2)",
        "release('q', 1024, 2)",
        "bury('q', 1024, 2, 'late')",
    ];
    for call in lost {
        let error = refused(&sql, call).await;
        assert_eq!(error.code().code(), "TL001", "{call}: {error}");
        assert!(error.message().contains("lost") && error.detail().is_some() && error.hint().is_some(), "{call}");
    }
    let lines = "select id, attempt, error from trunkline.messages('q')";
    assert_eq!(texts(&sql, lines).await, ["(1024,1,)", "(1025,1,)", "(1026,1,)"], "all or nothing");
    sql.batch_execute("update trunkline.queue_q set due_at = trunkline.clock()").await.expect("the leases expired");
    assert_eq!(refused(&sql, "ack('q', 1024, 1)").await.code().code(), "TL001");
    assert_eq!(texts(&sql, "select id, attempt from trunkline.lease('q', 1)").await, ["(1024,2)"]);
    assert_eq!(refused(&sql, "ack('q', 1024, 1)").await.code().code(), "TL001");
    sql.batch_execute("select trunkline.ack('q', 1024, 2)").await.expect("the one who holds it");
}

#[tokio::test(flavor = "multi_thread")]
async fn message_that_was_never_leased_has_no_lease_to_end() {
    let sql = plain().await;
    sql.batch_execute("select trunkline.enqueue('q', x, delay => '1 day') from unnest(array['a', 'b']) x")
        .await
        .expect("enqueued");
    let all =
        "(select array_agg(id) from trunkline.messages('q')), (select array_agg(attempt) from trunkline.messages('q'))";
    let each = "select VERB('q', id, attempt) from trunkline.messages('q') where payload = 'a'";
    for verb in ["ack", "archive", "release", "retry", "bury"] {
        for call in
            [each.replace("VERB", &format!("trunkline.{verb}")), format!("select trunkline.{verb}_many('q', {all})")]
        {
            let error = sql.batch_execute(&call).await.expect_err(&call);
            assert_eq!(error.code().expect("a code").code(), "TL001", "{call}: {error:?}");
        }
    }
    let extend = format!("select trunkline.extend_many('q', {all}, '1 minute')");
    assert_eq!(sql.batch_execute(&extend).await.expect_err("delayed").code().expect("a code").code(), "TL001");
    let left =
        sql.query_one("select count(*) from trunkline.messages('q') where due_at > now() + interval '23 hours'", &[]);
    assert_eq!(left.await.expect("counted").get::<_, i64>(0), 2);
    // Passes null, which `array_agg` returns if nothing was leased. The call has no effect.
    let nothing = "select trunkline.VERB('q', array_agg(id), array_agg(attempt)) from trunkline.lease('q', 2)";
    for verb in ["ack_many", "archive_many", "release_many", "retry_many", "bury_many", "charge_many"] {
        sql.batch_execute(&nothing.replace("VERB", verb)).await.expect(verb);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_arguments_get_a_hint() {
    let sql = plain().await;
    let verbs = [
        "enqueue(Q, 'a'::text)",
        "enqueue_many(Q, array['a'])",
        "take(Q)",
        "lease(Q)",
        "ack(Q, 1, 1)",
        "archive(Q, 1, 1)",
        "extend(Q, 1, 1, '1 s')",
        "retry(Q, 1, 1)",
        "release(Q, 1, 1)",
        "messages(Q)",
        "dead_letters(Q)",
        "replay(Q, '{1}')",
        "replay_all(Q)",
        "discard(Q, '{1}')",
        "discard_all(Q)",
        "purge(Q)",
        "prune(Q, '1 s')",
        "stats(Q)",
        "alter_queue(Q, 1)",
        "drop_queue(Q)",
    ];
    for verb in verbs {
        for queue in ["null", "'Q'", "'nowhere'", "'q; drop'"] {
            let error = refused(&sql, &verb.replace('Q', queue)).await;
            assert_eq!(error.code().code(), "42P01", "{verb}: {error}");
            assert!(error.hint().is_some_and(|hint| hint.contains("create_queue")), "{verb}: {error}");
        }
    }
    let calls = [
        ("take('q', -1)", "22023"),
        ("lease('q', null)", "22023"),
        ("dead_letters('q', 0, -1)", "22023"),
        ("enqueue('q', null::text)", "22004"),
        ("enqueue_many('q', array['a', null])", "22004"),
        ("ack_many('q', array[1, 2], array[1])", "22023"),
        ("ack_many('q', null, array[1])", "22023"),
        ("ack_many('q', array[1, null], array[1, 1])", "22023"),
        ("create_queue('Q')", "42602"),
        ("create_queue('p', 'text', 0)", "22023"),
        ("create_queue('q', 'int8')", "42710"),
        ("alter_queue('q', max_batch => 1025)", "22023"),
        ("alter_queue('q', max_attempts => 0)", "22023"),
        ("create_queue('p', null)", "22004"),
        ("create_queue('p', 'record')", "22023"),
        ("create_queue('p', 'text', null)", "22023"),
        ("enqueue_many('q', null::text[])", "22004"),
        ("enqueue_many('q', array[array['a'], array['b']])", "2202E"),
        ("dead_letters('q', null)", "22004"),
        ("replay('q', null)", "22004"),
        ("discard('q', null)", "22004"),
        ("prune('q', null)", "22023"),
        ("prune('q', '-1 day')", "22023"),
        ("lease('q', 1, '0')", "22023"),
        ("retry('q', 1, 1, '-1 s')", "22023"),
        ("extend('q', 1, 1, null)", "22023"),
        ("ack('q', 9223372036854775807, 1)", "TL001"),
        ("ack_many('q', array[9223372036854775807, 7], array[1, 1])", "TL001"),
        ("grant_rights(current_user::regrole, 'king')", "22023"),
    ];
    for (call, code) in calls {
        let error = refused(&sql, call).await;
        assert_eq!(error.code().code(), code, "{call}: {error}");
        assert!(error.hint().is_some(), "{call}: {error}");
    }
    assert_eq!(texts(&sql, "select * from trunkline.take('q', 0)").await.len(), 0);
    assert_eq!(texts(&sql, "select * from trunkline.enqueue_many('q', '{}'::text[])").await.len(), 0);
    assert_eq!(texts(&sql, "select rows from trunkline.stats('q')").await, ["(0)"], "nothing came of all that");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trigger_enqueues_and_wakes_a_consumer_in_rust() {
    let Place { queue, mut sql, db: _db, .. } = place::<String>(Settings::new("text")).await;
    let table = "create table orders (id int, note text);
                 create function tell() returns trigger language plpgsql as
                     $$ begin perform trunkline.enqueue('q', new.note); return new; end $$;
                 create trigger tell after insert on orders for each row execute function tell()";
    sql.batch_execute(table).await.expect("a trigger");
    for wait in [Wait::Notify, Wait::Adaptive] {
        let mut consumer = queue.consumer(wait);
        let waiter = tokio::spawn(async move { timeout(SOON, consumer.lease(9)).await });
        let transaction = sql.transaction().await.expect("begun");
        transaction.execute("insert into orders values (0, 'never')", &[]).await.expect("inserted");
        transaction.rollback().await.expect("rolled back");
        sql.execute("insert into orders values (1, 'one'), (2, 'two')", &[]).await.expect("inserted");
        let messages = waiter.await.expect("no panic").expect("in time").expect("leased");
        let payloads: Vec<_> = messages.iter().map(|message| &*message.payload).collect();
        assert_eq!(payloads, ["one", "two"], "{wait:?}");
        for message in messages {
            let ack = "select trunkline.ack('q', $1, $2)"; // SQL acknowledges a lease that Rust took
            sql.execute(ack, &[&message.id, &message.attempt]).await.expect("acknowledged");
        }
    }
    assert_eq!(queue.stats().await.expect("counted").messages, 0);
    let id = queue.enqueue("from Rust".to_owned()).await.expect("enqueued").id();
    let line = texts(&sql, "select id, attempt, payload from trunkline.lease('q')").await;
    assert_eq!(line, [format!("({id},1,\"from Rust\")")]);
    queue.ack([trunkline::Lease { id, attempt: 1 }]).await.expect("what SQL leased, Rust acknowledges");
}

#[tokio::test(flavor = "multi_thread")]
async fn altered_settings_take_effect() {
    let Place { db, queue, sql, .. } = place::<i64>(Settings::new("int8").max_attempts(9)).await;
    sql.batch_execute("select trunkline.alter_queue('q', 1, '1 hour', 2)").await.expect("altered");
    let described = db.describe_queue("q").await.expect("described");
    assert_eq!((described.max_attempts, described.lease, described.max_batch), (1, Duration::from_secs(3600), 2));
    sql.batch_execute("select trunkline.enqueue_many('q', '{1,2,3,4,5}'::int8[])").await.expect("enqueued");
    assert_eq!(texts(&sql, "select size from trunkline.queue_q order by id").await, ["(2)", "(2)", "(1)"]);
    let leased = queue.lease(5).await.expect("leased");
    let long = "select count(*) from trunkline.queue_q where due_at > now() + interval '55 minutes'";
    assert_eq!(texts(&sql, long).await, ["(3)"]);
    queue.retry(&leased[..1], Duration::ZERO, "once").await.expect("retried");
    assert_eq!(queue.dead_letters(0, 9).await.expect("listed").len(), 1, "one attempt is all");
    // A handle that is opened after the change uses the new limit.
    let queue = db.queue::<i64>("q").await.expect("opened");
    queue.purge().await.expect("purged");
    queue.enqueue_many(&[1, 2, 3]).await.expect("enqueued");
    assert_eq!(texts(&sql, "select size from trunkline.queue_q order by id").await, ["(2)", "(1)"]);
}

#[tokio::test]
async fn a_queue_that_was_dropped_meanwhile_is_named() {
    let Place { url, sql, .. } = place::<i64>(Settings::new("int8")).await;
    for call in ["drop_queue('q')", "alter_queue('q', 3)"] {
        let (first, second) = (connect(&url).await, connect(&url).await);
        first.batch_execute("begin; select trunkline.drop_queue('q')").await.expect("dropped");
        let call = format!("select trunkline.{call}");
        let pid: i32 = second.query_one("select pg_backend_pid()", &[]).await.expect("known").get(0);
        let waiting = tokio::spawn(async move { second.batch_execute(&call).await.expect_err("it is gone") });
        eventually("it waits", || async {
            let waits = "select count(*) > 0 from pg_locks where pid = $1 and not granted";
            sql.query_one(waits, &[&pid]).await.expect("seen").get(0)
        })
        .await;
        first.batch_execute("commit").await.expect("committed");
        let error = waiting.await.expect("ended");
        let said = error.as_db_error().expect("of the server").message().to_owned();
        assert_eq!(said, "there is no queue 'q'");
        sql.batch_execute("select trunkline.create_queue('q', 'int8')").await.expect("created");
    }
}

#[tokio::test]
async fn bpchar_and_bit_payloads_are_stored_whole() {
    let Place { sql, .. } = place::<i64>(Settings::new("int8")).await;
    for (nr, (of, text)) in
        [("bpchar", "hello"), ("bit", "1011"), ("bpchar[]", "{hello}"), ("bit[]", "{1011}")].iter().enumerate()
    {
        let name = format!("whole_{nr}");
        sql.batch_execute(&format!(
            "select trunkline.create_queue('{name}', '{of}'), trunkline.enqueue('{name}', '{text}'); select trunkline.enqueue_many('{name}', array['{text}'::text])"
        ))
        .await
        .expect(of);
        assert_eq!(
            texts(&sql, &format!("select payload from trunkline.take('{name}', 2)")).await,
            [format!("({text})"), format!("({text})")],
            "{of}"
        );
    }
}

#[tokio::test]
async fn columns_that_postgres_fills_do_not_stop_a_queue() {
    let Place { sql, .. } = place::<i64>(Settings::new("int8")).await;
    sql.batch_execute(
        "alter table trunkline.queue_q add column twice int generated always as (size * 2) stored,
             add column nr bigint generated always as identity, add column gone int, add column tenant text default 'acme';
         alter table trunkline.queue_q drop column gone;
         select trunkline.enqueue_many('q', array[1, 2, 3]::int8[]); update trunkline.queue_q set tenant = 'other'",
    )
    .await
    .expect("added");
    for payload in ["1", "2", "3"] {
        assert_eq!(texts(&sql, "select min(tenant) from trunkline.queue_q").await, ["(other)"]);
        assert_eq!(texts(&sql, "select payload from trunkline.take('q')").await, [format!("({payload})")]);
    }
}

#[tokio::test]
async fn a_session_that_knows_no_null_in_arrays_leases() {
    let Place { sql, .. } = place::<i64>(Settings::new("int8")).await;
    sql.batch_execute("set array_nulls = off; select trunkline.enqueue('q', '1')").await.expect("enqueued");
    for _ in 0..3 {
        sql.batch_execute("select trunkline.release('q', id, attempt) from trunkline.lease('q')")
            .await
            .expect("leased");
    }
}
